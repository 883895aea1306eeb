// The time to expect at a size: what was measured first, the cost model where nothing was.
// This is analysis/predictions.py again, with its words; a test holds what both say side by side.
"use strict";
((page) => {
  const said = (template, values = {}) =>
    page.data().words.prediction[template].replace(/\{(\w+)\}/g, (_, name) => values[name]);

  const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0]);

  const seconds = (model, size) => model.a_s + model.b_s * size ** model.c;
  const beyond = (model, size) => Math.max(model.smallest_size / size, size / model.largest_size, 1);
  const growth = (model) => seconds(model, model.largest_size) / seconds(model, model.smallest_size);

  const endOf = (model, size) => Math.min(Math.max(size, model.smallest_size), model.largest_size);
  const timeBeyond = (model, size) => Math.exp(Math.abs(Math.log(seconds(model, size) / seconds(model, endOf(model, size)))));

  function tooFar(model, size) {
    const { too_far: most } = page.data().limits;
    const inside = model.smallest_size / most <= size && size <= model.largest_size * most;
    return !inside || timeBeyond(model, size) > most;
  }

  function limited(model) {
    const { flat, exponents: [least, most] } = page.data().limits;
    return (model.c <= least || model.c >= most) && growth(model) >= flat;
  }

  const spreadOf = (model) => Math.expm1(Math.hypot(Math.log1p(model.rms_residual), Math.log1p(model.trial_spread ?? 0)));

  const nothing = (model) => ({ device: model.device, time: null, spread: null, warnings: [] });

  function measured(model, cell) {
    const given = { ...nothing(model), outside: 1, miss: 0, limited: false };
    if (cell.step_time_s === null) {
      return { ...given, words: said(cell.reason ? "measured_without_time_why" : "measured_without_time", cell) };
    }
    if (cell.flags) given.warnings.push(said("flagged", { flags: cell.flags.replaceAll(" ", ", ") }));
    const [low, high] = [cell.step_time_low_s, cell.step_time_high_s];
    const words = high === null ? said("measured_once")
      : said("measured", { low: page.format.seconds(low), high: page.format.seconds(high), trials: cell.trials });
    return { ...given, time: cell.step_time_s, spread: model.trial_spread, words };
  }

  function warnings(model, cells, size) {
    const { whole, count, number, percent } = page.format;
    const { flat, far, large_residual: large } = page.data().limits;
    const found = [];
    const above = size > model.largest_size;
    const outside = beyond(model, size);
    if (outside > 1) {
      const ends = { size: whole(size), end: whole(above ? model.largest_size : model.smallest_size) };
      found.push(said(above ? "above" : "below", { ...ends, factor: count(outside, 3) }));
      const steep = timeBeyond(model, size);
      if (steep > far && far >= outside) found.push(said("steep", { ...ends, factor: count(steep, 3) }));
      if (limited(model)) found.push(said("limited", { exponent: number(model.c) }));
    }
    if (above && growth(model) < flat) found.push(said("flat"));
    if (model.largest_residual > large) {
      found.push(said("rough", { largest: percent(model.largest_residual), rms: percent(model.rms_residual) }));
    }
    const lost = cells.filter((cell) => cell.step_time_s === null && cell.size < size);
    if (lost.length) {
      const first = lost.reduce((least, cell) => (cell.size < least.size ? cell : least));
      found.push(said("lost", { size: whole(first.size), status: first.status }));
    }
    return found;
  }

  function expectation(model, size) {
    const cells = model.cells.map((place) => page.data().rows[place]);
    const cell = cells.find((one) => one.size === size);
    if (cell) return measured(model, cell);
    if (model.a_s === null) {
      return { ...nothing(model), words: said("no_model", { reason: model.reason }) };
    }
    const { whole } = page.format;
    if (tooFar(model, size)) {
      const [low, high] = [model.smallest_size, model.largest_size].map(whole);
      return { ...nothing(model), words: said("too_far", { low, high, size_name: model.size_name }), tooFar: true };
    }
    const within = beyond(model, size) === 1;
    let words = said(model.trial_spread === null ? "by_model_of_single_trials" : "by_model", { sizes: model.sizes });
    let time = seconds(model, size);
    if (!within) {
      const end = endOf(model, size);
      time *= cells.find((one) => one.size === end).step_time_s / seconds(model, end);
      words = said("from_end", { words, end: whole(end) });
    }
    return {
      device: model.device, time, spread: within ? spreadOf(model) : null, words,
      warnings: warnings(model, cells, size), outside: Math.max(beyond(model, size), timeBeyond(model, size)),
      miss: model.largest_residual, limited: limited(model) && !within,
    };
  }

  function timeText(one, steps) {
    if (one.time === null) return "";
    const { whole, percent, seconds: text } = page.format;
    const spread = one.spread === null ? "" : said("spread", { share: percent(one.spread) });
    const run = steps ? said("run", { time: text(one.time * steps), steps: whole(steps) }) : "";
    return said("time", { time: text(one.time), spread, run });
  }

  function ahead(first, second) {
    const { far, clear } = page.data().limits;
    if (Math.max(first.outside, second.outside) > far) return said("ahead_far", { far });
    const held = [first, second].filter((one) => one.limited).map((one) => one.device);
    if (held.length) return said("ahead_limited", { devices: listed(held) });
    const ratio = second.time / first.time;
    const by = said("by", { first: first.device, ratio: page.format.number(ratio), second: second.device });
    const unsure = first.spread === null || second.spread === null;
    const both = clear * Math.hypot(Math.log1p(first.spread), Math.log1p(second.spread));
    if (!unsure && Math.log(ratio) <= both) return said("ahead_open", { by });
    if (Math.log(ratio) <= Math.log1p(first.miss) + Math.log1p(second.miss)) return said("ahead_rough", { by });
    return said(unsure ? "ahead_unsure" : "ahead", { by });
  }

  function block(models, size) {
    const expected = models.map((model) => expectation(model, size));
    const timed = expected.filter((one) => one.time !== null).sort((first, second) => first.time - second.time);
    const warned = new Map();
    for (const one of expected) {
      for (const warning of one.warnings) warned.set(warning, [...(warned.get(warning) ?? []), one.device]);
    }
    return {
      words: models[0].words,
      known: expected.some((one) => one.time !== null || one.tooFar),
      devices: expected.map((one) => said("device", { device: one.device, time: timeText(one, models[0].run_steps), words: one.words })),
      ahead: timed.length > 1 ? [ahead(timed[0], timed[1])] : [],
      warnings: [...warned].map(([warning, devices]) => said("warning", { devices: listed(devices), warning })),
    };
  }

  // Sizes of a study with their parameters, in order; the first cell of a size counts.
  page.knownParameters = (study) => {
    const known = new Map();
    for (const row of page.data().rows) {
      if (row.study === study && row.parameters !== null && !known.has(row.size)) known.set(row.size, row.parameters);
    }
    return [...known].sort((first, second) => first[0] - second[0]);
  };

  // Log-log interpolation between known points, exact at the points; null outside of them.
  page.interpolate = (points, x) => {
    const exact = points.find((point) => point[0] === x);
    if (exact) return exact[1];
    const next = points.findIndex((point) => point[0] > x);
    if (next <= 0) return null;
    const [[x0, y0], [x1, y1]] = [points[next - 1], points[next]].map((point) => point.map(Math.log));
    return Math.exp(y0 + ((y1 - y0) / (x1 - x0)) * (Math.log(x) - x0));
  };

  function heading(models, study, size) {
    const known = page.knownParameters(study);
    const found = page.interpolate(known, size);
    const parameters = found === null ? ""
      : known.some(([one]) => one === size) ? said("parameters", { count: page.format.known(found) })
        : said("parameters_between", { count: page.format.count(found) });
    return said("heading", { study, size: page.format.whole(size), size_name: models[0].size_name, parameters });
  }

  page.said = said;

  // What is said of a study at a whole size from 1 on, line by line; `error` where nothing can be.
  page.expect = (study, size) => {
    const models = page.data().models.filter((model) => model.study === study);
    const lines = [...new Set(models.map((model) => model.line))];
    const blocks = lines.map((line) => ({ line, ...block(models.filter((model) => model.line === line), size) }));
    if (!blocks.some((one) => one.known)) {
      const reasons = [...new Set(models.map((model) => model.reason).filter((reason) => reason))].sort().join("; ");
      return { error: said("nothing", { study, size, reasons }) };
    }
    return { heading: heading(models, study, size), blocks };
  };
})(window.Crossover);
