// The page's chart: controls, reading at a size, and downloads. Its state is in the address.
"use strict";
((page) => {
  const box = document.getElementById("chart");
  if (!page.chartStudies.length) return;
  const { element, format, SPLIT, placeText, chartStudies: studies } = page;
  const data = page.data();
  const STEPS = 400; // of the slider
  const SNAP = 9; // pixels within which a measured size attracts the pointer
  const TOGGLES = { repeats: "repeats", published: "published", elsewhere: "measured elsewhere" };
  const rows = [...document.querySelectorAll(".row")];
  const state = { study: studies[0], y: null, x: null, line: null, size: null, steps: null, repeats: true, published: true, elsewhere: true };
  let seen = null;
  let scale = null;

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
  const slider = element("input", { type: "range", min: 0, "aria-label": "size" });
  const toggles = Object.entries(TOGGLES).map(([key, title]) => {
    const control = element("input", { type: "checkbox", change: () => set({ [key]: control.checked }) });
    return { key, control, label: element("label", {}, control, ` ${title}`) };
  });
  const mine = element("div", { class: "controls" }, element("label", {}, "my size ", typed), slider);
  const typedSteps = element("input", { type: "text", name: "steps", inputmode: "numeric", size: 11, autocomplete: "off", placeholder: "per step" });
  const run = element("div", { class: "controls" }, element("label", {}, "steps of my run ", typedSteps));
  const readout = element("p", { class: "readout", role: "status" });
  const plot = element("div", { class: "plot" });
  const legend = element("ul", { class: "legend" });
  const button = (title, act) => element("button", { type: "button", click: act }, title);

  function fill({ control, label }, options, chosen) {
    control.replaceChildren(...options.map(({ key, title }) => new Option(title, key, false, key === chosen)));
    label.hidden = options.length < 2;
  }

  // The slider moves along the axis, or from one measured size to the next.
  function fromStep(step) {
    const [low, high] = [seen.sizes[0], seen.sizes.at(-1)];
    if (!seen.between) return seen.sizes[step];
    return step === 0 ? low : step === STEPS ? high : low * (high / low) ** (step / STEPS);
  }
  function toStep() {
    const [low, high] = [seen.sizes[0], seen.sizes.at(-1)];
    if (!seen.between) return seen.sizes.indexOf(seen.size);
    return high > low ? Math.round((STEPS * Math.log(seen.size / low)) / Math.log(high / low)) : 0;
  }

  function render() {
    seen = page.viewOf(state);
    for (const row of rows) row.setAttribute("aria-pressed", String(row.dataset.chart === state.study));
    fill(study, studies.map((key) => ({ key, title: data.studies[key].title })), state.study);
    fill(metric, seen.metrics, seen.metric?.key);
    fill(group, seen.lines.map((key) => ({ key, title: key })), seen.line);
    fill(axis, seen.metric === SPLIT ? [] : seen.axes, seen.x.key);
    const possible = {
      repeats: seen.metric?.key === "step_time_s" && seen.rows.some(({ place }) => data.repeats?.[place].length > 1),
      published: seen.shown.length > 0 && page.publishedCrossover(seen).length + page.publishedMarks(seen).length > 0,
      elsewhere: seen.hasElsewhere,
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
    const words = page.readingOf(seen);
    const label = `${data.studies[state.study].title}: ${seen.metric?.title ?? "nothing"}`;
    readout.textContent = words;
    mine.hidden = seen.sizes.length < 2;
    run.hidden = !seen.hasStartups;
    if (document.activeElement !== typedSteps) typedSteps.value = seen.steps ? format.whole(seen.steps) : "";
    if (document.activeElement !== typed) typed.value = seen.places?.[seen.size] ?? format.place(seen.size ?? 0, seen.x.title);
    slider.max = seen.between ? STEPS : Math.max(seen.sizes.length - 1, 0);
    slider.value = toStep();
    slider.setAttribute("aria-valuetext", seen.metric ? placeText(seen, seen.size) : "");
    legend.replaceChildren();
    plot.replaceChildren();
    scale = null;
    for (const download of downloads) download.hidden = !seen.metric;
    if (!seen.metric) return;
    if (seen.metric === SPLIT) {
      plot.append(page.drawSplits(seen, width, label));
      const isThere = (rank) => seen.splits.some(({ place }) => data.splits.cells[place][rank] >= 0.005);
      const parts = data.splits.words.map((part, rank) => [part, rank]).filter(([, rank]) => isThere(rank));
      legend.append(...parts.map(([part, rank]) => entry(`background: ${data.splits.colours[rank]}`, part)));
      return;
    }
    const looks = page.looksOf(seen.shown);
    const { picture, scale: newScale, named } = page.drawLines(seen, looks, state, width, label);
    scale = newScale;
    plot.append(picture);
    if (state.published) legend.append(...page.publishedLegend(seen).map(([mark, words]) => element("li", {}, mark, words)));
    if (!named) {
      const kind = ({ dashes }) => ({ none: "solid", "7 5": "dashed" })[dashes] ?? "dotted";
      legend.append(...[...looks.values()].map((look) => entry(`border-top: 3px ${kind(look)} ${look.colour}`, look.name)));
    }
  }

  typed.addEventListener("change", () => {
    const size = page.readNumber(typed.value)?.value;
    if (!(size > 0 && Number.isFinite(size))) {
      readout.textContent = `“${typed.value}” is not a size; type a number above 0, such as 2,000 or 703 k.`;
      return;
    }
    set({ size });
  });
  typedSteps.addEventListener("change", () => {
    const steps = page.readNumber(typedSteps.value)?.value;
    if (typedSteps.value.trim() && !(steps >= 1 && Number.isFinite(steps))) {
      readout.textContent = `“${typedSteps.value}” is not a number of steps; type a number of at least 1, such as 2,000 or 1.5 M, or clear the field for a single step.`;
      return;
    }
    set(steps ? { steps: Math.round(steps), y: "speedup" } : { steps: null });
  });
  slider.addEventListener("input", () => { state.size = fromStep(Number(slider.value)); render(); });
  slider.addEventListener("change", remember);
  // Keys move from one measured size to the next.
  slider.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
    if (!(event.key in steps) || !seen.between) return;
    event.preventDefault();
    const next = steps[event.key] > 0 ? seen.sizes.find((size) => size > seen.size) : seen.sizes.findLast((size) => size < seen.size);
    if (next) set({ size: next });
  });
  // Screen readers do not announce sizes that the pointer passes over.
  plot.addEventListener("pointerenter", () => readout.setAttribute("aria-live", "off"));
  plot.addEventListener("pointermove", (event) => {
    const pixel = event.clientX - plot.getBoundingClientRect().left;
    if (!scale || pixel < scale.left || pixel > scale.right) return;
    state.size = seen.sizes.find((size) => Math.abs(scale.x(size) - pixel) < SNAP) ?? scale.at(pixel);
    seen.wantedSize = seen.size = page.within(state.size, seen.sizes);
    draw();
  });
  plot.addEventListener("pointerleave", () => {
    readout.setAttribute("aria-live", "polite");
    remember();
  });

  // --- Address ---

  function remember() {
    const { study: name, y, x, line, size, steps } = state;
    const values = { study: name, y, x, line, size: size && Number(size.toPrecision(4)), steps };
    const off = toggles.filter(({ key }) => !state[key]).map(({ key }) => [key, "off"]);
    const given = Object.entries(values).filter(([, value]) => value !== null && value !== "");
    history.replaceState(null, "", `#chart?${new URLSearchParams([...given, ...off])}`);
  }

  function recall() {
    if (!location.hash.startsWith("#chart?")) return false;
    const parameters = Object.fromEntries(new URLSearchParams(location.hash.slice("#chart?".length)));
    state.study = studies.includes(parameters.study) ? parameters.study : studies[0];
    for (const key of ["y", "x", "line"]) state[key] = parameters[key] ?? null;
    state.size = Number(parameters.size) > 0 ? Number(parameters.size) : null;
    state.steps = Number(parameters.steps) >= 1 ? Number(parameters.steps) : null;
    for (const { key } of toggles) state[key] = parameters[key] !== "off";
    return true;
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
    copy.prepend(page.drawn("title", {}, copy.getAttribute("aria-label")));
    const heading = copy.querySelector(".metric");
    if (heading) heading.textContent = copy.getAttribute("aria-label");
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
      ["device", "line", x, seen.steps ? seen.metric.title : seen.metric.key, "low", "high"],
      ...seen.shown.flatMap((series) => series.points.flatMap(({ at, row }) => {
        const point = page.pointOf(row, seen.metric);
        return point ? [[series.label, series.group, seen.places ? seen.places[at] : at, point.value, point.low, point.high]] : [];
      })),
    ];
    const quoted = (value) => `"${String(page.csvText(value ?? "")).replaceAll('"', '""')}"`;
    const rows = seen.metric === SPLIT ? splits() : lines();
    save("csv", rows.map((cells) => cells.map(quoted).join(",")).join("\n"), "text/csv");
  }

  const downloads = [button("SVG", () => save("svg", source(), "image/svg+xml")), button("PNG", savePng), button("CSV", saveCsv)];
  box.append(
    element("div", { class: "controls" }, study.label, metric.label, group.label, axis.label),
    mine, run, readout, plot, legend,
    element("div", { class: "controls small" },
      ...toggles.map(({ label }) => label),
      ...downloads, button("these cells as a table", () => page.showStudyInTable(state.study))));
  recall();
  render();
  window.addEventListener("hashchange", () => { if (recall()) render(); });
  for (const row of rows) {
    row.disabled = !studies.includes(row.dataset.chart);
    row.addEventListener("click", () => {
      set({ study: row.dataset.chart, line: null, x: null, size: null });
      box.scrollIntoView({ block: "nearest" });
    });
  }
  new ResizeObserver(draw).observe(plot);
  document.addEventListener("crossover:theme", render);
})(window.Crossover);
