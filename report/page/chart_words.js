// The chart's readout: the values at a size, in words.
"use strict";
((page) => {
  const { format, SPLIT } = page;
  const data = page.data();

  const percent = (share) => `${Math.round(100 * share)} %`;
  page.placeText = (view, at) => {
    if (view.metric === SPLIT) return format.withUnit(format.place(at, view.rows[0].size_name), view.rows[0].size_name);
    const unit = (at === 1 && data.singular[view.x.title]) || view.x.title;
    return view.places ? view.places[at] : format.withUnit(format.place(at, view.x.title), unit);
  };

  const SPEEDUP = data.metrics.find(({ key }) => key === "speedup");

  // A crossover of the series whose 95 % interval (with one trial, whose bracket) contains the size. A crossover with a machine
  // measured elsewhere is stored for this machine's CPU.
  function crossoverAround(view, series) {
    const places = new Set((series.elsewhere ? series.base : series)?.points.map(({ row }) => row.place));
    const elsewhere = series.elsewhere ? series.points[0]?.row.machine : undefined;
    return data.crossovers.find(({ cell, on, machine }) => {
      if (!places.has(cell) || machine !== elsewhere || !on[view.x.key]) return false;
      const [, low, high] = on[view.x.key];
      return (low ?? 0) < view.size && view.size < (high ?? Infinity);
    });
  }

  // The measured speed-up at a size or, between two sizes, those of both neighbours.
  function nearestPoints(points, size) {
    const exact = points.filter(({ at }) => at === size);
    return exact.length ? exact : [points.findLast(({ at }) => at < size), points.find(({ at }) => at > size)].filter(Boolean);
  }

  const speedupAt = (view, series) => page.valueAt(series, SPEEDUP, view.size, !view.places);

  // The speed-up of the faster side, a device or its base, with an interval that covers those of the neighbouring measured sizes.
  // The speed-up is inconclusive if these sizes have no common significant winner, or if a crossover's interval includes the size.
  function speedText(view, series, name, isOneOfSeveral) {
    const speedup = speedupAt(view, series);
    const points = nearestPoints(page.pointsOf(series, SPEEDUP), view.size);
    const isSingleTrial = points.some(({ low }) => low === null);
    const ends = [Math.min(...points.map(({ low }) => low)), Math.max(...points.map(({ high }) => high))];
    const interval = (convert) => (series.elsewhere && !data.elsewhere.estimated ? "as measured" : isSingleTrial ? "single trial" : `95 % CI ${ends.map(convert).sort((first, second) => first - second).map(format.number).join(" to ")}`);
    const crossover = view.steps ? null : crossoverAround(view, series);
    const ofRun = view.steps ? " in all, start-up included" : "";
    const [ahead, ...others] = points.map(({ row }) => row.ahead);
    const isSignificant = ahead && others.every((side) => side === ahead);
    if (!isSignificant || crossover) {
      const around = isSignificant ? "; within the interval of the crossover" : "";
      const range = crossover && series.elsewhere ? `; estimated crossover with this CPU: ${format.withUnit(crossover.on[view.x.key][3], view.x.title)}` : around;
      return `inconclusive${isOneOfSeveral ? ` for ${name}` : ""}${ofRun} (ratio ${format.number(speedup.value)}, ${interval((ratio) => ratio)}${range})`;
    }
    const ofFaster = (ratio) => (ahead > 0 ? ratio : 1 / ratio);
    const base = page.baseName(view.study);
    const [winner, loser] = ahead > 0 ? [name, base] : [base, name];
    return `${winner} ${format.number(ofFaster(speedup.value))}x faster than ${loser}${ofRun} (${interval(ofFaster)})`;
  }

  // The value of a series at the size or, if it has none, the status of its cell at this or the next size.
  function seriesText(view, series, name) {
    const text = (value) => page.metricText(view.metric, value);
    const at = page.valueAt(series, view.metric, view.size, !view.places);
    if (!at) {
      const next = series.points.find((point) => point.at >= view.size);
      return `${name} ${next && next.row.status !== "ok" ? data.statuses[next.row.status] : "not measured there"}`;
    }
    const [low, high] = at.measured && (!series.elsewhere || data.elsewhere.estimated) ? [at.low, at.high] : [null, null];
    return `${name} ${text(at.value)}${low !== null && high !== null ? ` (95 % CI ${text(low)} to ${text(high)})` : ""}`;
  }

  function groupText(view, group) {
    const short = (series) => series.label.replace(/ \(.*\)/, series.elsewhere ? "$&" : "");
    const rivals = group.filter((series) => speedupAt(view, series));
    const speeds = () => rivals.map((series) => speedText(view, series, short(series), rivals.length > 1));
    if (view.metric.key === SPEEDUP.key) return speeds().join(", ") || "not measured there";
    const values = group.map((series) => seriesText(view, series, short(series))).join(", ");
    const compared = view.metric.kind === "seconds" ? speeds() : [];
    return [values, compared.join(", ")].filter(Boolean).join(": ");
  }

  function splitText(view) {
    const rows = view.splits.filter(({ size }) => size === view.size);
    return rows.map((row) => {
      const parts = data.splits.cells[row.place].map((share, rank) => ({ share, words: data.splits.words[rank] }));
      const shown = parts.filter(({ share }) => share >= 0.005).sort((first, second) => second.share - first.share);
      const name = [page.sideText(row), view.groupName(row)].filter(Boolean).join(", ");
      return `${name}: ${shown.map(({ share, words }) => `${words} ${percent(share)}`).join(", ")}`;
    }).join("; ");
  }

  page.readoutOf = (view) => {
    if (!view.metric) return "No cell of this study has a value to draw; the table of cells gives the reasons.";
    const place = page.placeText(view, view.size);
    if (view.metric === SPLIT) return `At ${place}: ${splitText(view)}.`;
    const groups = Map.groupBy(view.shown, ({ group }) => group);
    const texts = [...groups].map(([group, lines]) => `${groups.size > 1 ? `${group}: ` : ""}${groupText(view, lines)}`);
    const beyond = view.between && view.wantedSize !== view.size ? `Only ${format.range([view.sizes[0], view.sizes.at(-1)], view.x.title)} were measured. ` : "";
    const marks = page.publishedMarks(view).filter(({ at }) => at === view.size);
    texts.push(...marks.map(({ words, value }) => `published: ${words} ${page.metricText(view.metric, value)}`));
    return `${beyond}At ${place}${view.sizes.includes(view.size) ? "" : " (between those measured)"}: ${texts.join("; ")}.`;
  };
})(window.Crossover);
