// What ECharts is told to draw: lines, intervals, lost cells and crossovers.
"use strict";
((page) => {
  const LOST = "path://M1,0 L5,4 L9,0 L10,1 L6,5 L10,9 L9,10 L5,6 L1,10 L0,9 L4,5 L0,1 Z";
  const MOST_LABELS = 6;
  const [LEFT, RIGHT] = [16, 36]; // pixels beside the plot and the words of its y axis
  const SIDES = LEFT + RIGHT + 10;
  const TOP = 40; // above it, without the crossovers' words
  const BELOW = 66; // pixels below the plot, with the words of its x axis
  const DASHES = ["solid", "dashed", "dotted"];

  function inks() {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(["ink", "soft", "line", "paper"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  // Colour and dashes of each series, by its name: a device's colour while dashes can tell the rest apart.
  page.looksOf = (series) => {
    const { devices, palette } = page.data().colours;
    const groups = [...new Set(series.map((one) => one.group))];
    const names = new Set(series.map((one) => one.device));
    const own = new Set([...names].map((name) => devices[name]));
    const byDevice = groups.length <= DASHES.length && own.size === names.size && (names.size > 1 || groups.length === 1);
    return new Map(series.map((one, rank) => {
      if (byDevice) return [one.name, { colour: devices[one.device], dashes: DASHES[groups.indexOf(one.group)] }];
      const colour = palette[rank % palette.length];
      const dashes = DASHES[Math.floor(rank / palette.length) % DASHES.length];
      // The palette's black is the page's ink, so that it shows on a dark page too.
      return [one.name, { colour: colour === "#111111" ? inks().ink : colour, dashes }];
    }));
  };

  function logarithmic(extent, length, sizeOf) {
    const customValues = page.logTicks(extent, length, sizeOf);
    return { type: "log", min: extent[0], max: extent[1], axisTick: { customValues }, axisLabel: { customValues } };
  }

  function tooltip(series, metric, x, row) {
    const lines = [series.name];
    if (x.key) lines.push(`${page.format.whole(row[x.key])} ${x.title}`);
    const point = page.pointOf(row, metric);
    if (point) {
      const text = (value) => page.metricText(metric, value);
      lines.push(`${metric.title}: ${text(point.value)}`);
      if (point.low !== null) lines.push(`95 % interval: ${text(point.low)} to ${text(point.high)}`);
      else if (metric.interval) lines.push("no interval: one trial");
    }
    lines.push(`trials: ${row.trials}${row.trials_not_ok ? `, and ${row.trials_not_ok} not ok` : ""}; status: ${row.status}`);
    if (row.reason) lines.push(row.reason);
    if (row.flags) lines.push(`flags: ${row.flags.replaceAll(" ", ", ")}`);
    return page.element("div", { class: "tip" }, ...lines.map((line) => page.element("div", {}, line)));
  }

  function line(series, look, view, ink) {
    const data = series.points.flatMap(({ at, row }) => {
      const point = page.pointOf(row, view.metric);
      const hollow = row.flags ? { color: ink.paper, borderColor: look.colour, borderWidth: 2 } : { color: look.colour };
      return point ? [{ value: [at, point.value], row, series, itemStyle: hollow }] : [];
    });
    return {
      type: view.x.key ? "line" : "scatter", name: series.name, data, symbol: "circle", symbolSize: 9, z: 3,
      lineStyle: { color: look.colour, type: look.dashes, width: 2 }, itemStyle: { color: look.colour },
      ...marks(series, look, view, ink),
    };
  }

  // Each interval is a stroke of its own: low, high, a gap.
  function intervals(series, look, view) {
    const data = series.points.flatMap(({ at, row }) => {
      const point = page.pointOf(row, view.metric);
      return point && point.low !== null ? [[at, point.low], [at, point.high], [at, null]] : [];
    });
    const lineStyle = { color: look.colour, width: 5, opacity: 0.35 };
    return { type: "line", data, silent: true, showSymbol: false, z: 2, lineStyle, itemStyle: lineStyle };
  }

  function lost(series, look, view) {
    const data = series.points.flatMap(({ at, row }) =>
      row.status !== "ok" && row[view.metric.key] === null ? [{ value: [at, view.floor], row, series }] : []);
    return { type: "scatter", data, symbol: LOST, symbolSize: 10, itemStyle: { color: look.colour }, z: 4 };
  }

  function marks(series, look, view, ink) {
    const rows = new Set(series.points.map(({ row }) => row.place));
    const kinds = ["seconds", "rate"];
    const own = page.data().crossovers.filter((one) => rows.has(one.cell) && one.on[view.x.key] && kinds.includes(view.metric.kind));
    const found = own.map((one) => one.on[view.x.key]);
    if (!found.length) return {};
    const whose = series.group && view.series.some((one) => one.group !== series.group) ? `, ${series.group}` : "";
    const label = (at, words) => {
      if (view.labels >= MOST_LABELS) return { show: false };
      const share = view.shareOf(at);
      const right = share > 0.5;
      const long = `crossover: ${words}${whose}`;
      const room = Math.max(share, 1 - share) * view.length;
      return {
        formatter: page.widthOf(long) < room ? long : words, color: ink.ink, fontSize: page.CHART_FONT_PX, position: "end",
        textBorderColor: ink.paper, textBorderWidth: 3,
        align: right ? "right" : "left", offset: [right ? 4 : -4, -16 * view.labels++],
      };
    };
    return {
      markLine: {
        silent: true, symbol: "none", lineStyle: { color: ink.ink, type: look.dashes, width: 1 },
        data: found.map(([at, , , words]) => ({ xAxis: at, label: label(at, words) })),
      },
      markArea: {
        silent: true, itemStyle: { color: ink.soft, opacity: 0.18 },
        data: found.filter(([, low, high]) => low !== null || high !== null)
          .map(([, low, high]) => [{ xAxis: low ?? "min" }, { xAxis: high ?? "max" }]),
      },
    };
  }

  // Least and largest value above 0. Not Math.min(...): cells may be more than a call's arguments.
  const ends = (values) => values.filter((value) => value > 0).reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, 0]);

  // The same with some room.
  function extent(values) {
    const [low, high] = ends(values);
    return high ? [low / 1.4, high * 1.4] : [0.1, 10];
  }

  // Values and the ends of their intervals; the widest of these run out of the chart, lest the lines shrink to nothing.
  function valuesOf(shown, metric) {
    const points = shown.flatMap((series) => series.points.map(({ row }) => page.pointOf(row, metric))).filter(Boolean);
    const [least, most] = ends(points.map(({ value }) => value));
    return points.flatMap(({ value, low, high }) => [value, Math.max(low ?? value, least / 2), Math.min(high ?? value, most * 2)]);
  }

  // Options for a view: its series with those shown, metric, axis and the scales of both axes.
  page.chartOption = (view) => {
    const ink = inks();
    const shown = view.series.filter((series) => !view.hidden.has(series.name));
    const looks = page.looksOf(view.series);
    const wordsX = (value) => page.format.count(value);
    const wordsY = (value) => page.metricText(view.metric, value);
    const widthX = (value) => page.widthOf(wordsX(value));

    const ys = extent(valuesOf(shown, view.metric));
    const scaleOfY = (top) => {
      const room = [view.height - top - BELOW, () => page.CHART_FONT_PX];
      return view.logY ? logarithmic(ys, ...room) : { type: "value", min: 0 };
    };
    view.floor = view.logY ? ys[0] * 1.05 : 0;
    const marked = scaleOfY(TOP).axisLabel?.customValues ?? ys;
    view.length = view.width - SIDES - Math.max(...marked.map((value) => page.widthOf(wordsY(value))));

    const xs = shown.flatMap((series) => series.points.map(({ at }) => at));
    const scaleX = logarithmic(extent(xs), view.length, widthX);
    view.shareOf = (at) => Math.log(at / scaleX.min) / Math.log(scaleX.max / scaleX.min);

    view.labels = 0;
    const series = shown.flatMap((one) => {
      const look = looks.get(one.name);
      return [intervals(one, look, view), line(one, look, view, ink), lost(one, look, view)];
    });
    const top = TOP + 16 * view.labels;
    const scaleY = scaleOfY(top);
    const text = { color: ink.soft, fontSize: page.CHART_FONT_PX };
    const axis = { axisLine: { show: true, lineStyle: { color: ink.soft } }, splitLine: { lineStyle: { color: ink.line } }, nameTextStyle: text };
    const labels = { ...text, hideOverlap: true, margin: 10 };
    return {
      animation: false,
      textStyle: { fontFamily: "inherit" },
      grid: { left: LEFT, right: RIGHT, top, bottom: 40, containLabel: true },
      tooltip: {
        trigger: "item", confine: true, backgroundColor: ink.paper, borderColor: ink.soft, textStyle: { color: ink.ink, fontSize: page.CHART_FONT_PX },
        formatter: ({ data }) => tooltip(data.series, view.metric, view.x, data.row),
      },
      xAxis: {
        ...axis, ...(view.x.key ? scaleX : { type: "category", data: view.places }), splitLine: { show: false },
        name: view.x.title, nameLocation: "middle", nameGap: 34,
        axisLabel: { ...labels, ...(view.x.key ? scaleX.axisLabel : {}), formatter: view.x.key ? wordsX : undefined },
      },
      yAxis: {
        ...axis, ...scaleY, name: view.metric.title, nameTextStyle: { ...text, align: "left" }, nameGap: 20 + 16 * view.labels,
        axisLabel: { ...labels, ...scaleY.axisLabel, formatter: wordsY },
      },
      series,
    };
  };
})(window.Crossover);
