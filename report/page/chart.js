// The page's chart: controls, the readout at a size, and downloads. Its state is in the page's address.
"use strict";
((page) => {
  const box = document.getElementById("chart");
  if (!page.chartStudies.length) return;
  const { element, format, SPLIT, placeText, chartStudies: studies } = page;
  const data = page.data();
  const STEPS = 400; // of the slider
  const SNAP = 9; // distance in pixels from which the pointer snaps to a measured size
  const TOGGLES = { repeats: "repeats", published: "published", elsewhere: "measured elsewhere" };
  const rows = [...document.querySelectorAll(".row")];
  const state = { study: studies[0], y: null, x: null, line: null, size: null, steps: null, repeats: true, published: true, elsewhere: true };
  let view = null;
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
  const mySize = element("label", {}, "my size ", typed);
  const typedSteps = element("input", { type: "text", name: "steps", inputmode: "numeric", size: 11, autocomplete: "off", placeholder: "per step" });
  const mySteps = element("label", {}, "steps of my run ", typedSteps);
  const readout = element("p", { class: "readout", role: "status" });
  const plot = element("div", { class: "plot" });
  const legend = element("ul", { class: "legend" });
  const button = (title, act) => element("button", { type: "button", click: act }, title);

  function fill({ control, label }, options, chosen) {
    control.replaceChildren(...options.map(({ key, title }) => new Option(title, key, false, key === chosen)));
    label.hidden = options.length < 2;
  }

  // The slider moves along the axis or, if lines have no values between measured sizes, from one size to the next.
  function fromStep(step) {
    const [low, high] = [view.sizes[0], view.sizes.at(-1)];
    if (!view.between) return view.sizes[step];
    return step === 0 ? low : step === STEPS ? high : low * (high / low) ** (step / STEPS);
  }
  function toStep() {
    const [low, high] = [view.sizes[0], view.sizes.at(-1)];
    if (!view.between) return view.sizes.indexOf(view.size);
    return high > low ? Math.round((STEPS * Math.log(view.size / low)) / Math.log(high / low)) : 0;
  }

  function render() {
    view = page.viewOf(state);
    for (const row of rows) row.setAttribute("aria-pressed", String(row.dataset.chart === state.study));
    fill(study, studies.map((key) => ({ key, title: data.studies[key].title })), state.study);
    fill(metric, view.metrics, view.metric?.key);
    fill(group, view.lines.map((key) => ({ key, title: key })), view.line);
    fill(axis, view.metric === SPLIT ? [] : view.axes, view.x.key);
    const isPossible = {
      repeats: view.metric?.key === "step_time_s" && view.rows.some(({ place }) => data.repeats?.[place].length > 1),
      published: view.shown.length > 0 && page.publishedCrossover(view).length + page.publishedMarks(view).length > 0,
      elsewhere: view.hasElsewhere,
    };
    for (const { key, control, label } of toggles) {
      control.checked = state[key];
      label.hidden = !isPossible[key];
    }
    draw();
  }

  const entry = (style, words) => element("li", {}, element("span", { class: "swatch", style }), words);

  function draw() {
    const width = plot.clientWidth;
    if (!width) return;
    const label = `${data.studies[state.study].title}: ${view.metric?.title ?? "nothing"}`;
    readout.textContent = page.readoutOf(view);
    mySize.hidden = slider.hidden = view.sizes.length < 2;
    mySteps.hidden = !view.hasStartups;
    if (document.activeElement !== typedSteps) typedSteps.value = view.steps ? format.whole(view.steps) : "";
    if (document.activeElement !== typed) typed.value = view.places?.[view.size] ?? format.place(view.size ?? 0, view.x.title);
    slider.max = view.between ? STEPS : Math.max(view.sizes.length - 1, 0);
    slider.value = toStep();
    slider.setAttribute("aria-valuetext", view.metric ? placeText(view, view.size) : "");
    legend.replaceChildren();
    plot.replaceChildren();
    scale = null;
    for (const download of downloads) download.hidden = !view.metric;
    if (!view.metric) return;
    if (view.metric === SPLIT) {
      plot.append(page.drawSplits(view, width, label));
      const hasShare = (rank) => view.splits.some(({ place }) => data.splits.cells[place][rank] >= 0.005);
      const parts = data.splits.words.map((part, rank) => [part, rank]).filter(([, rank]) => hasShare(rank));
      legend.append(...parts.map(([part, rank]) => entry(`background: ${data.splits.colours[rank]}`, part)));
      return;
    }
    const looks = page.looksOf(view.shown);
    const { picture, scale: newScale, named } = page.drawLines(view, looks, state, width, label);
    scale = newScale;
    plot.append(picture);
    if (state.published) legend.append(...page.publishedLegend(view).map(([mark, words]) => element("li", {}, mark, words)));
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
  slider.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
    if (!(event.key in steps) || !view.between) return;
    event.preventDefault();
    const next = steps[event.key] > 0 ? view.sizes.find((size) => size > view.size) : view.sizes.findLast((size) => size < view.size);
    if (next) set({ size: next });
  });
  // Screen readers do not announce sizes that the pointer passes over.
  plot.addEventListener("pointerenter", () => readout.setAttribute("aria-live", "off"));
  plot.addEventListener("pointermove", (event) => {
    const pixel = event.clientX - plot.getBoundingClientRect().left;
    if (!scale || pixel < scale.left || pixel > scale.right) return;
    state.size = view.sizes.find((size) => Math.abs(scale.x(size) - pixel) < SNAP) ?? scale.at(pixel);
    view.wantedSize = view.size = page.within(state.size, view.sizes);
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
    const switchedOff = toggles.filter(({ key }) => !state[key]).map(({ key }) => [key, "off"]);
    const given = Object.entries(values).filter(([, value]) => value !== null && value !== "");
    history.replaceState(null, "", `#chart?${new URLSearchParams([...given, ...switchedOff])}`);
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
    const link = element("a", { href: URL.createObjectURL(new Blob([content], { type })), download: `${state.study}_${view.metric.key}.${suffix}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function svgSource() {
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
    image.src = `data:image/svg+xml,${encodeURIComponent(svgSource())}`;
  }

  function saveCsv() {
    const x = view.x.key ?? "place";
    const splits = () => [
      ["device", "size", ...data.splits.words],
      ...view.splits.map((row) => [row.device_label, row.size, ...data.splits.cells[row.place]]),
    ];
    const lines = () => [
      ["device", "line", x, view.steps ? view.metric.title : view.metric.key, "low", "high"],
      ...view.shown.flatMap((series) => series.points.flatMap(({ at, row }) => {
        const point = page.pointOf(row, view.metric);
        return point ? [[series.label, series.group, view.places ? view.places[at] : at, point.value, point.low, point.high]] : [];
      })),
    ];
    const quoted = (value) => `"${String(page.csvText(value ?? "")).replaceAll('"', '""')}"`;
    const rows = view.metric === SPLIT ? splits() : lines();
    save("csv", rows.map((cells) => cells.map(quoted).join(",")).join("\n"), "text/csv");
  }

  const downloads = [button("SVG", () => save("svg", svgSource(), "image/svg+xml")), button("PNG", savePng), button("CSV", saveCsv)];
  box.append(
    element("div", { class: "controls" }, study.label, metric.label, group.label, axis.label),
    element("div", { class: "controls" }, mySize, slider, mySteps),
    readout, plot, legend,
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
})(window.Crossover);
