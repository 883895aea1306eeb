// What the chart shows at a size, in words.
"use strict";
((page) => {
  const { format, SPLIT } = page;
  const data = page.data();

  const percent = (share) => `${Math.round(100 * share)} %`;
  page.placeText = (seen, at) => {
    if (seen.metric === SPLIT) return `${format.place(at, seen.rows[0].size_name)} ${seen.rows[0].size_name}`;
    const unit = at === 1 && seen.x.title === "CPU cores" ? "CPU core" : seen.x.title;
    return seen.places ? seen.places[at] : `${format.place(at, seen.x.title)} ${unit}`;
  };

  const SPEEDUP = data.metrics.find(({ key }) => key === "speedup");

  // The crossover of a series in whose 95 % set the size lies; with one trial, between the sizes around it.
  // That with a machine elsewhere is noted at the CPU here.
  function crossoverAround(seen, one) {
    const places = new Set((one.elsewhere ? one.base : one)?.points.map(({ row }) => row.place));
    return data.crossovers.find(({ cell, on }) => {
      const [at, low, high] = on[seen.x.key] ?? [];
      return places.has(cell) && (at === null) === one.elsewhere && (low ?? 0) < seen.size && seen.size < (high ?? Infinity);
    });
  }

  // The speed-ups that a size rests on: the one measured there, or those of both neighbours.
  function restsOn(points, size) {
    const exact = points.filter(({ at }) => at === size);
    return exact.length ? exact : [points.findLast(({ at }) => at < size), points.find(({ at }) => at > size)].filter(Boolean);
  }

  // How many times as fast as the CPU, whichever is ahead; inconclusive unless the intervals, of both neighbours between two
  // sizes, and that of the crossover say so. Between two sizes the interval reaches over those of both neighbours.
  function speedText(seen, one, name) {
    const found = page.valueAt(one, SPEEDUP, seen.size, !seen.places);
    if (!found) return "";
    const rests = restsOn(page.pointsOf(one, SPEEDUP), seen.size);
    const single = rests.some(({ low }) => low === null);
    const ends = [Math.min(...rests.map(({ low }) => low)), Math.max(...rests.map(({ high }) => high))];
    // Of a machine elsewhere the ratio is as measured there, beside another CPU.
    const interval = (turn) => (one.elsewhere ? "as measured" : single ? "single trial" : `95 % CI ${ends.map(turn).sort((first, second) => first - second).map(format.number).join(" to ")}`);
    const around = seen.steps ? null : crossoverAround(seen, one);
    const what = seen.steps ? " in all, start-up included" : "";
    const [ahead, ...others] = rests.map(({ row }) => row.ahead);
    if (!ahead || others.some((side) => side !== ahead) || around) {
      const range = around && one.elsewhere ? `; the crossover beside this CPU is estimated at ${around.on[seen.x.key][3]} ${seen.x.title}` : "";
      return `inconclusive${what} (ratio ${format.number(found.value)}, ${interval((ratio) => ratio)}${range})`;
    }
    const turn = (ratio) => (ahead > 0 ? ratio : 1 / ratio);
    const [winner, loser] = ahead > 0 ? [name, "CPU"] : ["CPU", name];
    return `${winner} ${format.number(turn(found.value))}x faster than ${loser}${what} (${interval(turn)})`;
  }

  // What one series says at the size; where a cell there, or the next one, has no value, how that ended.
  function seriesText(seen, one, name) {
    const text = (value) => page.metricText(seen.metric, value);
    const at = page.valueAt(one, seen.metric, seen.size, !seen.places);
    if (!at) {
      const next = one.points.find((point) => point.at >= seen.size);
      return `${name} ${next && next.row.status !== "ok" ? data.statuses[next.row.status] : "not measured there"}`;
    }
    const [low, high] = at.measured && !one.elsewhere ? [at.low, at.high] : [null, null];
    return `${name} ${text(at.value)}${low !== null && high !== null ? ` (95 % CI ${text(low)} to ${text(high)})` : ""}`;
  }

  // What the series of a group say at the size, and how each accelerator compares with the CPU.
  function groupText(seen, group) {
    const short = (one) => one.label.replace(/ \(.*\)/, one.elsewhere ? "$&" : "");
    const speeds = () => group.map((one) => speedText(seen, one, short(one))).filter(Boolean);
    if (seen.metric.key === SPEEDUP.key) return speeds().join(", ") || "not measured there";
    const values = group.map((one) => seriesText(seen, one, short(one))).join(", ");
    const compared = seen.metric.kind === "seconds" ? speeds() : [];
    return [values, compared.join(", ")].filter(Boolean).join(": ");
  }

  function splitText(seen) {
    const rows = seen.splits.filter(({ size }) => size === seen.size);
    return rows.map((row) => {
      const parts = data.splits.cells[row.place].map((share, rank) => ({ share, words: data.splits.words[rank] }));
      const said = parts.filter(({ share }) => share >= 0.005).sort((one, other) => other.share - one.share);
      const whose = [page.sideText(row), seen.whose(row)].filter(Boolean).join(", ");
      return `${whose}: ${said.map(({ share, words }) => `${words} ${percent(share)}`).join(", ")}`;
    }).join("; ");
  }

  page.readingOf = (seen) => {
    if (!seen.metric) return "No cell of this study has a value to draw; the table of cells says why.";
    const place = page.placeText(seen, seen.size);
    if (seen.metric === SPLIT) return `At ${place}: ${splitText(seen)}.`;
    // The CPU elsewhere is to be seen, but compared with nothing.
    const told = Map.groupBy(seen.shown.filter((one) => !(one.elsewhere && one.device === "cpu")), ({ group }) => group);
    const said = [...told].map(([group, lines]) => `${told.size > 1 ? `${group}: ` : ""}${groupText(seen, lines)}`);
    const range = () => format.places([seen.sizes[0], seen.sizes.at(-1)], seen.x.title).join(" to ").replace(` ${seen.x.title}`, "");
    const beyond = seen.between && seen.asked !== seen.size ? `Only ${range()} ${seen.x.title} were measured. ` : "";
    const marks = page.publishedMarks(seen).filter(({ at }) => at === seen.size);
    said.push(...marks.map(({ words, value }) => `published: ${words} ${page.metricText(seen.metric, value)}`));
    return `${beyond}At ${place}${seen.sizes.includes(seen.size) ? "" : " (between sizes that were measured)"}: ${said.join("; ")}.`;
  };
})(window.Crossover);
