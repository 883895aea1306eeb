// The cells of a study as series over an axis: what a series is called, and its values between its points.
"use strict";
((page) => {
  const distinct = (rows, key) => new Set(rows.map((row) => row[key]).filter((value) => value !== null));

  const WORDS = {
    size: (row) => row.size_label ?? `${page.format.whole(row.size)} ${row.size_name}`,
    batch_size: (row) => `batch ${page.format.whole(row.batch_size)}`,
    protocol: (row) => page.data().protocols[row.protocol],
    device: (row) => row.device_label,
  };
  const word = (row, axis) => (WORDS[axis] ? WORDS[axis](row) : row[axis].replaceAll("_", " "));
  const named = (row, axes) => axes.map((axis) => word(row, axis)).join(", ");
  const placeName = (row, axes) => named(row, axes) || word(row, "size");

  // What a chart can be drawn over; one place for each cell where no number varies.
  page.xChoices = (rows) => {
    const titles = { size: rows[0].size_name, parameters: "parameters", batch_size: "batch size" };
    const found = Object.keys(titles).filter((key) => distinct(rows, key).size > 1);
    return found.length ? found.map((key) => ({ key, title: titles[key] })) : [{ key: null, title: "" }];
  };

  // The series over an axis: device, name, group (what but the device sets each apart), and its cells in the axis' order.
  // `places` names the cells of an axis without numbers. Cells measured elsewhere are series of their own.
  page.seriesOf = (rows, elsewhere, x) => {
    const axes = page.data().axes.filter((axis) => axis !== "study" && axis !== "device" && distinct(rows, axis).size > 1);
    const apart = axes.filter((axis) => axis !== x && !(x === "parameters" && axis === "size"));
    const places = x ? null : [...new Set(rows.map((row) => placeName(row, apart)))];
    const found = new Map();
    for (const row of [...rows, ...elsewhere]) {
      const known = row.elsewhere ? apart.filter((axis) => axis !== "machine") : apart;
      const group = x ? named(row, known) : "";
      const device = row.elsewhere ? `${row.device_label} elsewhere` : row.device_label;
      const key = [device, row.elsewhere ? row.machine : "", group].join("|");
      if (!found.has(key)) found.set(key, { device: row.device, label: device, group, elsewhere: Boolean(row.elsewhere), points: [] });
      const at = x ? row[x] : places.indexOf(placeName(row, known));
      if (at !== null && at >= 0) found.get(key).points.push({ at, row });
    }
    const series = [...found.values()];
    for (const one of series) one.points.sort((first, second) => first.at - second.at);
    return { series, places };
  };

  // A cell's value of a metric with its 95 % interval; null where it has none, or none that a logarithmic axis has.
  page.pointOf = (row, metric) => {
    const value = row[metric.key] ?? null;
    const [low, high] = (metric.interval ?? []).map((name) => row[name]);
    return value === null || value <= 0 ? null : { value, low: low ?? null, high: high ?? null };
  };

  // A series' value at a place, log-log between its neighbours and exact at its points; null outside of them.
  page.valueAt = (series, metric, x, logX) => {
    const known = series.points.flatMap(({ at, row }) => {
      const point = page.pointOf(row, metric);
      return point ? [{ at, row, ...point }] : [];
    });
    const exact = known.find(({ at }) => at === x);
    if (exact) return { ...exact, measured: true };
    const next = known.findIndex(({ at }) => at > x);
    if (next <= 0 || !logX) return null;
    const [before, after] = [known[next - 1], known[next]];
    const share = Math.log(x / before.at) / Math.log(after.at / before.at);
    return { value: before.value * (after.value / before.value) ** share, measured: false };
  };
})(window.Crossover);
