// Format numbers with units as crossover/text.py does, and parse typed numbers.
"use strict";
((page) => {
  const digits = (least, most) => new Intl.NumberFormat("en", { minimumSignificantDigits: least, maximumSignificantDigits: most, roundingMode: "halfEven" });
  const [TWO, THREE, UP_TO_THREE] = [digits(2, 2), digits(3, 3), digits(1, 3)];
  const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0, roundingMode: "halfEven" });
  const [YEAR_S, DAY_S, HOUR_S] = [31_557_600, 86_400, 3_600];
  const LONG_TIMES = [[2 * YEAR_S, YEAR_S, "years"], [2 * DAY_S, DAY_S, "days"], [HOUR_S, HOUR_S, "h"], [0, 60, "min"]];
  const TIMES = [[1e-6, "µs"], [1e-3, "ms"], [1, "s"]];
  const BYTES = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const QUANTITIES = { width: "width", depth: "depth", "samples per batch": "batch" };
  const COUNTS = [[1e9, " billion", 1e9], [1e6, " million", 1e6], [1e4, " k", 1e3]];

  const whole = (value) => WHOLE.format(value);
  const number = (value) => (value >= 999.5 ? whole(value) : value > 0 ? THREE.format(value) : String(value));
  const rate = (value) => (value >= 99.5 ? `${whole(value)}/s` : `${number(value)}/s`);

  function seconds(value) {
    if (value >= 119.95) {
      const [, length, name] = LONG_TIMES.find(([least]) => value >= least);
      return `${count(value / length)} ${name}`;
    }
    const [scale, unit] = TIMES.find(([scale]) => value < 999.5 * scale);
    const scaled = value / scale;
    return `${scaled > 0 && scaled < 0.995 ? TWO.format(scaled) : number(scaled)} ${unit}`;
  }

  function bytes(value) {
    const [scale, unit] = BYTES.find(([scale]) => value >= 0.9995 * scale) ?? [];
    return unit ? `${number(value / scale)} ${unit}` : `${whole(value)} B`;
  }

  // Up to three digits: 39.6, 703 k, 2.8 million.
  function count(value) {
    const rounded = Number(value.toPrecision(3));
    const [, unit, scale] = COUNTS.find(([least]) => rounded >= least) ?? [0, "", 1];
    return `${UP_TO_THREE.format(value / scale)}${unit}`;
  }

  // A position on an axis without its unit: whole numbers with all digits; fractions, and parameters from 10 k on, with three.
  function place(value, unit) {
    const isWhole = Math.abs(value - Math.round(value)) <= 1e-9 * Math.abs(value);
    return isWhole && (unit !== "parameters" || value < 1e4) ? whole(value) : count(value);
  }

  // Positions on an axis, each with its unit if some are in thousands or more and others are not.
  function places(values, unit) {
    const texts = values.map((value) => place(value, unit));
    const scaled = texts.filter((text) => text.includes(" ")).length;
    return scaled && scaled < texts.length ? texts.map((text) => withUnit(text, unit)) : texts;
  }

  // The text with its unit, unless it has it: "64 neurons", "n = 64", "width 64", and of units of an argument only its name: "hidden = 64".
  function withUnit(text, unit) {
    const name = unit?.replace(/^units of /, "");
    const quantity = QUANTITIES[name];
    if (text.endsWith(` ${unit}`) || text.startsWith(`${quantity || name} `)) return text;
    if (quantity) return `${quantity} ${text}`;
    return unit?.length === 1 || name !== unit ? `${name} = ${text}` : `${text} ${unit}`;
  }

  // "64 to 512 neurons", "22 parameters to 11.2 million parameters".
  function range(values, unit) {
    return withUnit(places(values, unit).join(" to "), unit);
  }

  page.format = { number, whole, seconds, bytes, rate, place, places, range, withUnit };

  const UNITS = { k: 1e3, m: 1e6, million: 1e6, g: 1e9, b: 1e9, billion: 1e9 };
  const NUMBER = /^(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|-?\.\d+)(e[+-]?\d+)?\s*(k|m|million|g|b|billion)?$/i;

  // Parse a number typed as "1,000", "5e8", "703 k" or "2.8M": its value, and the value of one unit in its last digit; else null.
  page.readNumber = (typed) => {
    const match = NUMBER.exec(typed.trim());
    if (!match) return null;
    const [digits, power] = [match[1].replaceAll(",", ""), Number(`1${match[2] ?? ""}`)];
    const unit = power * (UNITS[match[3]?.toLowerCase()] ?? 1);
    return { value: Number(digits) * unit, step: unit / 10 ** (digits.split(".")[1]?.length ?? 0), rounded: unit > 1 };
  };

  page.metricText = (metric, value) => page.format[metric.kind](value * metric.factor) + (metric.unit ? ` ${metric.unit}` : "");

  // --- Filters of a column: "> 10", "<= 703 k", "100 to 1 million", or the first digits of a number ---

  const bare = (text) => text.replaceAll(",", "");

  const SIDES = {
    "<": (value, limit) => value < limit, ">": (value, limit) => value > limit,
    "<=": (value, limit) => value <= limit, ">=": (value, limit) => value >= limit,
    "=": (value, limit, text) => value === limit || Number(bare(text)) === limit,
  };

  // In the unit of the column's header.
  page.numberText = (value, factor) => {
    if (value === null) return "";
    const scaled = value * factor;
    const size = Math.abs(scaled);
    const text = Number.isInteger(scaled) ? page.format.whole(size) : page.format.number(size);
    return scaled < 0 ? `-${text}` : text;
  };

  // Parse a filter into a function that tests a value and its text; null if it cannot be parsed.
  function readFilter(filter) {
    const typed = filter.trim().replace("≤", "<=").replace("≥", ">=");
    const [, side, ...ends] = /^(<=|>=|<|>|=)(.*)$/.exec(typed) ?? /^()(.+?)(?:to|–|-)(.+)$/.exec(typed) ?? [null, "", typed];
    const [low, high] = ends.map(page.readNumber);
    if (!low || high === null) return null;
    if (side) return (value, text) => SIDES[side](value, low.value, text);
    if (high) return (value) => low.value <= value && value <= high.value;
    // "703 k" matches every value that rounds to it.
    if (low.rounded) return (value) => low.value - low.step / 2 <= value && value < low.value + low.step / 2;
    return (value, text) => [bare(text), String(value)].some((shown) => shown.startsWith(bare(typed)));
  }

  page.isNumberFilter = (filter) => filter.trim() === "" || readFilter(filter) !== null;

  page.numberFilter = (filter, value, factor = 1) => {
    if (value === null || filter.trim() === "") return value !== null;
    return readFilter(filter)?.(value * factor, page.numberText(value, factor)) ?? false;
  };
})(window.Crossover);
