// The page's chart: what is shown and at which size, in words and as a picture. Its state is in the address.
"use strict";
((page) => {
  const box = document.getElementById("chart");
  if (!box || !page.chartStudies.length) return;
  const { element, format, SPLIT, chartStudies: studies } = page;
  const data = page.data();
  const STEPS = 400; // of the slider
  const SNAP = 9; // pixels within which a measured size attracts the pointer
  const TOGGLES = { repeats: "repeats", published: "published", elsewhere: "measured elsewhere" };
  const state = { study: studies[0], y: null, x: null, line: null, size: null, repeats: true, published: true, elsewhere: true };
  let seen = null;
  let scale = null;

  // --- Words ---

  // What the lines of a group say at the size, and which device is how far ahead.
  function groupText(lines) {
    const short = (one) => one.label.replace(/ \(.*\)/, one.elsewhere ? "$&" : "");
    const found = lines.map((one) => ({ name: short(one), one, at: page.valueAt(one, seen.metric, seen.size, !seen.places) }));
    const text = (value) => page.metricText(seen.metric, value);
    const values = found.map(({ name, one, at }) => {
      const interval = at?.measured && at.low !== null && at.high !== null && !one.elsewhere;
      return `${name} ${at ? text(at.value) : "not measured there"}${interval ? ` (95 %: ${text(at.low)} to ${text(at.high)})` : ""}`;
    });
    const timed = found.filter(({ at }) => at).sort((first, second) => first.at.value - second.at.value);
    if (seen.metric.kind !== "seconds" || timed.length < 2) return values.join(", ");
    const [fast, slow] = [timed[0], timed.at(-1)];
    const ratio = slow.at.value / fast.at.value;
    const ahead = ratio < 1.005 ? "equally fast" : `${fast.name} ${format.number(ratio)} times as fast as ${slow.name}`;
    return `${values.join(", ")}: ${ahead}`;
  }

  function reading() {
    if (!seen.metric) return "No cell of this study has a value to draw; the table of cells says why.";
    if (seen.metric === SPLIT) return "Shares of a step's time.";
    const place = seen.places ? seen.places[seen.size] : `${format.count(seen.size)} ${seen.x.title}`;
    // The CPU elsewhere is to be seen, but compared with nothing.
    const told = Map.groupBy(seen.shown.filter((one) => !(one.elsewhere && one.device === "cpu")), ({ group }) => group);
    const said = [...told].map(([group, lines]) => `${told.size > 1 ? `${group}: ` : ""}${groupText(lines)}`);
    return `At ${place}${seen.sizes.includes(seen.size) ? "" : " (between sizes that were measured)"}: ${said.join("; ")}.`;
  }

  // --- Controls ---

  const set = (changes) => { Object.assign(state, changes); render(); remember(); };
  const choose = (title, act) => {
    const control = element("select", { name: title, change: () => act(control.value) });
    return { control, label: element("label", {}, `${title} `, control) };
  };
  const study = choose("study", (value) => set({ study: value, line: null, x: null, size: null }));
  const metric = choose("show", (value) => set({ y: value }));
  const group = choose("line", (value) => set({ line: value }));
  const axis = choose("over", (value) => set({ x: value, size: null }));
  const typed = element("input", { type: "text", name: "size", inputmode: "numeric", size: 11, autocomplete: "off" });
  const slider = element("input", { type: "range", min: 0, "aria-label": "my size" });
  const toggles = Object.entries(TOGGLES).map(([key, title]) => {
    const control = element("input", { type: "checkbox", change: () => set({ [key]: control.checked }) });
    return { key, control, label: element("label", {}, control, ` ${title}`) };
  });
  const mine = element("div", { class: "controls" }, element("label", {}, "my size ", typed), slider);
  const readout = element("p", { class: "readout", role: "status" });
  const plot = element("div", { class: "plot" });
  const legend = element("ul", { class: "legend" });
  const button = (title, act) => element("button", { type: "button", click: act }, title);

  function fill({ control, label }, options, chosen) {
    control.replaceChildren(...options.map(({ key, title }) => new Option(title, key, false, key === chosen)));
    label.hidden = options.length < 2;
  }

  // The slider goes over the sizes as the axis does.
  function fromStep(step) {
    const [low, high] = [seen.sizes[0], seen.sizes.at(-1)];
    if (seen.places) return step;
    return step === 0 ? low : step === STEPS ? high : low * (high / low) ** (step / STEPS);
  }
  function toStep() {
    const [low, high] = [seen.sizes[0], seen.sizes.at(-1)];
    if (seen.places) return seen.size;
    return high > low ? Math.round((STEPS * Math.log(seen.size / low)) / Math.log(high / low)) : 0;
  }

  function render() {
    seen = page.viewOf(state);
    fill(study, studies.map((key) => ({ key, title: data.studies[key].title })), state.study);
    fill(metric, seen.metrics, seen.metric?.key);
    fill(group, [...(seen.groups.length <= 7 ? [{ key: "", title: "all" }] : []), ...seen.groups.map((key) => ({ key, title: key }))], seen.line);
    group.label.hidden = seen.groups.length < 2;
    fill(axis, seen.axes, seen.x.key);
    const { crossover, times } = data.published[state.study];
    const possible = {
      repeats: data.repeats !== null,
      published: Boolean(crossover || times.length),
      elsewhere: data.elsewhere.rows.some((row) => row.study === state.study),
    };
    for (const { key, control, label } of toggles) {
      control.checked = state[key];
      label.hidden = !possible[key];
    }
    draw();
  }

  const entry = (style, words) => element("li", {}, element("span", { class: "swatch", style }), words);

  function draw() {
    const width = plot.clientWidth;
    if (!width) return;
    const words = reading();
    const label = `${data.studies[state.study].title}: ${seen.metric?.title ?? "nothing"}. ${words}`;
    readout.textContent = words;
    mine.hidden = !seen.metric || seen.metric === SPLIT;
    legend.replaceChildren();
    plot.replaceChildren();
    scale = null;
    if (!seen.metric) return;
    if (seen.metric === SPLIT) {
      plot.append(page.drawSplits(seen, width, label));
      legend.append(...data.splits.words.map((part, rank) => entry(`background: ${data.splits.colours[rank]}`, part)));
      return;
    }
    const looks = page.looksOf(seen.shown);
    const { picture, scale: own, named } = page.drawLines(seen, looks, state, width, label);
    scale = own;
    plot.append(picture);
    if (!named) {
      const kind = ({ dashes }) => ({ none: "solid", "7 5": "dashed" })[dashes] ?? "dotted";
      legend.append(...[...looks.values()].map((look) => entry(`border-top: 3px ${kind(look)} ${look.colour}`, look.name)));
    }
    if (document.activeElement !== typed) typed.value = seen.places ? seen.places[seen.size] : format.count(seen.size);
    slider.max = seen.places ? seen.places.length - 1 : STEPS;
    slider.value = toStep();
    slider.setAttribute("aria-valuetext", words);
  }

  typed.addEventListener("change", () => {
    const asked = page.readNumber(typed.value)?.value;
    if (!(asked > 0)) {
      readout.textContent = `“${typed.value}” is no size; type a number above 0, such as 2,000 or 703 k.`;
      return;
    }
    set({ size: asked });
    const [low, high] = [seen.sizes[0], seen.sizes.at(-1)];
    const only = `Only ${format.count(low)} to ${format.count(high)} ${seen.x.title} were measured.`;
    if (asked < low || asked > high) readout.textContent = `${only} ${readout.textContent}`;
  });
  slider.addEventListener("input", () => { state.size = fromStep(Number(slider.value)); render(); });
  slider.addEventListener("change", remember);
  plot.addEventListener("pointermove", (event) => {
    const pixel = event.clientX - plot.getBoundingClientRect().left;
    if (!scale || pixel < scale.left || pixel > scale.right) return;
    state.size = seen.sizes.find((size) => Math.abs(scale.x(size) - pixel) < SNAP) ?? scale.at(pixel);
    seen.size = page.within(state.size, seen.sizes);
    draw();
  });
  plot.addEventListener("pointerleave", remember);

  // --- Address ---

  function remember() {
    const { study: name, y, x, line, size } = state;
    const known = { study: name, y, x, line, size: size && Number(size.toPrecision(4)) };
    const off = toggles.filter(({ key }) => !state[key]).map(({ key }) => [key, "off"]);
    const given = Object.entries(known).filter(([, value]) => value !== null && value !== "");
    history.replaceState(null, "", `#chart?${new URLSearchParams([...given, ...off])}`);
  }

  function recall() {
    if (!location.hash.startsWith("#chart?")) return;
    const known = Object.fromEntries(new URLSearchParams(location.hash.slice("#chart?".length)));
    if (studies.includes(known.study)) state.study = known.study;
    for (const key of ["y", "x", "line"]) state[key] = known[key] ?? null;
    if (Number(known.size) > 0) state.size = Number(known.size);
    for (const { key } of toggles) state[key] = known[key] !== "off";
  }

  // --- Downloads ---

  function save(suffix, content, type) {
    const link = element("a", { href: URL.createObjectURL(new Blob([content], { type })), download: `${state.study}_${seen.metric.key}.${suffix}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function source() {
    const copy = plot.querySelector("svg").cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.prepend(page.drawn("rect", { width: "100%", height: "100%", fill: page.ink("paper") }));
    return new XMLSerializer().serializeToString(copy);
  }

  function savePng() {
    const { clientWidth, clientHeight } = plot.querySelector("svg");
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = element("canvas", { width: 2 * clientWidth, height: 2 * clientHeight });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save("png", blob, "image/png"));
    });
    image.src = `data:image/svg+xml,${encodeURIComponent(source())}`;
  }

  function saveCsv() {
    const x = seen.x.key ?? "place";
    const splits = () => [
      ["device", "size", ...data.splits.words],
      ...seen.splits.map((row) => [row.device_label, row.size, ...data.splits.cells[row.place]]),
    ];
    const lines = () => [
      ["device", "line", x, seen.metric.key, "low", "high"],
      ...seen.shown.flatMap((one) => one.points.flatMap(({ at, row }) => {
        const point = page.pointOf(row, seen.metric);
        return point ? [[one.label, one.group, seen.places ? seen.places[at] : at, point.value, point.low, point.high]] : [];
      })),
    ];
    const quoted = (value) => `"${String(page.csvText(value ?? "")).replaceAll('"', '""')}"`;
    const rows = seen.metric === SPLIT ? splits() : lines();
    save("csv", rows.map((cells) => cells.map(quoted).join(",")).join("\n"), "text/csv");
  }

  box.append(
    element("div", { class: "controls" }, study.label, metric.label, group.label, axis.label),
    mine, readout, plot, legend,
    element("div", { class: "controls small" },
      ...toggles.map(({ label }) => label),
      button("SVG", () => save("svg", source(), "image/svg+xml")), button("PNG", savePng), button("CSV", saveCsv),
      button("these cells as a table", () => page.showStudyInTable(state.study))));
  recall();
  render();
  for (const link of document.querySelectorAll("[data-chart]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      set({ study: link.dataset.chart, line: null, x: null, size: null });
      box.scrollIntoView();
    });
  }
  new ResizeObserver(draw).observe(plot);
  document.addEventListener("crossover:theme", render);
})(window.Crossover);
