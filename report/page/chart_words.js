// The chart's values at a size, in words.
"use strict";
((page) => {
  const { format, SPLIT } = page;
  const data = page.data();

  const percent = (share) => `${Math.round(100 * share)} %`;
  page.placeText = (seen, at) => {
    if (seen.metric === SPLIT) return `${format.place(at, seen.rows[0].size_name)} ${seen.rows[0].size_name}`;
    const unit = (at === 1 && data.singular[seen.x.title]) || seen.x.title;
    return seen.places ? seen.places[at] : `${format.place(at, seen.x.title)} ${unit}`;
  };

  const SPEEDUP = data.metrics.find(({ key }) => key === "speedup");

  // The crossover of a series whose 95 % set contains the size; with one trial, whose bracket does.
  // A crossover with a machine measured elsewhere is stored with this machine's CPU.
  function crossoverAround(seen, series) {
    const places = new Set((series.elsewhere ? series.base : series)?.points.map(({ row }) => row.place));
    return data.crossovers.find(({ cell, on }) => {
      const [at, low, high] = on[seen.x.key] ?? [];
      return places.has(cell) && (at === null) === series.elsewhere && (low ?? 0) < seen.size && seen.size < (high ?? Infinity);
    });
  }

  // The speed-ups behind the value at a size: the one measured at that size, or those of both neighbouring sizes.
  function restsOn(points, size) {
    const exact = points.filter(({ at }) => at === size);
    return exact.length ? exact : [points.findLast(({ at }) => at < size), points.find(({ at }) => at > size)].filter(Boolean);
  }

  // The speed-up of the faster side, a device or its CPU; inconclusive where its interval (between two sizes, that of either
  // neighbour) or the crossover's does not decide. Between two measured sizes, the interval covers the intervals of both.
  function speedText(seen, series, name) {
    const speedup = page.valueAt(series, SPEEDUP, seen.size, !seen.places);
    if (!speedup) return "";
    const rests = restsOn(page.pointsOf(series, SPEEDUP), seen.size);
    const single = rests.some(({ low }) => low === null);
    const ends = [Math.min(...rests.map(({ low }) => low)), Math.max(...rests.map(({ high }) => high))];
    // For a machine measured elsewhere, the ratio is to the CPU of that machine.
    const interval = (turn) => (series.elsewhere ? "as measured" : single ? "single trial" : `95 % CI ${ends.map(turn).sort((first, second) => first - second).map(format.number).join(" to ")}`);
    const around = seen.steps ? null : crossoverAround(seen, series);
    const what = seen.steps ? " in all, start-up included" : "";
    const [ahead, ...others] = rests.map(({ row }) => row.ahead);
    if (!ahead || others.some((side) => side !== ahead) || around) {
      const range = around && series.elsewhere ? `; the crossover beside this CPU is estimated at ${around.on[seen.x.key][3]} ${seen.x.title}` : "";
      return `inconclusive${what} (ratio ${format.number(speedup.value)}, ${interval((ratio) => ratio)}${range})`;
    }
    const turn = (ratio) => (ahead > 0 ? ratio : 1 / ratio);
    const [winner, loser] = ahead > 0 ? [name, "CPU"] : ["CPU", name];
    return `${winner} ${format.number(turn(speedup.value))}x faster than ${loser}${what} (${interval(turn)})`;
  }

  // The value of a series at the size; without a value, the status of the cell at that size or the next.
  function seriesText(seen, series, name) {
    const text = (value) => page.metricText(seen.metric, value);
    const at = page.valueAt(series, seen.metric, seen.size, !seen.places);
    if (!at) {
      const next = series.points.find((point) => point.at >= seen.size);
      return `${name} ${next && next.row.status !== "ok" ? data.statuses[next.row.status] : "not measured there"}`;
    }
    const [low, high] = at.measured && !series.elsewhere ? [at.low, at.high] : [null, null];
    return `${name} ${text(at.value)}${low !== null && high !== null ? ` (95 % CI ${text(low)} to ${text(high)})` : ""}`;
  }

  // The values of a group's series at the size, and how each accelerator compares with the CPU.
  function groupText(seen, group) {
    const short = (series) => series.label.replace(/ \(.*\)/, series.elsewhere ? "$&" : "");
    const speeds = () => group.map((series) => speedText(seen, series, short(series))).filter(Boolean);
    if (seen.metric.key === SPEEDUP.key) return speeds().join(", ") || "not measured there";
    const values = group.map((series) => seriesText(seen, series, short(series))).join(", ");
    const compared = seen.metric.kind === "seconds" ? speeds() : [];
    return [values, compared.join(", ")].filter(Boolean).join(": ");
  }

  function splitText(seen) {
    const rows = seen.splits.filter(({ size }) => size === seen.size);
    return rows.map((row) => {
      const parts = data.splits.cells[row.place].map((share, rank) => ({ share, words: data.splits.words[rank] }));
      const shown = parts.filter(({ share }) => share >= 0.005).sort((first, second) => second.share - first.share);
      const whose = [page.sideText(row), seen.whose(row)].filter(Boolean).join(", ");
      return `${whose}: ${shown.map(({ share, words }) => `${words} ${percent(share)}`).join(", ")}`;
    }).join("; ");
  }

  page.readingOf = (seen) => {
    if (!seen.metric) return "No cell of this study has a value to draw; the table of cells gives the reasons.";
    const place = page.placeText(seen, seen.size);
    if (seen.metric === SPLIT) return `At ${place}: ${splitText(seen)}.`;
    // The CPU of a machine measured elsewhere is drawn, but not compared.
    const groups = Map.groupBy(seen.shown.filter((series) => !(series.elsewhere && series.device === "cpu")), ({ group }) => group);
    const texts = [...groups].map(([group, lines]) => `${groups.size > 1 ? `${group}: ` : ""}${groupText(seen, lines)}`);
    const range = () => format.places([seen.sizes[0], seen.sizes.at(-1)], seen.x.title).join(" to ").replace(` ${seen.x.title}`, "");
    const beyond = seen.between && seen.wantedSize !== seen.size ? `Only ${range()} ${seen.x.title} were measured. ` : "";
    const marks = page.publishedMarks(seen).filter(({ at }) => at === seen.size);
    texts.push(...marks.map(({ words, value }) => `published: ${words} ${page.metricText(seen.metric, value)}`));
    return `${beyond}At ${place}${seen.sizes.includes(seen.size) ? "" : " (between those measured)"}: ${texts.join("; ")}.`;
  };
})(window.Crossover);
