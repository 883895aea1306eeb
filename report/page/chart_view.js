// The cells of a study as series of one metric over one axis, as the chart's state asks for them, and how these look.
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

  // --- Whole jobs: start-up and steps ---

  // Cells with the speed-up over the CPU of jobs of so many steps; null where a start-up is not known.
  function ofJobs(rows, steps) {
    const beside = (row) => data.axes.map((axis) => (axis === "device" ? "" : row[axis])).join("|");
    const bases = new Map(rows.filter(({ device }) => device === "cpu").map((row) => [beside(row), row]));
    const job_s = (row) => (row && row.startup_s !== null && row.step_time_s !== null ? row.startup_s + steps * row.step_time_s : null);
    return rows.map((row) => {
      const [own, base] = [job_s(row), job_s(bases.get(beside(row)))];
      const speedup = row.speedup === null || own === null || base === null ? null : base / own;
      return { ...row, speedup, speedup_low: null, speedup_high: null };
    });
  }

  // Where the curves of jobs cross the CPU's, as the chart marks crossovers: place, no interval, words, and whose line it is.
  page.jobCrossovers = (seen) => seen.shown.flatMap((one) => {
    const points = page.pointsOf(one, seen.metric);
    const curve = page.curveOf(points);
    return points.slice(1).flatMap((next, rank) => {
      const isBehind = points[rank].value < 1;
      if (isBehind === (next.value < 1)) return [];
      let [low, high] = [points[rank].at, next.at];
      for (let halved = 0; halved < 50; halved += 1) {
        const middle = Math.sqrt(low * high);
        if ((curve(middle) < 1) === isBehind) low = middle;
        else high = middle;
      }
      const place = high.toPrecision(3);
      return [[high, null, null, `${page.format.place(Number(place), seen.x.title)} (jobs of ${page.format.whole(seen.steps)} steps)`, seen.whose(next.row)]];
    });
  });

  // --- What is shown ---

  const MOST_GROUPS = 3; // of lines that a study begins with
  const MOST_TOGETHER = 7; // that are shown all at once
  const MOST_DASHED = 3; // that dashes tell apart; more take a colour each
  const DASHES = [["none", "7 5"], ["2 4", "7 4 2 4"], ["9 3 2 3", "12 4"]]; // of lines here, and elsewhere
  const data = page.data();

  page.ALL = "all lines";
  page.SPLIT = { key: "split", title: "where the time goes" };
  page.chartStudies = Object.keys(data.studies).filter((name) => data.rows.some((row) => row.study === name));

  function nearest(asked, sizes) {
    const apart = (size) => Math.abs(Math.log(size / asked));
    return sizes.reduce((best, size) => (apart(size) < apart(best) ? size : best));
  }

  // Where a chart begins: at the size nearest to its first crossover, else at the middle one.
  function beginning(sizes, mine, x) {
    const crossover = data.crossovers.find(({ cell, on }) => mine.has(cell) && on[x.key]);
    if (!crossover) return sizes[Math.floor(sizes.length / 2)];
    const [at, low, high] = crossover.on[x.key];
    return nearest(at ?? Math.sqrt(low * high), sizes);
  }

  // The study's metrics, axes and groups of lines, those shown, the sizes that they have, and the size that is read.
  page.viewOf = (state) => {
    const steps = state.y === "speedup" ? state.steps : null;
    const measured = data.rows.filter((row) => row.study === state.study);
    const ofRuns = ofJobs(measured, steps ?? 1);
    const hasStartups = ofRuns.some(({ speedup }) => speedup !== null);
    const rows = steps && hasStartups ? ofRuns : measured;
    // Of a machine elsewhere its accelerators count, and its CPU on all cores.
    const elsewhere = rows !== measured ? [] : data.elsewhere.rows.filter((row) => row.study === state.study && !row.device.startsWith("cpu-"));
    const known = state.elsewhere ? [...rows, ...elsewhere] : rows;
    const metrics = data.metrics.filter((metric) => known.some((row) => page.pointOf(row, metric)));
    const split = rows.filter((row) => data.splits.cells[row.place]);
    if (split.length) metrics.push(page.SPLIT);
    const chosen = metrics.find(({ key }) => key === state.y) ?? metrics[0];
    const metric = rows === measured ? chosen : { ...chosen, title: `${chosen.title}, jobs of ${page.format.whole(steps)} steps` };

    const axes = page.xChoices(rows);
    const wanted = [state.x, data.studies[state.study].x_axis, axes[0].key].find((key) => axes.some((one) => one.key === key));
    const x = axes.find(({ key }) => key === wanted);
    const { series, places } = page.seriesOf(rows, elsewhere, x.key);
    const own = series.filter((one) => !one.elsewhere);
    const groupOf = new Map(own.flatMap(({ group, points }) => points.map(({ row }) => [row, group])));
    const groups = [...new Set(groupOf.values())];
    const lines = groups.length < 2 ? [] : [...(groups.length <= MOST_TOGETHER ? [page.ALL] : []), ...groups];
    const line = lines.includes(state.line) ? state.line : groups.length > MOST_GROUPS ? groups[0] : page.ALL;
    const isMine = (group) => line === page.ALL || group === line;
    const mine = new Set(rows.filter((row) => isMine(groupOf.get(row))).map(({ place }) => place));
    const hasValue = (one) => one.points.some(({ row }) => page.pointOf(row, metric));
    const shown = !metric || metric === page.SPLIT ? []
      : series.filter((one) => isMine(one.group) && (state.elsewhere || !one.elsewhere) && hasValue(one));

    const hasElsewhere = Boolean(metric) && elsewhere.some((row) => page.pointOf(row, metric));
    for (const one of shown) {
      one.base = series.find((other) => other !== one && other.group === one.group && other.device === "cpu" && !other.elsewhere);
    }
    const splits = split.filter((row) => isMine(groupOf.get(row))).sort((one, other) => one.size - other.size);
    const whose = (row) => (line === page.ALL && groups.length > 1 ? groupOf.get(row) : "");
    const isSplit = metric === page.SPLIT;
    const found = isSplit ? splits.map(({ size: own }) => own) : shown.flatMap(({ points }) => points.map(({ at }) => at));
    const sizes = [...new Set(found)].sort((one, other) => one - other);
    // Only lines over a number have values between their sizes.
    const between = !places && !isSplit;
    const wish = sizes.length ? state.size ?? beginning(sizes, mine, isSplit ? { key: "size" } : x) : null;
    // Between whole sizes, a size is a whole number too.
    const asked = wish !== null && between && sizes.every(Number.isInteger) ? Math.max(Math.round(wish), 1) : wish;
    const size = asked === null ? null : isSplit ? nearest(asked, sizes) : page.within(places ? Math.round(asked) : asked, sizes);
    const jobs = { hasStartups, steps: rows === measured ? null : steps };
    return { study: state.study, rows, mine, metrics, metric, axes, x, places, lines, line, shown, sizes, asked, size, between, splits, whose, hasElsewhere, ...jobs };
  };

  // A size, or the nearest of those measured.
  page.within = (size, sizes) => Math.min(Math.max(size, sizes[0]), sizes.at(-1));

  page.ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const hex = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

  // A colour of the palette as this page shows it: lighter in the dark, and black as the page's ink.
  page.tone = (colour) => {
    if (colour === "#111111") return page.ink("ink");
    if (Math.max(...hex(page.ink("paper"))) > 128) return colour;
    return `#${hex(colour).map((part) => Math.round(0.6 * part + 0.4 * 255).toString(16).padStart(2, "0")).join("")}`;
  };

  // Colour, dashes and name of each line: a device's colour, with dashes for its groups; a colour for each of many groups.
  page.looksOf = (shown) => {
    const groups = [...new Set(shown.map(({ group }) => group))];
    const devices = new Set(shown.map(({ device }) => device));
    const { palette, devices: own } = data.colours;
    const several = groups.length > 1;
    const dashed = devices.size > 1 && groups.length <= MOST_DASHED;
    return new Map(shown.map((one) => {
      const rank = groups.indexOf(one.group);
      const colour = several && !dashed ? palette[rank % palette.length] : own[one.device];
      const dotted = several && devices.size > 1 && one.device.startsWith("cpu");
      return [one, {
        colour: page.tone(colour),
        dashes: dashed ? DASHES[rank][Number(one.elsewhere)] : one.elsewhere ? "7 5" : dotted ? "2 4" : "none",
        name: several ? `${one.label}, ${one.group}` : one.label,
      }];
    }));
  };
})(window.Crossover);
