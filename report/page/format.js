// Numbers with their units, as a reader of this page sees them.
"use strict";
((page) => {
  const THREE = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
  const UP_TO_FOUR = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

  const scaled = (value, units) => {
    const [least, unit] = units.find(([scale]) => Math.abs(value) >= 0.9995 * scale) ?? units.at(-1);
    return `${THREE.format(value / least)} ${unit}`;
  };
  const number = (value) => (value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(2) : THREE.format(value));
  const precise = (value) => UP_TO_FOUR.format(value);
  const whole = (value) => WHOLE.format(value);
  const seconds = (value) => scaled(value, [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"]]);
  const bytes = (value) => scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
  const rate = (value) => (value >= 99.5 ? `${whole(value)}/s` : `${number(value)}/s`);

  // A place on an axis: 680, 703 k, 2.8 million. What is counted is whole, unless it is a part of one.
  function count(value) {
    if (value < 1e4) return value < 1 ? number(value) : whole(value);
    const [scale, unit] = [[1e9, " billion"], [1e6, " million"], [1e4, " k"]].find(([least]) => value >= least);
    return `${UP_TO_FOUR.format(value / (unit === " k" ? 1e3 : scale))}${unit}`;
  }

  page.format = { number, precise, whole, seconds, bytes, rate, count };

  const UNITS = { k: 1e3, m: 1e6, million: 1e6, g: 1e9, b: 1e9, billion: 1e9 };
  const NUMBER = /^(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|-?\.\d+)(e[+-]?\d+)?\s*(k|m|million|g|b|billion)?$/i;

  // What is typed as "1,000", "5e8", "703 k" or "2.8M": its value, and that of a step of its last digit; else null.
  page.readNumber = (typed) => {
    const found = NUMBER.exec(typed.trim());
    if (!found) return null;
    const [digits, power] = [found[1].replaceAll(",", ""), Number(`1${found[2] ?? ""}`)];
    const unit = power * (UNITS[found[3]?.toLowerCase()] ?? 1);
    return { value: Number(digits) * unit, step: unit / 10 ** (digits.split(".")[1]?.length ?? 0), rounded: unit > 1 };
  };

  // A value of a metric with its unit.
  page.metricText = (metric, value) => page.format[metric.kind](value * metric.factor) + (metric.unit ? ` ${metric.unit}` : "");
})(window.Crossover);
