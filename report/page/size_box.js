// "What about my size?": a form, and what is expected there.
"use strict";
((page) => {
  const { element } = page;
  const box = document.getElementById("size-box");
  if (!box) return;
  const { study, line, amount, unit } = box.querySelector("form").elements;
  const answer = box.querySelector(".answer");
  const range = box.querySelector(".range");
  // A size whose parameters differ by more than this share from those asked for does not stand for them.
  const NEAR = 0.05;
  const models = () => page.data().models.filter((model) => model.study === study.value);

  function sizes() {
    const own = page.data().rows.filter((row) => row.study === study.value).map((row) => row.size);
    return own.reduce(([low, high], size) => [Math.min(low, size), Math.max(high, size)], [Infinity, 0]);
  }

  // Parameters that are known from one size to another; null where they say nothing of the size.
  function parameters() {
    const known = page.knownParameters(study.value);
    const grows = known.every(([, count], place) => place === 0 || count > known[place - 1][1]);
    return known.length > 1 && grows ? known : null;
  }

  function describe() {
    const { whole, known } = page.format;
    if (unit.value === "parameters") {
      const counts = parameters();
      range.textContent = `Measured: ${known(counts[0][1])} to ${known(counts.at(-1)[1])} parameters.`;
      return;
    }
    const [low, high] = sizes();
    range.textContent = `Measured: ${low === high ? whole(low) : `${whole(low)} to ${whole(high)}`} ${models()[0].size_name}.`;
  }

  function choose() {
    const words = new Map(models().map((model) => [model.line, model.words]));
    line.replaceChildren(new Option("all", ""), ...[...words].map(([place, text]) => new Option(text, place)));
    box.querySelector(".line").hidden = words.size < 2;
    unit.replaceChildren(new Option(models()[0].size_name, "size"));
    if (parameters()) unit.add(new Option("parameters", "parameters"));
    amount.value = "";
    answer.replaceChildren();
    describe();
  }

  // The size nearest to a number of parameters; `far` says so where it has quite another number.
  function nearest(wanted) {
    const { known: text, count: about, whole, percent } = page.format;
    const sizes = parameters();
    const exact = page.interpolate(sizes.map(([size, count]) => [count, size]), wanted);
    if (exact === null) return { error: `${text(wanted)} parameters lie outside of the measured range, where the size that has them is not known; ask for a size instead` };
    const size = Math.max(1, Math.round(exact));
    const count = page.interpolate(sizes, size);
    const note = `The size nearest to ${text(wanted)} parameters:`;
    const off = count === null ? 0 : count / wanted - 1;
    if (Math.abs(off) <= NEAR) return { size, note };
    const has = sizes.some(([one]) => one === size) ? whole(count) : `about ${about(count)}`;
    const far = `the nearest size, ${whole(size)} ${models()[0].size_name}, has ${has} parameters, ${percent(Math.abs(off))} ${off < 0 ? "fewer" : "more"}: what follows is of that size, and who is ahead at ${text(wanted)} parameters is not told`;
    return { size, far };
  }

  // The size that was asked for, with words where it follows from a number of parameters.
  function asked() {
    const value = Number(amount.value);
    if (value < 1 || !Number.isInteger(value)) {
      // Of what is no number at all, the browser gives an empty text.
      const kind = unit.value === "size" ? "size" : "number of parameters";
      return { error: page.said("no_size", { size: amount.value || "what is typed", kind }) };
    }
    return unit.value === "size" ? { size: value } : nearest(value);
  }

  function show() {
    const { size, note, far, error } = asked();
    const found = error ? { error } : page.expect(study.value, size);
    if (found.error) {
      answer.replaceChildren(element("p", {}, found.error));
      return;
    }
    const blocks = found.blocks.filter((one) => line.value === "" || one.line === Number(line.value));
    answer.replaceChildren(
      ...(note ? [element("p", {}, note)] : []),
      ...(far ? [element("p", { class: "warning" }, far)] : []),
      element("p", {}, found.heading),
      ...blocks.flatMap((one) => [
        element("h3", {}, one.words),
        ...one.devices.map((text) => element("p", {}, text)),
        ...(far ? [] : one.ahead).map((text) => element("p", { class: "ahead" }, text)),
        ...one.warnings.map((text) => element("p", { class: "warning" }, text)),
      ]),
    );
  }

  function fill() {
    if (study.options.length) return;
    const measured = new Set(page.data().models.map((model) => model.study));
    study.replaceChildren(...[...measured].map((name) => new Option(name, name)));
    const typed = amount.value;
    if (measured.size) choose();
    amount.value = typed;
  }

  page.whenSeen(box, fill);
  study.addEventListener("change", choose);
  unit.addEventListener("change", () => { answer.replaceChildren(); describe(); });
  amount.addEventListener("input", () => answer.replaceChildren());
  line.addEventListener("change", () => { if (answer.childElementCount) show(); });
  box.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    fill();
    show();
  });
})(window.Crossover);
