// What the chart's state asks for: the cells of a study as lines of one metric over one axis, and how these look.
"use strict";
((page) => {
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
    const rows = data.rows.filter((row) => row.study === state.study);
    // Of a machine elsewhere its accelerators count, and its CPU on all cores.
    const elsewhere = data.elsewhere.rows.filter((row) => row.study === state.study && !row.device.startsWith("cpu-"));
    const known = state.elsewhere ? [...rows, ...elsewhere] : rows;
    const metrics = data.metrics.filter((metric) => known.some((row) => page.pointOf(row, metric)));
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
    return { study: state.study, rows, mine, metrics, metric, axes, x, places, lines, line, shown, sizes, asked, size, between, splits, whose, hasElsewhere };
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
