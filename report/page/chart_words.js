// What the chart shows at a size, in words.
"use strict";
((page) => {
  const { format, SPLIT } = page;
  const data = page.data();

  const percent = (share) => `${Math.round(100 * share)} %`;
  page.placeText = (seen, at) => {
    if (seen.metric === SPLIT) return `${format.count(at)} ${seen.rows[0].size_name}`;
    return seen.places ? seen.places[at] : `${format.count(at)} ${seen.x.title}`;
  };

  // How many times as fast as the CPU, whichever is ahead.
  function speedText(name, { value, low, high }) {
    if (Math.abs(Math.log(value)) < 0.005) return `${name} and CPU equally fast`;
    const [ahead, behind] = value >= 1 ? [name, "CPU"] : ["CPU", name];
    const times = (ratio) => format.number(value >= 1 ? ratio : 1 / ratio);
    const ends = low === null || high === null ? "" : ` (95 %: ${[low, high].map(times).sort((one, other) => one - other).join(" to ")})`;
    return `${ahead} ${times(value)} times as fast as ${behind}${ends}`;
  }

  // What one line says at the size; where a cell there, or the next one, has no value, how that ended.
  function lineText(seen, { name, one, at }) {
    const text = (value) => page.metricText(seen.metric, value);
    if (!at) {
      const next = one.points.find((point) => point.at >= seen.size);
      return `${name} ${next && next.row.status !== "ok" ? data.statuses[next.row.status] : "not measured there"}`;
    }
    const [low, high] = at.measured && !one.elsewhere ? [at.low, at.high] : [null, null];
    if (seen.metric.key === "speedup") return speedText(name, { value: at.value, low, high });
    return `${name} ${text(at.value)}${low !== null && high !== null ? ` (95 %: ${text(low)} to ${text(high)})` : ""}`;
  }

  // The range in which a GPU elsewhere may cross this CPU, where the size lies within.
  function unsettled(seen, lines) {
    const places = new Set(lines.flatMap(({ points }) => points.map(({ row }) => row.place)));
    const found = data.crossovers.find(({ cell, on }) => {
      const [at, low, high] = on[seen.x.key] ?? [0];
      return places.has(cell) && at === null && low <= seen.size && seen.size <= high;
    });
    return found ? ` as they were measured; beside this CPU not settled from ${found.on[seen.x.key][3]}` : "";
  }

  // What the lines of a group say at the size, and which device is how far ahead.
  function groupText(seen, lines) {
    const short = (one) => one.label.replace(/ \(.*\)/, one.elsewhere ? "$&" : "");
    const found = lines.map((one) => ({ name: short(one), one, at: page.valueAt(one, seen.metric, seen.size, !seen.places) }));
    const values = found.map((own) => lineText(seen, own)).join(", ");
    // A GPU elsewhere is held against this CPU where none is here.
    const [own, all] = [({ one, at }) => at && !one.elsewhere, ({ at }) => at].map((wanted) => found.filter(wanted));
    const timed = (own.length > 1 ? own : all).sort((first, second) => first.at.value - second.at.value);
    if (seen.metric.kind !== "seconds" || timed.length < 2) return values;
    const [fast, slow] = [timed[0], timed.at(-1)];
    const ratio = slow.at.value / fast.at.value;
    const ahead = ratio < 1.005 ? "equally fast" : `${fast.name} ${format.number(ratio)} times as fast as ${slow.name}`;
    return `${values}: ${ahead}${unsettled(seen, lines)}`;
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
    const beyond = seen.between && seen.asked !== seen.size ? `Only ${format.count(seen.sizes[0])} to ${page.placeText(seen, seen.sizes.at(-1))} were measured. ` : "";
    const marks = page.publishedMarks(seen).filter(({ at }) => at === seen.size);
    said.push(...marks.map(({ words, value }) => `published: ${words} ${page.metricText(seen.metric, value)}`));
    return `${beyond}At ${place}${seen.sizes.includes(seen.size) ? "" : " (between sizes that were measured)"}: ${said.join("; ")}.`;
  };
})(window.Crossover);
