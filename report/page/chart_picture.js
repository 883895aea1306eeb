// The chart's picture as SVG: ticks, scales, crossovers, published values, lines with their repeats, and bars of shares.
"use strict";
((page) => {
  // --- Ticks: round positions, as many as have space for labels ---

  const GAP = 14; // between two labels in pixels
  const SETS = [[1, 2, 5], [1, 3], [1]];
  const MANY = [1, 2, 3, 4, 5, 7];
  const context = document.createElement("canvas").getContext("2d");

  page.CHART_FONT_PX = 13;

  // In pixels, in the chart's font.
  page.widthOf = (words) => {
    context.font = `${page.CHART_FONT_PX}px ${getComputedStyle(document.body).fontFamily}`;
    return context.measureText(words).width;
  };

  // The positions whose labels do not overlap previous ones; `length` is that of the axis in pixels.
  function withoutOverlap(places, [low, high], length, sizeOf) {
    let end = -Infinity;
    return places.filter((at) => {
      const middle = (length * Math.log(at / low)) / Math.log(high / low);
      const half = sizeOf(at) / 2;
      if (middle - half < end + GAP) return false;
      end = middle + half;
      return true;
    });
  }

  // On a logarithmic axis: multiples of the powers of ten, or every second, third, ... power, as many as fit.
  page.logTicks = (extent, length, sizeOf) => {
    const [low, high] = extent;
    const powers = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) powers.push(power);
    const multiples = (digits) => powers.flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`))).filter((at) => low <= at && at <= high);
    const tens = multiples([1]);
    const thinned = tens.map((_, rank) => tens.filter((_, index) => index % (rank + 1) === 0));
    const fits = (places) => places.length > 1 && withoutOverlap(places, extent, length, sizeOf).length === places.length;
    return [...SETS.map(multiples), ...thinned].find(fits) ?? withoutOverlap(multiples(MANY), extent, length, sizeOf);
  };

  // --- Elements ---

  const { format } = page;
  const data = page.data();
  const PAD = { left: 14, right: 22, top: 36, bottom: 50 };
  const ROW = 26; // height of a bar in pixels
  const MOST_BARS = 60;
  const MOST_DOTS = 5; // repeats of a cell drawn as dots; with more, its interval is drawn
  const MOST_MARKED = 2; // crossovers with a label
  const MOST_NAME = 260; // width of labels beside the plot in pixels
  const MOST_NAMED = 8;

  page.drawn = (tag, attributes = {}, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const { drawn, ink } = page;
  const text = (words, x, y, attributes = {}) =>
    drawn("text", { x, y, fill: ink("soft"), "font-size": page.CHART_FONT_PX, ...attributes }, words);

  // A label in two lines: the device and its product name.
  const nameLines = (name) => {
    const [first, ...rest] = name.split(/ (?=\()/);
    return [first, rest.join(" ")];
  };

  const { pointsOf } = page;
  const BENDS = 16; // segments of a curve between two points

  function curvePoints(series, metric) {
    const [points, curve] = [pointsOf(series, metric), page.curveOfSeries(series, metric)];
    return points.flatMap((point, rank) => {
      const next = points[rank + 1];
      if (!next) return [point];
      const between = Array.from({ length: BENDS - 1 }, (_, piece) => point.at * (next.at / point.at) ** ((piece + 1) / BENDS));
      return [point, ...between.map((at) => ({ at, value: curve(at) }))];
    });
  }

  // --- Scales ---

  const spread = (values) => {
    const positive = values.filter((value) => value > 0);
    // Math.min(...positive) would fail: there may be more cells than a call can have arguments.
    const [low, high] = positive.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, 0]);
    return high ? [low / 1.3, high * 1.3] : [0.1, 10];
  };

  // The repeats that are drawn at a point of a series, in seconds; empty where its interval is drawn.
  function dotsOf(series, { row }, view, state) {
    const shown = state.repeats && !series.elsewhere && view.metric.key === "step_time_s";
    const times_s = (shown && data.repeats?.[row.place]) || [];
    return times_s.length > 1 && times_s.length <= MOST_DOTS ? times_s : [];
  }

  function scalesOf(view, state, width, height, room) {
    const marks = state.published ? page.publishedMarks(view) : [];
    const valuesOf = (series) => pointsOf(series, view.metric).flatMap((point) => [point.value, ...dotsOf(series, point, view, state)]);
    const values = [...view.shown.flatMap(valuesOf), ...marks.map(({ value }) => value)];
    const ys = spread(view.metric.key === "speedup" ? [...values, 1] : values);
    const xs = view.places ? [-0.5, view.places.length - 0.5] : spread(view.sizes);
    const [top, bottom] = [PAD.top, height - PAD.bottom];
    const yTicks = page.logTicks(ys, bottom - top, () => page.CHART_FONT_PX);
    const left = PAD.left + Math.max(...yTicks.map((at) => page.widthOf(page.metricText(view.metric, at))), 30);
    const right = width - PAD.right - room;
    const share = (at, [low, high], log) => (log ? Math.log(at / low) / Math.log(high / low) : (at - low) / (high - low));
    const wordsOf = (at) => page.widthOf(format.place(at, view.x.title));
    return {
      left, right, top, bottom, yTicks,
      xTicks: view.places ? view.places.map((_, place) => place) : page.logTicks(xs, right - left, wordsOf),
      x: (at) => left + share(at, xs, !view.places) * (right - left),
      y: (at) => bottom - share(at, ys, true) * (bottom - top),
      at: (pixel) => {
        const part = (pixel - left) / (right - left);
        return view.places ? Math.round(xs[0] + part * (xs[1] - xs[0])) : xs[0] * (xs[1] / xs[0]) ** part;
      },
    };
  }

  function axes(view, scale) {
    const { left, right, bottom } = scale;
    const grid = { stroke: ink("line"), "stroke-width": 1 };
    const xWords = (at) => (view.places ? view.places[at] : format.place(at, view.x.title));
    const yWords = (at) => page.metricText(view.metric, at);
    return drawn("g", {},
      ...scale.yTicks.map((at) => drawn("path", { d: `M${left},${scale.y(at)}H${right}`, ...grid })),
      ...scale.yTicks.map((at) => text(yWords(at), left - 8, scale.y(at) + 4, { "text-anchor": "end" })),
      drawn("path", { d: `M${left},${bottom}H${right}`, stroke: ink("soft"), "stroke-width": 1 }),
      ...scale.xTicks.map((at) => text(xWords(at), scale.x(at), bottom + 18, { "text-anchor": "middle" })),
      text(view.x.title, (left + right) / 2, bottom + 40, { "text-anchor": "middle" }),
      text(view.metric.title, PAD.left, 14, { class: "metric" }));
  }

  // --- Behind the lines ---

  // Whether crossovers in time can be marked on a metric.
  const isTime = (metric) => ["seconds", "rate"].includes(metric.kind) || metric.key === "speedup";

  function verticalLine(scale, at, dashes) {
    const x = page.within(scale.x(at), [scale.left, scale.right]);
    return drawn("path", { d: `M${x},${scale.top}V${scale.bottom}`, stroke: ink("soft"), "stroke-dasharray": dashes, "stroke-width": 1.2 });
  }

  function band(scale, low, high, opacity) {
    const [x, end] = [low, high].map((at) => page.within(scale.x(at), [scale.left, scale.right]));
    return drawn("rect", { x, y: scale.top, width: Math.max(end - x, 1), height: scale.bottom - scale.top, fill: ink("soft"), opacity });
  }

  // The first of several texts that fits beside a position, on the side with more space.
  function beside(scale, at, choices, y, fill) {
    const x = page.within(scale.x(at), [scale.left, scale.right]);
    const right = x > (scale.left + scale.right) / 2;
    const room = right ? x - scale.left : scale.right - x;
    const words = choices.find((choice) => page.widthOf(choice) + 10 < room);
    return words ? [text(words, x + (right ? -6 : 6), y, { "text-anchor": right ? "end" : "start", fill, class: "halo" })] : [];
  }

  // Crossovers with their intervals; with a machine measured elsewhere, a crossover is only a range.
  function crossovers(view, scale, state) {
    if (!isTime(view.metric)) return [];
    const shown = data.crossovers.filter(({ cell, on }) => view.chosenPlaces.has(cell) && on[view.x.key]);
    const perStep = shown.map(({ cell, on, product }) => [...on[view.x.key], view.groupName(data.rows[cell]), product]);
    const ends = view.steps && !view.places ? page.jobCrossovers(view) : perStep;
    return ends.filter(([at]) => at !== null || state.elsewhere).flatMap(([at, low, high, words, groupName, product], rank) => {
      const prefix = groupName && `${groupName}: `;
      const parts = at === null ? [] : [verticalLine(scale, at, "none")];
      if (low !== null || high !== null) parts.push(band(scale, low ?? scale.at(scale.left), high ?? scale.at(scale.right), 0.14));
      const named = `${prefix}${at === null ? `${product} would cross at` : "crossover"} ${words}`;
      const choices = [named, `${prefix}${words}`, `${prefix}${words.split(" (")[0]}`, words.split(" (")[0]];
      const y = scale.top + 10 + 16 * rank;
      return rank < MOST_MARKED ? [...parts, ...beside(scale, at ?? high, choices, y, ink("ink"))] : parts;
    });
  }

  // The published values that match a shown line on every axis that the source states. A size and its parameters are one place.
  const ALONG = { size: ["size", "parameters"], parameters: ["size", "parameters"] };

  page.publishedMarks = (view) => {
    const along = ALONG[view.x.key] ?? [view.x.key];
    const { marks } = data.published[view.study];
    const rows = view.shown.flatMap(({ points }) => points.map(({ row }) => row));
    const agree = ({ on }, row) => Object.entries(on).every(([axis, value]) => along.includes(axis) || row[axis] === value);
    const fitting = marks.filter((mark) => mark.metric === view.metric.key && rows.some((row) => agree(mark, row)));
    return fitting.map((mark) => ({ ...mark, at: mark.on[view.x.key] })).filter(({ at }) => at !== undefined);
  };

  // The ends of the published crossover, if one lies within the chart.
  page.publishedCrossover = (view) => {
    const ends = [...new Set(data.published[view.study].crossover ?? [])].sort((first, second) => first - second);
    const isThere = isTime(view.metric) && view.x.key === data.studies[view.study].x_axis && view.sizes.length;
    const [low, high] = spread(view.sizes);
    return isThere && ends.some((end) => low <= end && end <= high) ? ends : [];
  };

  const SHAPES = { s: "m-4,-4h8v8h-8z", D: "m0,-5.5l5.5,5.5l-5.5,5.5l-5.5,-5.5z", "^": "m0,-5.5l5,9.5h-10z", v: "m0,5.5l5,-9.5h-10z" };

  const publishedShape = ({ shape, colour }, x, y, ...children) =>
    drawn("path", { class: "published", d: `M${x},${y}${SHAPES[shape]}`, fill: "none", stroke: page.tone(colour), "stroke-width": 1.4 }, ...children);

  page.publishedLegend = (view) => {
    const series = new Map(page.publishedMarks(view).map((mark) => [mark.words, mark]));
    return [...series].map(([words, mark]) => [
      drawn("svg", { width: 13, height: 13, class: "mark", "aria-hidden": "true" }, publishedShape(mark, 6.5, 6.5)), `published: ${words}`,
    ]);
  };

  function published(view, scale, state) {
    if (!state.published) return [];
    const parts = [];
    const isInside = (size) => scale.x(size) >= scale.left && scale.x(size) <= scale.right;
    const ends = page.publishedCrossover(view);
    if (ends.length) {
      parts.push(ends.length > 1 ? band(scale, ...ends, 0.22) : verticalLine(scale, ends[0], "5 4"));
      parts.push(...beside(scale, ends[0], [`published ${format.places(ends, view.x.title).join(" to ")}`, "published"], scale.bottom - 8, ink("soft")));
    }
    return parts.concat(page.publishedMarks(view).filter(({ at }) => isInside(at)).map((mark) => {
      const title = `published: ${mark.words}, ${page.placeText(view, mark.at)}: ${page.metricText(view.metric, mark.value)}`;
      return publishedShape(mark, scale.x(mark.at), scale.y(mark.value), drawn("title", {}, title));
    }));
  }

  function level(scale) {
    const line = drawn("path", { d: `M${scale.left},${scale.y(1)}H${scale.right}`, stroke: ink("ink"), "stroke-width": 1.2 });
    return [line, text("equally fast", scale.left + 6, scale.y(1) - 6, { class: "halo" })];
  }

  // --- Lines ---

  // The outline of an interval's bar, 5 px wide; an arrow head of 12 x 8 px where it continues outside the chart.
  function interval({ at, low, high }, { x, y, top, bottom }) {
    const [start, end, middle] = [low > 0 ? y(low) : Infinity, y(high), x(at)];
    const [lower, upper] = [start > bottom ? bottom - 8 : start, end < top ? top + 8 : end];
    const above = end < top ? `h3.5L${middle},${top}L${middle - 6},${upper}h3.5` : "h-5";
    const below = start > bottom ? `h-3.5L${middle},${bottom}L${middle + 6},${lower}` : "";
    return `M${middle + 2.5},${lower}V${upper}${above}V${lower}${below}Z`;
  }

  function line(series, look, view, scale, state) {
    const points = pointsOf(series, view.metric);
    const stroke = { stroke: look.colour, fill: "none" };
    const dots = (point) => dotsOf(series, point, view, state);
    const barred = points.filter((point) => point.low !== null && point.high !== null && !dots(point).length && (!series.elsewhere || data.elsewhere.estimated));
    const lost = series.points.filter(({ row }) => row.status !== "ok" && !page.pointOf(row, view.metric));
    const path = (view.places ? points : curvePoints(series, view.metric)).map(({ at, value }, rank) => `${rank ? "L" : "M"}${scale.x(at)},${scale.y(value)}`).join("");
    const dot = ({ at, value }) => ({ cx: scale.x(at), cy: scale.y(value) });
    const mark = series.elsewhere ? { r: 2.5, fill: ink("paper") } : { r: 4, fill: look.colour };
    return drawn("g", {},
      ...(view.places ? [] : [drawn("path", { d: path, ...stroke, "stroke-width": 2, "stroke-dasharray": look.dashes })]),
      ...barred.map((point) => drawn("path", { class: "interval", d: interval(point, scale), fill: look.colour, opacity: 0.35 })),
      ...points.flatMap((point) => dots(point).map((value) =>
        drawn("circle", { ...dot({ at: point.at, value }), r: 2.2, fill: look.colour, opacity: 0.55 }))),
      ...points.map((point) => drawn("circle", { ...dot(point), ...mark, stroke: look.colour })),
      ...lost.map(({ at, row }) => {
        const [x, y] = [scale.x(at), scale.bottom - 8];
        const cross = `M${x - 4},${y - 4}L${x + 4},${y + 4}M${x - 4},${y + 4}L${x + 4},${y - 4}`;
        const why = `${look.name}: ${row.status}${row.reason ? `, ${row.reason}` : ""}`;
        return drawn("path", { class: "lost", d: cross, ...stroke, "stroke-width": 2 }, drawn("title", {}, why));
      }));
  }

  // Labels at the right ends of lines, moved apart where they would overlap.
  function names(view, looks, scale) {
    const ends = view.shown.map((series) => ({ series, y: scale.y(pointsOf(series, view.metric).at(-1).value) }));
    ends.sort((first, second) => first.y - second.y);
    for (const [rank, end] of ends.entries()) if (rank) end.y = Math.max(end.y, ends[rank - 1].y + 32);
    const over = ends.length ? Math.max(0, ends.at(-1).y - scale.bottom + 16) : 0;
    return ends.map(({ series, y }) => {
      const [x, { colour, name }] = [scale.right + 16, looks.get(series)];
      const [first, rest] = nameLines(name);
      return drawn("g", {},
        drawn("path", { d: `M${x - 8},${y - over - 8}V${y - over + (rest ? 24 : 8)}`, stroke: colour, "stroke-width": 3 }),
        drawn("text", { y: y - over + 4, fill: ink("ink"), "font-size": page.CHART_FONT_PX },
          drawn("tspan", { x, "font-weight": 600 }, first),
          ...(rest ? [drawn("tspan", { x, dy: 15, "font-size": page.CHART_FONT_PX - 2 }, rest)] : [])));
    });
  }

  function cursor(view, looks, scale) {
    const rings = view.shown.flatMap((series) => {
      const point = page.valueAt(series, view.metric, view.size, !view.places);
      const circle = point && { cx: scale.x(view.size), cy: scale.y(point.value), r: 6 };
      return point ? [drawn("circle", { ...circle, fill: "none", stroke: looks.get(series).colour, "stroke-width": 2 })] : [];
    });
    const d = `M${scale.x(view.size)},${scale.top}V${scale.bottom}`;
    return [drawn("path", { class: "cursor", d, stroke: ink("accent"), "stroke-width": 1.5 }), ...rings];
  }

  // --- Whole pictures ---

  const canvas = (width, height, label) => drawn("svg", {
    width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label,
    "font-family": getComputedStyle(document.body).fontFamily,
  });

  // Lines over an axis.
  page.drawLines = (view, looks, state, width, label) => {
    const longest = Math.max(0, ...view.shown.flatMap((series) => nameLines(looks.get(series).name).map(page.widthOf)));
    const named = width >= 700 && view.shown.length > 0 && view.shown.length <= MOST_NAMED && longest <= MOST_NAME;
    const height = Math.max(260, Math.min(400, 0.5 * width));
    const scale = scalesOf(view, state, width, height, named ? longest + 18 : 0);
    const picture = canvas(width, height, label);
    picture.append(
      axes(view, scale), ...cursor(view, looks, scale), ...crossovers(view, scale, state), ...published(view, scale, state),
      ...(view.metric.key === "speedup" ? level(scale) : []),
      ...view.shown.map((series) => line(series, looks.get(series), view, scale, state)),
      ...(named ? names(view, looks, scale) : []));
    return { picture, scale, named };
  };

  // Where the time goes: one bar per cell.
  page.drawSplits = (view, width, label) => {
    const { words, colours, cells } = data.splits;
    const name = (row) => [page.sideText(row), page.sizeText(row), view.groupName(row)].filter(Boolean).join(", ");
    // Labels at the selected size are bold and therefore wider.
    const named = PAD.left + 1.12 * Math.max(...view.splits.map((row) => page.widthOf(name(row)))) + 8;
    // Labels that would take more than half of the width are drawn above their bars.
    const above = named > width / 2;
    const [left, step] = above ? [PAD.left, ROW + 16] : [named, ROW];
    const length = width - left - PAD.right;
    const rows = view.splits.slice(0, MOST_BARS);
    const more = view.splits.length - rows.length;
    const picture = canvas(width, 12 + step * rows.length + (more ? 24 : 0), label);
    if (more) picture.append(text(`${more} more are in the CSV`, PAD.left, 24 + step * rows.length));
    for (const [rank, row] of rows.entries()) {
      let x = left;
      const y = 8 + step * rank + (above ? 16 : 0);
      const emphasis = row.size === view.size ? { fill: ink("ink"), "font-weight": 600 } : {};
      const position = above ? [left, y - 4, emphasis] : [left - 8, y + 14, { "text-anchor": "end", ...emphasis }];
      picture.append(text(name(row), ...position));
      for (const [part, share] of cells[row.place].entries()) {
        const bar = { x, y, width: Math.max(share * length, 0), height: ROW - 6, fill: colours[part] };
        picture.append(drawn("rect", bar, drawn("title", {}, `${words[part]}: ${Math.round(100 * share)} %`)));
        x += share * length;
      }
    }
    return picture;
  };
})(window.Crossover);
