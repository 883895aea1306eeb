// "What about my size?": times interpolated between the sizes measured on each device; outside of them, none.
"use strict";
((page) => {
  const { element, format } = page;
  const box = document.getElementById("size-box");
  if (!box) return;
  const { study, line, amount, unit } = box.querySelector("form").elements;
  const answer = box.querySelector(".answer");

  const lines = () => page.data().lines.filter((one) => one.study === study.value);
  const unitName = () => unit.options[unit.selectedIndex].text;

  // A device's points with a time, by their place on the chosen axis; each is [place, seconds].
  function points(one) {
    const rows = one.cells.map((place) => page.data().rows[place]);
    const timed = rows.filter((row) => row.step_time_s !== null && row[unit.value] !== null);
    return timed.map((row) => [row[unit.value], row.step_time_s]).sort((first, second) => first[0] - second[0]);
  }

  // Log-log interpolation between neighbours, exact at the points; null outside of them.
  function interpolate(known, x) {
    const exact = known.find(([at]) => at === x);
    if (exact) return { seconds: exact[1], measured: true };
    const next = known.findIndex(([at]) => at > x);
    if (next <= 0) return null;
    const [[x0, y0], [x1, y1]] = [known[next - 1], known[next]].map((point) => point.map(Math.log));
    const seconds = Math.exp(y0 + ((y1 - y0) / (x1 - x0)) * (Math.log(x) - x0));
    return { seconds, measured: false, between: [known[next - 1][0], known[next][0]] };
  }

  function deviceText(one, x) {
    const known = points(one);
    const found = interpolate(known, x);
    if (!known.length) return `${one.device}: no time was measured.`;
    if (!found) return `${one.device}: measured from ${format.count(known[0][0])} to ${format.count(known.at(-1)[0])} ${unitName()} only; nothing is said outside.`;
    const how = found.measured ? "measured" : `interpolated between ${found.between.map(format.count).join(" and ")}`;
    return `${one.device}: ${format.seconds(found.seconds)} a step, ${how}.`;
  }

  function aheadText(devices, x) {
    const timed = devices.map((one) => ({ device: one.device, found: interpolate(points(one), x) })).filter(({ found }) => found);
    const [first, second] = timed.sort((one, other) => one.found.seconds - other.found.seconds);
    if (!second) return [];
    return [`${first.device} is ${format.number(second.found.seconds / first.found.seconds)} times as fast as ${second.device}.`];
  }

  function show() {
    const x = page.readNumber(amount.value)?.value;
    if (!(x > 0)) {
      answer.replaceChildren(element("p", {}, `“${amount.value}” is no size; type a number above 0, such as 2,000 or 703 k.`));
      return;
    }
    const groups = Map.groupBy(lines(), (one) => one.line);
    const chosen = [...groups].filter(([label]) => line.value === "" || label === line.value);
    answer.replaceChildren(...chosen.flatMap(([label, devices]) => [
      element("h3", {}, label),
      ...devices.map((one) => element("p", {}, deviceText(one, x))),
      ...aheadText(devices, x).map((text) => element("p", { class: "ahead" }, text)),
    ]));
  }

  function describe() {
    const places = lines().flatMap(points).map(([at]) => at).sort((first, second) => first - second);
    const ends = [places[0], places.at(-1)].map((at) => (at ? format.count(at) : ""));
    box.querySelector(".range").textContent = places.length ? `Measured: ${ends[0]} to ${ends[1]} ${unitName()}.` : "No time was measured.";
  }

  function choose() {
    const labels = [...new Set(lines().map((one) => one.line))];
    line.replaceChildren(new Option("all", ""), ...labels.map((label) => new Option(label)));
    box.querySelector(".line").hidden = labels.length < 2;
    const rows = page.data().rows.filter((row) => row.study === study.value);
    unit.replaceChildren(new Option(rows[0].size_name, "size"));
    if (rows.some((row) => row.parameters !== null)) unit.add(new Option("parameters", "parameters"));
    unit.value = page.data().studies[study.value].x_axis;
    answer.replaceChildren();
    describe();
  }

  page.whenSeen(box, () => {
    study.replaceChildren(...[...new Set(page.data().lines.map((one) => one.study))].map((name) => new Option(name)));
    choose();
  });
  study.addEventListener("change", choose);
  unit.addEventListener("change", () => { answer.replaceChildren(); describe(); });
  line.addEventListener("change", () => { if (answer.childElementCount) show(); });
  box.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
})(window.Crossover);
