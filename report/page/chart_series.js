// The cells of a study as series over an axis: what a series is called, and the interval of each of its points.
"use strict";
((page) => {
  const distinct = (rows, key) => new Set(rows.map((row) => row[key]).filter((value) => value !== null));

  const WORDS = {
    size: (row) => `${page.format.whole(row.size)} ${row.size_name}`,
    batch_size: (row) => `batch ${page.format.whole(row.batch_size)}`,
    protocol: (row) => page.data().protocols[row.protocol],
    device: (row) => row.device_label,
  };
  const word = (row, axis) => (WORDS[axis] ? WORDS[axis](row) : row[axis].replaceAll("_", " "));
  const named = (row, axes) => axes.map((axis) => word(row, axis)).join(", ");

  // Axes in which the cells differ, the device first; never the study.
  function varying(rows) {
    const axes = page.data().axes.filter((axis) => axis !== "study" && axis !== "device");
    return ["device", ...axes.filter((axis) => distinct(rows, axis).size > 1)];
  }

  // What a chart can be drawn over; one place for each cell where no number varies.
  page.xChoices = (rows) => {
    const titles = { size: rows[0].size_name, parameters: "parameters", batch_size: "batch size" };
    const found = Object.keys(titles).filter((key) => distinct(rows, key).size > 1);
    return found.length ? found.map((key) => ({ key, title: titles[key] })) : [{ key: null, title: "cell" }];
  };

  // The series over an axis: name, device, what but the device sets each apart, and its cells in the axis' order.
  page.seriesOf = (rows, x) => {
    const apart = varying(rows).filter((axis) => axis !== x && !(x === "parameters" && axis === "size"));
    const axes = x ? apart : ["device"];
    const places = x ? null : [...new Set(rows.map((row) => named(row, apart.slice(1))))];
    const found = new Map();
    for (const row of rows) {
      const name = named(row, axes);
      if (!found.has(name)) found.set(name, { name, device: row.device, group: named(row, axes.slice(1)), points: [] });
      const at = x ? row[x] : places.indexOf(named(row, apart.slice(1)));
      if (at !== null) found.get(name).points.push({ at, row });
    }
    const series = [...found.values()];
    for (const one of series) one.points.sort((first, second) => first.at - second.at);
    return { series, places };
  };

  // A cell's value of a metric with its 95 % interval; null where it has none.
  page.pointOf = (row, metric) => {
    const value = row[metric.key];
    const [low, high] = (metric.interval ?? []).map((name) => row[name]);
    return value === null ? null : { value, low: low ?? null, high: high ?? null };
  };
})(window.Crossover);
