// The cells of a study as series over an axis: what a series is called, and its values between its points.
"use strict";
((page) => {
  const distinct = (rows, key) => new Set(rows.map((row) => row[key]).filter((value) => value !== null));

  page.sizeText = (row) => row.size_label ?? `${page.format.whole(row.size)} ${row.size_name}`;
  // A device without its product name.
  page.sideText = (row) => row.device_label.split(" (")[0];

  const WORDS = {
    size: page.sizeText,
    batch_size: (row) => `batch ${page.format.whole(row.batch_size)}`,
    device: (row) => row.device_label,
  };
  const word = (row, axis) => (WORDS[axis] ? WORDS[axis](row) : row[axis].replaceAll("_", " "));
  const named = (row, axes) => axes.map((axis) => word(row, axis)).join(", ");
  const placeName = (row, axes) => named(row, axes) || page.sizeText(row);

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

  // Slopes of the curve that neither overshoots nor turns between two points (PCHIP, Fritsch and Butland 1984), which
  // crossovers are read off, too. `gaps` are the distances of the points, `rises` the slopes between them.
  function slopesOf(gaps, rises) {
    if (rises.length < 2) return [rises[0], rises[0]];
    const end = (gap, next, rise, after) => {
      const slope = ((2 * gap + next) * rise - gap * after) / (gap + next);
      if (slope * rise <= 0) return 0;
      return rise * after <= 0 && Math.abs(slope) > 3 * Math.abs(rise) ? 3 * rise : slope;
    };
    const inner = rises.slice(1).map((rise, rank) => {
      const [before, gap, next] = [rises[rank], gaps[rank], gaps[rank + 1]];
      const [one, other] = [2 * next + gap, next + 2 * gap];
      return before * rise <= 0 ? 0 : (one + other) / (one / before + other / rise);
    });
    const last = rises.length - 1;
    return [end(gaps[0], gaps[1], rises[0], rises[1]), ...inner, end(gaps[last], gaps[last - 1], rises[last], rises[last - 1])];
  }

  // The curve through points {at, value} in the order of `at`, on logarithmic scales: a value within their range.
  page.curveOf = (points) => {
    const [xs, ys] = [points.map(({ at }) => Math.log(at)), points.map(({ value }) => Math.log(value))];
    const gaps = xs.slice(1).map((x, rank) => x - xs[rank]);
    const rises = gaps.map((gap, rank) => (ys[rank + 1] - ys[rank]) / gap);
    const slopes = points.length > 1 ? slopesOf(gaps, rises) : [];
    return (at) => {
      const next = xs.findIndex((x) => x > Math.log(at));
      const rank = next < 0 ? gaps.length - 1 : Math.max(next - 1, 0);
      const [gap, share] = [gaps[rank], (Math.log(at) - xs[rank]) / gaps[rank]];
      const [rest, bend] = [1 - share, share * (1 - share)];
      const line = ys[rank] * rest * rest * (1 + 2 * share) + ys[rank + 1] * share * share * (3 - 2 * share);
      return Math.exp(line + gap * bend * (slopes[rank] * rest - slopes[rank + 1] * share));
    };
  };

  // The points of a series that have a value of a metric.
  page.pointsOf = (series, metric) => series.points.flatMap(({ at, row }) => {
    const point = page.pointOf(row, metric);
    return point ? [{ at, row, ...point }] : [];
  });

  // The curve of a series. Beside its CPU, `base`, it is made of that of their ratio: crossovers are read off that one.
  page.curveOfSeries = (series, metric) => {
    const points = page.pointsOf(series, metric);
    const others = series.base ? page.pointsOf(series.base, metric) : [];
    const isPaired = points.length === others.length && points.every(({ at }, rank) => at === others[rank].at);
    if (!isPaired) return page.curveOf(points);
    const [curve, ratio] = [page.curveOf(others), page.curveOf(points.map(({ at, value }, rank) => ({ at, value: value / others[rank].value })))];
    return (at) => curve(at) * ratio(at);
  };

  // A series' value at a place, on its curve between its points and exact at them; null outside of them.
  page.valueAt = (series, metric, x, logX) => {
    const known = page.pointsOf(series, metric);
    const exact = known.find(({ at }) => at === x);
    if (exact) return { ...exact, measured: true };
    if (!logX || known.length < 2 || x < known[0].at || x > known.at(-1).at) return null;
    return { value: page.curveOfSeries(series, metric)(x), measured: false };
  };
})(window.Crossover);
