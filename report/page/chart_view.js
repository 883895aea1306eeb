// What the chart's state asks for: the cells of a study as lines of one metric over one axis, and how these look.
"use strict";
((page) => {
  const MOST_GROUPS = 3; // of lines that a study begins with
  const MOST_BARS = 24;
  const data = page.data();

  page.SPLIT = { key: "split", title: "where the time goes" };
  page.chartStudies = Object.keys(data.studies).filter((name) => data.rows.some((row) => row.study === name));

  // Where a chart begins: at its first crossover, else at the middle size.
  function beginning(sizes, mine, x) {
    const crossover = data.crossovers.find(({ cell, on }) => mine.has(cell) && on[x.key]);
    if (!crossover) return sizes[Math.floor(sizes.length / 2)];
    const [at, low, high] = crossover.on[x.key];
    return at ?? Math.sqrt(low * high);
  }

  // The study's metrics, axes and groups of lines, those shown, the sizes that they have, and the size that is read.
  page.viewOf = (state) => {
    const rows = data.rows.filter((row) => row.study === state.study);
    // Of a machine elsewhere its accelerators count, and its CPU on all cores.
    const elsewhere = data.elsewhere.rows.filter((row) => row.study === state.study && !row.device.startsWith("cpu-"));
    const metrics = data.metrics.filter((metric) => [...rows, ...elsewhere].some((row) => page.pointOf(row, metric)));
    const split = rows.filter((row) => data.splits.cells[row.place]);
    if (split.length) metrics.push(page.SPLIT);
    const metric = metrics.find(({ key }) => key === state.y) ?? metrics[0];

    const axes = page.xChoices(rows);
    const wanted = [state.x, data.studies[state.study].x_axis, axes[0].key].find((key) => axes.some((one) => one.key === key));
    const x = axes.find(({ key }) => key === wanted);
    const { series, places } = page.seriesOf(rows, elsewhere, x.key);
    const own = series.filter((one) => !one.elsewhere);
    const groupOf = new Map(own.flatMap(({ group, points }) => points.map(({ row }) => [row, group])));
    const groups = [...new Set(groupOf.values())];
    const line = groups.includes(state.line) ? state.line : groups.length > MOST_GROUPS ? groups[0] : "";
    const isMine = (group) => line === "" || group === line;
    const mine = new Set(rows.filter((row) => isMine(groupOf.get(row))).map(({ place }) => place));
    const hasValue = (one) => one.points.some(({ row }) => page.pointOf(row, metric));
    const shown = !metric || metric === page.SPLIT ? []
      : series.filter((one) => isMine(one.group) && (state.elsewhere || !one.elsewhere) && hasValue(one));

    const sizes = [...new Set(shown.flatMap(({ points }) => points.map(({ at }) => at)))].sort((one, other) => one - other);
    const size = sizes.length ? page.within(state.size ?? beginning(sizes, mine, x), sizes) : null;
    const splits = split.filter((row) => isMine(groupOf.get(row))).slice(0, MOST_BARS);
    const whose = (row) => (line === "" && groups.length > 1 ? `, ${groupOf.get(row)}` : "");
    return { study: state.study, rows, mine, metrics, metric, axes, x, places, groups, line, shown, sizes, size, splits, whose };
  };

  // A size, or the nearest of those measured.
  page.within = (size, sizes) => Math.min(Math.max(size, sizes[0]), sizes.at(-1));

  page.ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // Colour, dashes and name of each line: a device's colour where there is one group of them, else a group's.
  page.looksOf = (shown) => {
    const groups = [...new Set(shown.map(({ group }) => group))];
    const devices = new Set(shown.map(({ device }) => device));
    const { palette, devices: own } = data.colours;
    const several = groups.length > 1;
    return new Map(shown.map((one) => {
      const colour = several ? palette[groups.indexOf(one.group) % palette.length] : own[one.device];
      const dotted = several && devices.size > 1 && one.device.startsWith("cpu");
      return [one, {
        // The palette's black is the page's ink, so that it shows on a dark page too.
        colour: colour === "#111111" ? page.ink("ink") : colour,
        dashes: one.elsewhere ? "7 5" : dotted ? "2 3" : "none",
        name: several ? `${one.label}, ${one.group}` : one.label,
      }];
    }));
  };
})(window.Crossover);
