// The page's chart: a study's cells over size as SVG, with a size to drag. Its state is in the address.
"use strict";
((page) => {
  const box = document.getElementById("chart");
  if (!box) return;
  const { element, format } = page;
  const PAD = { left: 14, right: 22, top: 36, bottom: 50 };
  const STEPS = 400; // of the slider
  const SNAP = 9; // pixels within which a measured size attracts the pointer
  const MOST_GROUPS = 3;
  const MOST_BARS = 24;
  const MOST_NAME = 260; // pixels beside the plot for the names of lines
  const MOST_DOTS = 5; // repeats of a cell that are drawn; above, its interval is
  const SPLIT = { key: "split", title: "where the time goes" };
  const TOGGLES = { repeats: "repeats", published: "published", elsewhere: "measured elsewhere" };
  const data = page.data();
  const studies = Object.keys(data.studies).filter((name) => data.rows.some((row) => row.study === name));
  if (!studies.length) return;
  const state = { study: studies[0], y: "step_time_s", x: null, line: null, size: null, repeats: true, published: true, elsewhere: true };

  const drawn = (tag, attributes = {}, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const quoted = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;

  // What the state asks for: the study's metrics, axes, groups of series, and those shown.
  function view() {
    const rows = data.rows.filter((row) => row.study === state.study);
    // Of a machine elsewhere its accelerators count, and its CPU on all cores.
    const elsewhere = data.elsewhere.rows.filter((row) => row.study === state.study && !row.device.startsWith("cpu-"));
    const all = [...rows, ...elsewhere];
    const metrics = data.metrics.filter((metric) => all.some((row) => page.pointOf(row, metric)));
    const split = rows.filter((row) => data.splits.cells[row.place]);
    if (split.length) metrics.push(SPLIT);
    const metric = metrics.find(({ key }) => key === state.y) ?? metrics[0];
    const axes = page.xChoices(rows);
    const x = axes.find(({ key }) => key === state.x) ?? axes.find(({ key }) => key === data.studies[state.study].x_axis) ?? axes[0];
    const { series, places } = page.seriesOf(rows, elsewhere, x.key);
    const groupOf = new Map(series.filter((one) => !one.elsewhere).flatMap(({ group, points }) => points.map(({ row }) => [row, group])));
    const groups = [...new Set(groupOf.values())];
    const line = groups.includes(state.line) ? state.line : groups.length > MOST_GROUPS ? groups[0] : "";
    const shown = series.filter((one) => (line === "" || one.group === line) && (state.elsewhere || !one.elsewhere)
      && metric && metric !== SPLIT && one.points.some(({ row }) => page.pointOf(row, metric)));
    const sizes = [...new Set(shown.flatMap(({ points }) => points.map(({ at }) => at)))].sort((one, other) => one - other);
    const size = sizes.length ? Math.min(Math.max(state.size ?? middle(sizes, rows, x), sizes[0]), sizes.at(-1)) : null;
    const splits = split.filter((row) => line === "" || groupOf.get(row) === line).slice(0, MOST_BARS);
    const whose = (row) => (line === "" && groups.length > 1 ? `, ${groupOf.get(row)}` : "");
    const mine = new Set(rows.filter((row) => line === "" || groupOf.get(row) === line).map((row) => row.place));
    return { rows, mine, metrics, metric, axes, x, places, groups, line, shown, sizes, size, splits, whose };
  }

  // Where a chart begins: at its first crossover, else at the middle size.
  function middle(sizes, rows, x) {
    const places = new Set(rows.map((row) => row.place));
    const crossover = data.crossovers.find(({ cell, on }) => places.has(cell) && on[x.key]);
    if (!crossover) return sizes[Math.floor(sizes.length / 2)];
    const [at, low, high] = crossover.on[x.key];
    return at ?? Math.sqrt(low * high);
  }

  function looksOf(shown) {
    const groups = [...new Set(shown.map(({ group }) => group))];
    const devices = new Set(shown.map(({ device }) => device));
    const { palette, devices: own } = data.colours;
    return new Map(shown.map((one) => {
      const rank = groups.indexOf(one.group);
      const colour = groups.length > 1 ? palette[rank % palette.length] : own[one.device];
      const dashes = one.elsewhere ? "7 5" : groups.length > 1 && devices.size > 1 && one.device.startsWith("cpu") ? "2 3" : "none";
      const several = groups.length > 1 ? `${one.label}, ${one.group}` : one.label;
      return [one, { colour: colour === "#111111" ? ink("ink") : colour, dashes, name: several }];
    }));
  }

  // --- Drawing ---

  const spread = (values) => {
    const known = values.filter((value) => value > 0);
    const [low, high] = known.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, 0]);
    return high ? [low / 1.3, high * 1.3] : [0.1, 10];
  };

  function scalesOf(seen, width, height, room) {
    const points = seen.shown.flatMap(({ points: own }) => own.map(({ row }) => page.pointOf(row, seen.metric))).filter(Boolean);
    const level = seen.metric.key === "speedup" ? [1] : [];
    const ys = spread([...points.map(({ value }) => value), ...level]);
    const xs = seen.places ? [-0.5, seen.places.length - 0.5] : spread(seen.sizes);
    const top = PAD.top;
    const bottom = height - PAD.bottom;
    const yTicks = page.logTicks(ys, bottom - top, () => page.CHART_FONT_PX);
    const left = PAD.left + Math.max(...yTicks.map((at) => page.widthOf(page.metricText(seen.metric, at))), 30);
    const right = width - PAD.right - room;
    const share = (at, [low, high], log) => (log ? Math.log(at / low) / Math.log(high / low) : (at - low) / (high - low));
    const log = !seen.places;
    return {
      left, right, top, bottom, yTicks,
      xTicks: log ? page.logTicks(xs, right - left, (at) => page.widthOf(format.count(at))) : seen.places.map((_, place) => place),
      x: (at) => left + share(at, xs, log) * (right - left),
      y: (at) => bottom - Math.min(Math.max(share(at, ys, true), 0), 1) * (bottom - top),
      at: (pixel) => {
        const part = (pixel - left) / (right - left);
        return log ? xs[0] * (xs[1] / xs[0]) ** part : Math.round(xs[0] + part * (xs[1] - xs[0]));
      },
    };
  }

  function text(words, x, y, attributes = {}) {
    return drawn("text", { x, y, fill: ink("soft"), "font-size": page.CHART_FONT_PX, ...attributes }, words);
  }

  function axes(seen, scale) {
    const grid = { stroke: ink("line"), "stroke-width": 1 };
    const xWords = (at) => (seen.places ? seen.places[at] : format.count(at));
    return drawn("g", {},
      ...scale.yTicks.map((at) => drawn("path", { d: `M${scale.left},${scale.y(at)}H${scale.right}`, ...grid })),
      ...scale.yTicks.map((at) => text(page.metricText(seen.metric, at), scale.left - 8, scale.y(at) + 4, { "text-anchor": "end" })),
      drawn("path", { d: `M${scale.left},${scale.bottom}H${scale.right}`, stroke: ink("soft"), "stroke-width": 1 }),
      ...scale.xTicks.map((at) => text(xWords(at), scale.x(at), scale.bottom + 18, { "text-anchor": "middle" })),
      text(seen.x.title, (scale.left + scale.right) / 2, scale.bottom + 40, { "text-anchor": "middle" }),
      text(seen.metric.title, PAD.left, 14));
  }

  // Crossovers and what was published, behind the lines.
  function marks(seen, scale) {
    const parts = [];
    const inside = (at) => Math.min(Math.max(scale.x(at), scale.left), scale.right);
    const band = (low, high, opacity) => drawn("rect", { x: inside(low), y: scale.top, width: Math.max(inside(high) - inside(low), 1), height: scale.bottom - scale.top, fill: ink("soft"), opacity });
    const upright = (at, dashes) => drawn("path", { d: `M${inside(at)},${scale.top}V${scale.bottom}`, stroke: ink("soft"), "stroke-dasharray": dashes, "stroke-width": 1.2 });
    const timed = ["seconds", "rate"].includes(seen.metric.kind) || seen.metric.key === "speedup";
    const found = timed ? data.crossovers.filter(({ cell, on }) => seen.mine.has(cell) && on[seen.x.key] && (state.elsewhere || on[seen.x.key][0] !== null)) : [];
    for (const [rank, { on }] of found.entries()) {
      const [at, low, high, words] = on[seen.x.key];
      if (low !== null || high !== null) parts.push(band(low ?? scale.at(scale.left), high ?? scale.at(scale.right), 0.14));
      const place = at ?? high;
      const right = inside(place) > (scale.left + scale.right) / 2;
      if (at !== null) parts.push(upright(at, "none"));
      const room = right ? inside(place) - scale.left : scale.right - inside(place);
      const choices = [`${at === null ? "would cross at" : "crossover"} ${words}`, words, words.split(" (")[0]];
      const label = choices.find((one) => page.widthOf(one) + 10 < room);
      if (rank < 2 && label) parts.push(text(label, inside(place) + (right ? -6 : 6), scale.top + 10 + 16 * rank, { "text-anchor": right ? "end" : "start", fill: ink("ink"), class: "halo" }));
    }
    const { crossover } = data.published[state.study] ?? {};
    if (state.published && timed && crossover && seen.x.key === data.studies[state.study].x_axis) {
      const [low, high] = [Math.min(...crossover), Math.max(...crossover)];
      parts.push(low === high ? upright(low, "5 4") : band(low, high, 0.22), text(`published ${[...new Set([low, high])].map((end) => format.count(end)).join(" to ")}`, inside(low) + 6, scale.bottom - 8, { class: "halo" }));
    }
    if (seen.metric.key === "speedup") parts.push(drawn("path", { d: `M${scale.left},${scale.y(1)}H${scale.right}`, stroke: ink("ink"), "stroke-width": 1.2 }), text("equally fast", scale.left + 6, scale.y(1) - 6, { class: "halo" }));
    return drawn("g", {}, ...parts);
  }

  function publishedTimes(seen, scale) {
    const { times } = data.published[state.study] ?? {};
    if (!state.published || !times || seen.metric.key !== "step_time_s" || seen.x.key !== "size") return [];
    return times.filter(([size]) => scale.x(size) >= scale.left && scale.x(size) <= scale.right).map(([size, device, seconds, words]) =>
      drawn("rect", { x: scale.x(size) - 4, y: scale.y(seconds) - 4, width: 8, height: 8, fill: "none", stroke: data.colours.devices[device] ?? ink("soft"), "stroke-width": 1.4 },
        drawn("title", {}, `published: ${words}, ${format.whole(size)}: ${format.seconds(seconds)}`)));
  }

  function line(one, look, seen, scale) {
    const points = one.points.flatMap(({ at, row }) => {
      const point = page.pointOf(row, seen.metric);
      return point ? [{ ...point, at, row }] : [];
    });
    const stroke = { stroke: look.colour, fill: "none" };
    const path = points.map(({ at, value }, rank) => `${rank ? "L" : "M"}${scale.x(at)},${scale.y(value)}`).join("");
    const repeats = ({ row }) => (one.elsewhere || seen.metric.key !== "step_time_s" ? [] : data.repeats?.[row.place] ?? []);
    const few = (point) => state.repeats && repeats(point).length > 1 && repeats(point).length <= MOST_DOTS;
    const bars = points.filter((point) => point.low !== null && point.high !== null && !few(point) && !one.elsewhere);
    const lost = one.points.filter(({ row }) => row.status !== "ok" && !page.pointOf(row, seen.metric));
    return drawn("g", {},
      ...(seen.places ? [] : [drawn("path", { d: path, ...stroke, "stroke-width": 2, "stroke-dasharray": look.dashes })]),
      ...bars.map(({ at, low, high }) => drawn("path", { d: `M${scale.x(at)},${scale.y(low)}V${scale.y(high)}`, ...stroke, "stroke-width": 5, opacity: 0.35 })),
      ...points.filter(few).flatMap((point) => repeats(point).map((value) => drawn("circle", { cx: scale.x(point.at), cy: scale.y(value), r: 2.2, fill: look.colour, opacity: 0.55 }))),
      ...points.map((point) => drawn("circle", { cx: scale.x(point.at), cy: scale.y(point.value), r: one.elsewhere ? 2.5 : 4, fill: one.elsewhere ? ink("paper") : look.colour, stroke: look.colour })),
      ...lost.map(({ at, row }) => {
        const [x, y] = [scale.x(at), scale.bottom - 8];
        return drawn("path", { class: "lost", d: `M${x - 4},${y - 4}L${x + 4},${y + 4}M${x - 4},${y + 4}L${x + 4},${y - 4}`, ...stroke, "stroke-width": 2 }, drawn("title", {}, `${look.name}: ${row.status}${row.reason ? `, ${row.reason}` : ""}`));
      }));
  }

  // Names at the right ends of lines, pushed apart.
  function names(seen, looks, scale) {
    const ends = seen.shown.map((one) => {
      const last = one.points.filter(({ row }) => page.pointOf(row, seen.metric)).at(-1);
      return { one, y: scale.y(page.pointOf(last.row, seen.metric).value) };
    }).sort((first, second) => first.y - second.y);
    for (const [rank, end] of ends.entries()) if (rank) end.y = Math.max(end.y, ends[rank - 1].y + 32);
    const over = ends.length ? Math.max(0, ends.at(-1).y - scale.bottom + 16) : 0;
    return ends.map(({ one, y }) => {
      const [first, ...rest] = looks.get(one).name.split(/ (?=\()/);
      const place = { x: scale.right + 10, fill: looks.get(one).colour };
      return drawn("text", { y: y - over + 4, "font-size": page.CHART_FONT_PX, "font-weight": 600, ...place },
        drawn("tspan", { x: place.x }, first), ...(rest.length ? [drawn("tspan", { x: place.x, dy: 15, "font-weight": 400, "font-size": page.CHART_FONT_PX - 2 }, rest.join(", "))] : []));
    });
  }

  function cursor(seen, looks, scale) {
    if (seen.size === null) return [];
    const dots = seen.shown.flatMap((one) => {
      const found = page.valueAt(one, seen.metric, seen.size, !seen.places);
      return found ? [drawn("circle", { cx: scale.x(seen.size), cy: scale.y(found.value), r: 6, fill: "none", stroke: looks.get(one).colour, "stroke-width": 2 })] : [];
    });
    return [drawn("path", { class: "cursor", d: `M${scale.x(seen.size)},${scale.top}V${scale.bottom}`, stroke: ink("accent"), "stroke-width": 1.5 }), ...dots];
  }

  // Where the time goes: a bar a cell.
  function bars(seen, width) {
    const rows = seen.splits;
    const name = (row) => `${row.device_label.split(" (")[0]} ${row.size_label ?? format.whole(row.size)}${seen.whose(row)}`;
    const left = PAD.left + Math.max(...rows.map((row) => page.widthOf(name(row)))) + 8;
    const scale = (width - left - PAD.right);
    return rows.map((row, rank) => {
      let at = left;
      const parts = data.splits.cells[row.place].map((share, part) => {
        const own = drawn("rect", { x: at, y: 8 + 26 * rank, width: Math.max(share * scale, 0), height: 20, fill: data.splits.colours[part] }, drawn("title", {}, `${data.splits.words[part]}: ${Math.round(100 * share)} %`));
        at += share * scale;
        return own;
      });
      return drawn("g", {}, text(name(row), left - 8, 22 + 26 * rank, { "text-anchor": "end" }), ...parts);
    });
  }

  // --- Words ---

  function reading(seen) {
    if (!seen.shown.length || seen.size === null) return "";
    const place = seen.places ? seen.places[seen.size] : `${format.count(seen.size)} ${seen.x.title}`;
    const groups = [...new Set(seen.shown.map(({ group }) => group))];
    const said = groups.map((group) => {
      const told = seen.shown.filter((one) => one.group === group && !(one.elsewhere && one.device === "cpu"));
      const found = told.map((one) => ({ one, found: page.valueAt(one, seen.metric, seen.size, !seen.places) }));
      const short = (one) => one.label.replace(/ \(.*\)/, one.elsewhere ? "$&" : "");
      const values = found.map(({ one, found: own }) => `${short(one)} ${own ? page.metricText(seen.metric, own.value) : "not measured there"}${own?.measured && own.low !== null && !one.elsewhere ? ` (95 %: ${page.metricText(seen.metric, own.low)} to ${page.metricText(seen.metric, own.high)})` : ""}`);
      const timed = found.filter(({ found: own }) => own).sort((first, second) => first.found.value - second.found.value);
      const ratio = timed.length > 1 ? timed.at(-1).found.value / timed[0].found.value : 1;
      const ahead = seen.metric.kind !== "seconds" || timed.length < 2 ? "" : ratio < 1.005 ? ": equally fast"
        : `: ${short(timed[0].one)} ${format.number(ratio)} times as fast as ${short(timed.at(-1).one)}`;
      return `${groups.length > 1 ? `${group}: ` : ""}${values.join(", ")}${ahead}`;
    });
    const measured = seen.sizes.includes(seen.size) ? "" : " (between sizes that were measured)";
    return `At ${place}${measured}: ${said.join("; ")}.`;
  }

  // --- Controls ---

  const choose = (title, act) => {
    const control = element("select", { name: title, change: () => act(control.value) });
    return { control, label: element("label", {}, `${title} `, control) };
  };
  const set = (changes) => { Object.assign(state, changes); render(); remember(); };
  const study = choose("study", (value) => set({ study: value, line: null, x: null, size: null }));
  const metric = choose("show", (value) => set({ y: value }));
  const group = choose("line", (value) => set({ line: value }));
  const axis = choose("over", (value) => set({ x: value, size: null }));
  const typed = element("input", { type: "text", name: "size", inputmode: "numeric", size: 11, autocomplete: "off" });
  const slider = element("input", { type: "range", min: 0, max: STEPS, "aria-label": "my size" });
  const toggles = Object.fromEntries(Object.entries(TOGGLES).map(([key, title]) => {
    const control = element("input", { type: "checkbox", change: () => set({ [key]: control.checked }) });
    return [key, { control, label: element("label", {}, control, ` ${title}`) }];
  }));
  const plot = element("div", { class: "plot" });
  const legend = element("ul", { class: "legend" });
  const readout = element("p", { class: "readout", role: "status" });
  const mine = element("div", { class: "controls" }, element("label", {}, "my size ", typed), slider);
  const button = (title, act) => element("button", { type: "button", click: act }, title);
  const options = (select, values, chosen, titleOf = (value) => value) => {
    select.replaceChildren(...values.map((value) => new Option(titleOf(value), value, false, value === chosen)));
    select.parentElement.hidden = values.length < 2;
  };

  const ends = (seen) => [seen.sizes[0], seen.sizes.at(-1)];
  const toStep = (seen) => {
    const [low, high] = ends(seen);
    if (seen.places) return seen.size;
    return high > low ? Math.round((STEPS * Math.log(seen.size / low)) / Math.log(high / low)) : 0;
  };
  const fromStep = (seen, step) => {
    const [low, high] = ends(seen);
    return seen.places ? step : step === 0 ? low : step === STEPS ? high : low * (high / low) ** (step / STEPS);
  };

  let seen = null;
  let scale = null;

  function render() {
    seen = view();
    options(study.control, studies, state.study, (name) => data.studies[name].title);
    options(metric.control, seen.metrics.map(({ key }) => key), seen.metric?.key, (key) => seen.metrics.find((one) => one.key === key).title);
    options(group.control, [...(seen.groups.length <= 7 ? [""] : []), ...seen.groups], seen.line, (value) => value || "all");
    group.control.parentElement.hidden = seen.groups.length < 2;
    options(axis.control, seen.axes.map(({ key }) => key), seen.x.key, (key) => seen.axes.find((one) => one.key === key).title);
    const here = data.elsewhere.rows.some((row) => row.study === state.study);
    const source = data.published[state.study] ?? {};
    const possible = { repeats: data.repeats !== null, published: Boolean(source.crossover || source.times?.length), elsewhere: here };
    for (const [key, { control, label }] of Object.entries(toggles)) {
      control.checked = state[key];
      label.hidden = !possible[key];
    }
    draw();
  }

  function draw() {
    const width = plot.clientWidth;
    if (!width) return;
    const split = seen.metric === SPLIT;
    const looks = looksOf(seen.shown);
    const longest = Math.max(0, ...seen.shown.map((one) => Math.max(...looks.get(one).name.split(/ (?=\()/).slice(0, 2).map(page.widthOf))));
    const wide = width >= 700 && seen.shown.length <= 8 && seen.shown.length > 0 && longest <= MOST_NAME;
    const height = split ? 30 + 26 * seen.splits.length : Math.max(260, Math.min(400, 0.5 * width));
    const label = `${data.studies[state.study].title}: ${seen.metric?.title ?? "nothing measured"}. ${split ? "" : reading(seen)}`;
    const picture = drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, "font-family": getComputedStyle(document.body).fontFamily });
    mine.hidden = split || seen.size === null;
    legend.replaceChildren();
    if (!seen.metric) {
      readout.textContent = "No cell of this study has a value to draw; the table of cells says why.";
      plot.replaceChildren();
      return;
    }
    if (split) {
      picture.append(...bars(seen, width));
      legend.append(...data.splits.words.map((words, part) => element("li", {}, element("span", { class: "swatch", style: `background: ${data.splits.colours[part]}` }), words)));
      readout.textContent = "Shares of a step's time; the answers below say what helps.";
    } else {
      scale = scalesOf(seen, width, height, wide ? longest + 12 : 0);
      picture.append(axes(seen, scale), marks(seen, scale), ...seen.shown.map((one) => line(one, looks.get(one), seen, scale)), ...publishedTimes(seen, scale), ...cursor(seen, looks, scale), ...(wide ? names(seen, looks, scale) : []));
      if (!wide) legend.append(...seen.shown.map((one) => element("li", {}, element("span", { class: "swatch", style: `border-top: 3px ${one.elsewhere ? "dashed" : looks.get(one).dashes === "none" ? "solid" : "dotted"} ${looks.get(one).colour}` }), looks.get(one).name)));
      const words = reading(seen);
      readout.textContent = words;
      if (document.activeElement !== typed) typed.value = seen.places ? seen.places[seen.size] : format.count(seen.size);
      slider.max = seen.places ? seen.places.length - 1 : STEPS;
      slider.value = toStep(seen);
      slider.setAttribute("aria-valuetext", words);
    }
    plot.replaceChildren(picture);
  }

  typed.addEventListener("change", () => {
    const asked = page.readNumber(typed.value)?.value;
    if (!(asked > 0)) readout.textContent = `“${typed.value}” is no size; type a number above 0, such as 2,000 or 703 k.`;
    else {
      const [low, high] = ends(seen);
      set({ size: asked });
      if (asked < low || asked > high) readout.textContent = `Only ${format.count(low)} to ${format.count(high)} ${seen.x.title} were measured. ${readout.textContent}`;
    }
  });
  slider.addEventListener("input", () => { state.size = fromStep(seen, Number(slider.value)); render(); });
  slider.addEventListener("change", remember);
  plot.addEventListener("pointermove", (event) => {
    if (!scale || seen.metric === SPLIT || seen.size === null) return;
    const pixel = event.clientX - plot.getBoundingClientRect().left;
    if (pixel < scale.left || pixel > scale.right) return;
    state.size = seen.sizes.find((size) => Math.abs(scale.x(size) - pixel) < SNAP) ?? scale.at(pixel);
    seen.size = Math.min(Math.max(state.size, seen.sizes[0]), seen.sizes.at(-1));
    draw();
  });
  plot.addEventListener("pointerleave", remember);

  // --- Address and downloads ---

  function remember() {
    const known = Object.entries({ study: state.study, y: state.y, x: state.x, line: state.line, size: state.size && Number(state.size.toPrecision(4)) })
      .filter(([, value]) => value !== null && value !== "").concat(Object.keys(TOGGLES).filter((key) => !state[key]).map((key) => [key, "off"]));
    history.replaceState(null, "", `#chart?${new URLSearchParams(known)}`);
  }
  function recall() {
    if (!location.hash.startsWith("#chart?")) return;
    const known = Object.fromEntries(new URLSearchParams(location.hash.slice("#chart?".length)));
    if (studies.includes(known.study)) state.study = known.study;
    for (const key of ["y", "x", "line"]) state[key] = known[key] ?? state[key];
    if (Number(known.size) > 0) state.size = Number(known.size);
    for (const key of Object.keys(TOGGLES)) state[key] = known[key] !== "off";
  }

  function save(name, blob) {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  function picture() {
    const copy = plot.querySelector("svg").cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.prepend(drawn("rect", { width: "100%", height: "100%", fill: ink("paper") }));
    return new XMLSerializer().serializeToString(copy);
  }
  const named = (suffix) => `${state.study}_${seen.metric.key}.${suffix}`;
  const saveSvg = () => save(named("svg"), new Blob([picture()], { type: "image/svg+xml" }));
  function savePng() {
    const source = plot.querySelector("svg");
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = element("canvas", { width: 2 * source.clientWidth, height: 2 * source.clientHeight });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(named("png"), blob));
    });
    image.src = `data:image/svg+xml,${encodeURIComponent(picture())}`;
  }
  function saveCsv() {
    const lines = seen.metric === SPLIT
      ? seen.splits.map((row) => [row.device_label, "", row.size, ...data.splits.cells[row.place]])
      : seen.shown.flatMap((one) => one.points.map(({ at, row }) => ({ at, point: page.pointOf(row, seen.metric) })).filter(({ point }) => point)
        .map(({ at, point }) => [one.label, one.group, seen.places ? seen.places[at] : at, point.value, point.low, point.high]));
    const head = ["device", "line", seen.x.key ?? "place", ...(seen.metric === SPLIT ? data.splits.words : [seen.metric.key, "low", "high"])];
    save(named("csv"), new Blob([[head, ...lines].map((cells) => cells.map((cell) => quoted(page.csvText(cell))).join(",")).join("\n")], { type: "text/csv" }));
  }

  box.append(
    element("div", { class: "controls" }, study.label, metric.label, group.label, axis.label),
    mine, readout, plot, legend,
    element("div", { class: "controls small" }, ...Object.values(toggles).map(({ label }) => label), button("SVG", saveSvg), button("PNG", savePng), button("CSV", saveCsv),
      button("these cells as a table", () => page.showStudyInTable(state.study))));
  recall();
  render();
  page.showChart = (name) => { set({ study: name, line: null, x: null, size: null }); box.scrollIntoView(); };
  for (const link of document.querySelectorAll("[data-chart]")) {
    link.addEventListener("click", (event) => { event.preventDefault(); page.showChart(link.dataset.chart); });
  }
  new ResizeObserver(draw).observe(plot);
  document.addEventListener("crossover:theme", render);
})(window.Crossover);
