// The time to expect at a size: what was measured first, the cost model where nothing was.
// This is analysis/predictions.py again, with its words; a test holds what both say side by side.
"use strict";
((page) => {
  const said = (template, values = {}) =>
    page.data().words.prediction[template].replace(/\{(\w+)\}/g, (_, name) => values[name]);

  const seconds = (model, size) => model.a_s + model.b_s * size ** model.c;
  const beyond = (model, size) => Math.max(model.smallest_size / size, size / model.largest_size, 1);
  const spreadOf = (model) => Math.expm1(Math.hypot(Math.log1p(model.rms_residual), Math.log1p(model.trial_spread ?? 0)));

  function measured(model, cell) {
    const given = { device: model.device, time: null, spread: null, warnings: [] };
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
    const { whole, count, percent } = page.format;
    const { flat, large_residual: large } = page.data().limits;
    const found = [];
    const outside = beyond(model, size);
    const above = size > model.largest_size;
    if (outside > 1) {
      const end = whole(above ? model.largest_size : model.smallest_size);
      found.push(said(above ? "above" : "below", { size: whole(size), end, factor: count(outside, 3) }));
    }
    if (above && seconds(model, model.largest_size) / seconds(model, model.smallest_size) < flat) found.push(said("flat"));
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
      return { device: model.device, time: null, spread: null, words: said("no_model", { reason: model.reason }), warnings: [] };
    }
    const words = said(model.trial_spread === null ? "by_model_of_single_trials" : "by_model", { sizes: model.sizes });
    const spread = beyond(model, size) === 1 ? spreadOf(model) : null;
    const outside = beyond(model, size);
    return { device: model.device, time: seconds(model, size), spread, words, warnings: warnings(model, cells, size), outside };
  }

  function timeText(one, steps) {
    if (one.time === null) return "";
    const { whole, percent, seconds: text } = page.format;
    const spread = one.spread === null ? "" : said("spread", { share: percent(one.spread) });
    const run = steps ? said("run", { time: text(one.time * steps), steps: whole(steps) }) : "";
    return said("time", { time: text(one.time), spread, run });
  }

  function ahead(first, second) {
    const { far } = page.data().limits;
    if ((first.outside ?? 1) > far || (second.outside ?? 1) > far) return said("ahead_far", { far: page.format.number(far) });
    const ratio = second.time / first.time;
    const by = said("by", { first: first.device, ratio: page.format.number(ratio), second: second.device });
    if (first.spread === null || second.spread === null) return said("ahead_unsure", { by });
    const both = Math.hypot(Math.log1p(first.spread), Math.log1p(second.spread));
    return said(Math.log(ratio) <= page.data().limits.clear * both ? "ahead_open" : "ahead", { by });
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
      known: timed.length > 0,
      devices: expected.map((one) => said("device", { device: one.device, time: timeText(one, models[0].run_steps), words: one.words })),
      ahead: timed.length > 1 ? [ahead(timed[0], timed[1])] : [],
      warnings: [...warned].map(([warning, devices]) => said("warning", { devices: devices.join(" and "), warning })),
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
    const template = known.some(([one]) => one === size) ? "parameters" : "parameters_between";
    const parameters = found === null ? "" : said(template, { count: page.format.count(found) });
    return said("heading", { study, size: page.format.whole(size), size_name: models[0].size_name, parameters });
  }

  // What is said of a study at a size, line by line; `error` where nothing can be.
  page.expect = (study, size) => {
    const models = page.data().models.filter((model) => model.study === study);
    if (!(size >= 1) || !Number.isInteger(size)) return { error: said("no_size", { size }) };
    const lines = [...new Set(models.map((model) => model.line))];
    const blocks = lines.map((line) => ({ line, ...block(models.filter((model) => model.line === line), size) }));
    if (!blocks.some((one) => one.known)) {
      const reasons = [...new Set(models.map((model) => model.reason).filter((reason) => reason))].sort().join("; ");
      return { error: said("nothing", { study, size, reasons }) };
    }
    return { heading: heading(models, study, size), blocks };
  };
})(window.Crossover);
