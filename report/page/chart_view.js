// The series that the chart shows: cells of a study by metric, axis and the chart's state, and their looks.
"use strict";
((page) => {
  const distinct = (rows, key) => new Set(rows.map((row) => row[key]).filter((value) => value !== null));

  page.sizeText = (row) => row.size_label ?? page.format.withUnit(page.format.whole(row.size), row.size_name);
  // A device without its product name.
  page.sideText = (row) => row.device_label.split(" (")[0];

  const WORDS = {
    size: page.sizeText,
    batch_size: (row) =>
      row.batch_name ? page.format.withUnit(page.format.whole(row.batch_size), row.batch_name) : `batch ${page.format.whole(row.batch_size)}`,
    device: (row) => row.device_label,
  };
  const word = (row, axis) => (WORDS[axis] ? WORDS[axis](row) : row[axis].replaceAll("_", " "));
  const named = (row, axes) => axes.map((axis) => word(row, axis)).join(", ");
  const placeName = (row, axes) => named(row, axes) || page.sizeText(row);

  const isCpu = ({ device }) => device.split("-")[0] === "cpu";
  const coresOf = (rows) => distinct(rows.filter(isCpu), "threads");

  // A cell with its speed-up over the CPU on this number of cores, for jobs of `steps` steps if given.
  function overCoresOf(row, cores, rows, steps) {
    if (steps) {
      const isSameSeries = (other) => data.axes.every((axis) => axis === "device" || other[axis] === row[axis]);
      const base = jobOf(rows.find((other) => isCpu(other) && other.threads === cores && isSameSeries(other)), steps);
      const job = isCpu(row) ? null : jobOf(row, steps);
      return { ...row, ...(job && base ? jobSpeedup(job, base) : UNKNOWN) };
    }
    const [speedup, speedup_low, speedup_high, ahead] = data.over_cores[row.place]?.[cores] ?? [null, null, null, 0];
    return { ...row, speedup, speedup_low, speedup_high, ahead };
  }

  // The possible x axes; if no number varies, one axis without numbers.
  page.xChoices = (rows) => {
    const titles = { size: rows[0].size_name, parameters: "parameters", batch_size: rows[0].batch_name ?? "samples per batch" };
    const choices = Object.keys(titles).filter((key) => distinct(rows, key).size > 1).map((key) => ({ key, title: titles[key] }));
    if (coresOf(rows).size > 1) choices.push({ key: "cpu_threads", title: "CPU cores" });
    return choices.length ? choices : [{ key: null, title: "" }];
  };

  // The series over an axis: device, label, group (the other axes that distinguish it), setting (the group without the machine),
  // and cells in the order of the axis. `places` are the names of the positions on an axis without numbers. Cells measured elsewhere are separate series. Over CPU
  // cores, the CPU is one device, and other devices are repeated at each number of cores.
  page.seriesOf = (rows, elsewhere, x, steps) => {
    const axes = page.data().axes.filter((axis) => axis !== "study" && axis !== "device" && distinct(rows, axis).size > 1);
    const apart = axes.filter((axis) => axis !== x && !(x === "parameters" && axis === "size"));
    const places = x ? null : [...new Set(rows.map((row) => placeName(row, apart)))];
    const overCores = x === "cpu_threads";
    const allCores = rows.find(({ device }) => device === "cpu")?.device_label ?? "CPU";
    const placesOf = (row, groupAxes) => {
      if (overCores) return isCpu(row) ? [row.threads] : [...coresOf(rows)];
      return [x ? row[x] : places.indexOf(placeName(row, groupAxes))];
    };
    const byName = new Map();
    for (const row of [...rows, ...elsewhere]) {
      const groupAxes = row.elsewhere ? apart.filter((axis) => axis !== "machine") : apart;
      const group = x ? named(row, groupAxes) : "";
      const pooled = overCores && isCpu(row);
      const label = pooled ? allCores : row.elsewhere ? `${row.device_label} ${page.data().elsewhere.estimated ? "(estimated)" : "elsewhere"}` : row.device_label;
      const key = [label, row.elsewhere ? row.machine : "", group].join("|");
      if (!byName.has(key)) {
        const setting = x ? named(row, groupAxes.filter((axis) => axis !== "machine")) : "";
        const device = pooled ? "cpu" : row.device;
        byName.set(key, { device, label, group, setting, elsewhere: Boolean(row.elsewhere), points: [] });
      }
      const measuredAt = placesOf(row, groupAxes).filter((at) => at !== null && at >= 0);
      byName.get(key).points.push(...measuredAt.map((at) => ({ at, row: overCores ? overCoresOf(row, at, rows, steps) : row })));
    }
    const series = [...byName.values()];
    for (const line of series) line.points.sort((first, second) => first.at - second.at);
    return { series, places };
  };

  // A cell's value of a metric with its 95 % interval; null without a value, or if a logarithmic axis cannot show it.
  page.pointOf = (row, metric) => {
    const value = row[metric.key] ?? null;
    const [low, high] = (metric.interval ?? []).map((name) => row[name]);
    return value === null || value <= 0 ? null : { value, low: low ?? null, high: high ?? null };
  };

  // Slopes at the points of a curve that is monotonic between each two points (PCHIP, Fritsch and Butland 1984). The report's
  // crossovers are interpolated in the same way. `gaps` are the distances of the points, `rises` the slopes between them.
  function slopesOf(gaps, rises) {
    if (rises.length < 2) return [rises[0], rises[0]];
    const end = (gap, next, rise, after) => {
      const slope = ((2 * gap + next) * rise - gap * after) / (gap + next);
      if (slope * rise <= 0) return 0;
      return rise * after <= 0 && Math.abs(slope) > 3 * Math.abs(rise) ? 3 * rise : slope;
    };
    const inner = rises.slice(1).map((rise, rank) => {
      const [before, gap, next] = [rises[rank], gaps[rank], gaps[rank + 1]];
      const [weightBefore, weight] = [2 * next + gap, next + 2 * gap];
      return before * rise <= 0 ? 0 : (weightBefore + weight) / (weightBefore / before + weight / rise);
    });
    const last = rises.length - 1;
    return [end(gaps[0], gaps[1], rises[0], rises[1]), ...inner, end(gaps[last], gaps[last - 1], rises[last], rises[last - 1])];
  }

  // The curve through points {at, value} in the order of `at`, on logarithmic scales, as a function of the position.
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

  page.pointsOf = (series, metric) => series.points.flatMap(({ at, row }) => {
    const point = page.pointOf(row, metric);
    return point ? [{ at, row, ...point }] : [];
  });

  // The curve of a series. If `base`, the CPU of its group, has the same points, the curve is that of the CPU times that of their
  // ratio, since crossovers are computed from the ratio.
  page.curveOfSeries = (series, metric) => {
    const points = page.pointsOf(series, metric);
    const basePoints = series.base ? page.pointsOf(series.base, metric) : [];
    const isPaired = points.length === basePoints.length && points.every(({ at }, rank) => at === basePoints[rank].at);
    if (!isPaired) return page.curveOf(points);
    const ratios = points.map(({ at, value }, rank) => ({ at, value: value / basePoints[rank].value }));
    const [base, ratio] = [page.curveOf(basePoints), page.curveOf(ratios)];
    return (at) => base(at) * ratio(at);
  };

  // A series' value at a position, between its points from its curve if `logX`; else null.
  page.valueAt = (series, metric, x, logX) => {
    const points = page.pointsOf(series, metric);
    const exact = points.find(({ at }) => at === x);
    if (exact) return { ...exact, measured: true };
    if (!logX || points.length < 2 || x < points[0].at || x > points.at(-1).at) return null;
    return { value: page.curveOfSeries(series, metric)(x), measured: false };
  };

  // --- Whole jobs: start-up and steps ---

  // Student's t quantile of a two-sided 95 % interval; between whole degrees of freedom it is interpolated linearly in their
  // inverse.
  function quantile(freedom) {
    const [below, largest] = [Math.floor(freedom), data.t_quantiles.length - 1];
    const [rank, next] = below < largest ? [below, below + 1] : [largest, Infinity];
    const share = (1 / rank - 1 / freedom) / (1 / rank - 1 / next);
    return data.t_quantiles[rank - 1] + share * (data.t_quantiles[rank] - data.t_quantiles[rank - 1]);
  }

  // The mean time of a job of `steps` steps, its squared relative error (null with one trial), and the degrees of freedom.
  function jobOf(row, steps) {
    if (!row?.job) return null;
    const [startup_s, step_s, ofStartup, ofBoth, ofStep, trials] = row.job;
    const time_s = startup_s + steps * step_s;
    const error = ofStep === null ? null : (ofStartup + 2 * steps * ofBoth + steps * steps * ofStep) / (time_s * time_s);
    return { time_s, error, freedom: trials - 1 };
  }

  // The speed-up of a job over one on the base, with Welch's interval on a logarithmic scale, and the significantly faster side.
  function jobSpeedup(job, base) {
    const speedup = base.time_s / job.time_s;
    const error = job.error === null || base.error === null ? null : job.error + base.error;
    const freedom = error === null ? null : (error * error) / (job.error ** 2 / job.freedom + base.error ** 2 / base.freedom);
    const factor = error === null ? data.one_trial_lead : Math.exp(quantile(freedom) * Math.sqrt(error));
    const ahead = speedup >= factor ? 1 : speedup <= 1 / factor ? -1 : 0;
    const [low, high] = error === null ? [null, null] : [speedup / factor, speedup * factor];
    return { speedup, speedup_low: low, speedup_high: high, ahead };
  }

  // Speed-ups are over the CPU or, in a study of several GPUs without one, over one GPU.
  page.isBase = ({ study, device }) => device === data.studies[study].base;
  page.baseName = (study) => (data.studies[study].base === "cpu" ? "CPU" : "1 GPU");

  const UNKNOWN = { speedup: null, speedup_low: null, speedup_high: null, ahead: 0 };

  // Cells with the speed-up of jobs of `steps` steps; null if it is not known.
  function ofJobs(rows, steps) {
    const seriesOf = (row) => data.axes.map((axis) => (axis === "device" ? "" : row[axis])).join("|");
    const bases = new Map(rows.filter(page.isBase).map((row) => [seriesOf(row), row]));
    return rows.map((row) => {
      const [job, base] = [jobOf(row, steps), jobOf(bases.get(seriesOf(row)), steps)];
      return { ...row, ...(row.speedup === null || !job || !base ? UNKNOWN : jobSpeedup(job, base)) };
    });
  }

  // The crossovers of jobs, in the form of the chart's crossovers, with the name of the group. Each is between two sizes at which
  // different sides are significantly ahead, without such a size between them.
  page.jobCrossovers = (view) => view.shown.flatMap((line) => {
    const points = page.pointsOf(line, view.metric);
    const curve = page.curveOf(points);
    const significant = points.filter(({ row }) => row.ahead);
    return significant.slice(1).flatMap((after, rank) => {
      const before = significant[rank];
      if (before.row.ahead === after.row.ahead) return [];
      let [low, high] = [before.at, after.at];
      for (let halved = 0; halved < 50; halved += 1) {
        const middle = Math.sqrt(low * high);
        if ((curve(middle) < 1) === (before.value < 1)) low = middle;
        else high = middle;
      }
      const place = (at) => page.format.place(Number(at.toPrecision(3)), view.x.title);
      const words = `${place(high)} (between ${place(before.at)} and ${place(after.at)}; jobs of ${page.format.whole(view.steps)} steps)`;
      return [[high, before.at, after.at, words, view.groupName(after.row)]];
    });
  });

  // --- What is shown ---

  const MOST_GROUPS = 3; // groups of lines all shown at first; of several machines, those of the first setting are
  const MOST_TOGETHER = 7; // groups that can all be shown at once
  const MOST_DASHED = 3; // groups told apart by dashes; with more, each gets a colour
  const DASHES = [["none", "7 5"], ["2 4", "7 4 2 4"], ["9 3 2 3", "12 4"]]; // dash patterns of lines measured here, and elsewhere
  const data = page.data();

  page.ALL = "all lines";
  page.SPLIT = { key: "split", title: "where the time goes" };
  page.chartStudies = Object.keys(data.studies).filter((name) => data.rows.some((row) => row.study === name));

  function nearest(target, sizes) {
    const apart = (size) => Math.abs(Math.log(size / target));
    return sizes.reduce((best, size) => (apart(size) < apart(best) ? size : best));
  }

  // That nearest to the first crossover, else the middle one.
  function initialSize(sizes, chosenPlaces, x) {
    const crossover = data.crossovers.find(({ cell, on }) => chosenPlaces.has(cell) && on[x.key]);
    if (!crossover) return sizes[Math.floor(sizes.length / 2)];
    const [at, low, high] = crossover.on[x.key];
    return nearest(at ?? Math.sqrt(low * high), sizes);
  }

  // What the chart shows in a state.
  page.viewOf = (state) => {
    const steps = state.y === "speedup" ? state.steps : null;
    const measured = data.rows.filter((row) => row.study === state.study);
    const axes = page.xChoices(measured);
    const wanted = [state.x, data.studies[state.study].x_axis, axes[0].key].find((key) => axes.some((axis) => axis.key === key));
    const x = axes.find(({ key }) => key === wanted);
    const ofRuns = ofJobs(measured, steps ?? 1);
    const hasStartups = ofRuns.some(({ speedup }) => speedup !== null);
    const rows = steps && hasStartups ? ofRuns : measured;
    const elsewhere = rows !== measured ? [] : data.elsewhere.rows.filter((row) => row.study === state.study && !row.device.startsWith("cpu-"));
    const drawn = state.elsewhere ? [...rows, ...elsewhere] : rows;
    const over = page.baseName(state.study).replace(/^CPU/, "the $&");
    const metrics = data.metrics.filter((metric) => drawn.some((row) => page.pointOf(row, metric)))
      .map((metric) => (metric.key === "speedup" ? { ...metric, title: `${metric.title} over ${over}` } : metric));
    const split = rows.filter((row) => data.splits.cells[row.place]);
    if (split.length) metrics.push(page.SPLIT);
    const chosen = metrics.find(({ key }) => key === state.y) ?? metrics[0];
    const metric = rows === measured ? chosen : { ...chosen, title: `${chosen.title}, jobs of ${page.format.whole(steps)} steps` };

    const { series: allSeries, places } = page.seriesOf(rows, elsewhere, x.key, rows === measured ? null : steps);
    const here = allSeries.filter((series) => !series.elsewhere);
    const groupOf = new Map(here.flatMap(({ group, points }) => points.map(({ row }) => [row.place, group])));
    const groups = [...new Set(groupOf.values())];
    // Groups that differ only by the machine can be shown together.
    const settings = [...new Set(here.map(({ setting }) => setting))];
    const ofMachines = distinct(rows, "machine").size > 1 && settings.length > 1 ? settings : [];
    const together = groups.length <= MOST_TOGETHER || settings.length === 1 ? [page.ALL] : [];
    const lines = groups.length < 2 ? [] : [...together, ...ofMachines, ...groups];
    const narrow = groups.length > MOST_GROUPS && settings.length > 1 ? [...ofMachines, ...groups][0] : page.ALL;
    const line = lines.includes(state.line) ? state.line : narrow;
    const settingOf = new Map(allSeries.map(({ group, setting }) => [group, setting]));
    const isChosen = (group) => line === page.ALL || group === line || (ofMachines.includes(line) && settingOf.get(group) === line);
    const chosenPlaces = new Set(rows.filter((row) => isChosen(groupOf.get(row.place))).map(({ place }) => place));
    const hasValue = (series) => series.points.some(({ row }) => page.pointOf(row, metric));
    const shown = !metric || metric === page.SPLIT ? []
      : allSeries.filter((series) => isChosen(series.group) && (state.elsewhere || !series.elsewhere) && hasValue(series));

    const hasElsewhere = Boolean(metric) && elsewhere.some((row) => page.pointOf(row, metric));
    for (const series of shown) {
      series.base = here.find((base) => base !== series && base.group === series.group && page.isBase(base.points[0].row));
    }
    const splits = split.filter((row) => isChosen(groupOf.get(row.place))).sort((first, second) => first.size - second.size);
    const groupName = (row) => (groups.filter(isChosen).length > 1 ? groupOf.get(row.place) : "");
    const isSplit = metric === page.SPLIT;
    const allSizes = isSplit ? splits.map((row) => row.size) : shown.flatMap(({ points }) => points.map(({ at }) => at));
    const sizes = [...new Set(allSizes)].sort((first, second) => first - second);
    // Only lines over a numeric axis have values between sizes.
    const between = !places && !isSplit;
    const requestedSize = sizes.length ? state.size ?? initialSize(sizes, chosenPlaces, isSplit ? { key: "size" } : x) : null;
    const wantedSize = requestedSize !== null && between && sizes.every(Number.isInteger) ? Math.max(Math.round(requestedSize), 1) : requestedSize;
    const size = wantedSize === null ? null : isSplit ? nearest(wantedSize, sizes) : page.within(places ? Math.round(wantedSize) : wantedSize, sizes);
    const jobs = { hasStartups, steps: rows === measured ? null : steps };
    return { study: state.study, rows, chosenPlaces, metrics, metric, axes, x, places, lines, line, shown, sizes, wantedSize, size, between, splits, groupName, hasElsewhere, ...jobs };
  };

  page.within = (size, sizes) => Math.min(Math.max(size, sizes[0]), sizes.at(-1));

  page.ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const hex = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

  // A colour of the palette in the page's theme: lighter in dark mode; for black, the colour of text.
  page.tone = (colour) => {
    if (colour === "#111111") return page.ink("ink");
    if (Math.max(...hex(page.ink("paper"))) > 128) return colour;
    return `#${hex(colour).map((part) => Math.round(0.6 * part + 0.4 * 255).toString(16).padStart(2, "0")).join("")}`;
  };

  // Colour, dashes and name of each line: colours show devices and dashes show groups or, with many groups or one device, colours
  // show groups.
  page.looksOf = (shown) => {
    const groups = [...new Set(shown.map(({ group }) => group))];
    const devices = new Set(shown.map(({ device }) => device));
    const { palette, devices: deviceColours } = data.colours;
    const several = groups.length > 1;
    const dashed = devices.size > 1 && groups.length <= MOST_DASHED;
    return new Map(shown.map((series) => {
      const rank = groups.indexOf(series.group);
      const colour = several && !dashed ? palette[rank % palette.length] : deviceColours[series.device];
      const dotted = several && devices.size > 1 && series.device.startsWith("cpu");
      return [series, {
        colour: page.tone(colour),
        dashes: dashed ? DASHES[rank][Number(series.elsewhere)] : series.elsewhere ? "7 5" : dotted ? "2 4" : "none",
        name: several ? `${series.label}, ${series.group}` : series.label,
      }];
    }));
  };
})(window.Crossover);
