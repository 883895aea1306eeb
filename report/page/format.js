// Numbers as the rest of the report writes them: analysis/style.py again, in the browser; a test compares the two.
"use strict";
((page) => {
  const thousands = (text) => text.replace(/^\d+/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ","));

  // As Python rounds: an exact tie goes to the even digit, where toFixed goes up.
  function fixed(value, places) {
    const exact = value.toFixed(100);
    const cut = exact.indexOf(".") + 1 + places;
    const kept = places ? exact.slice(0, cut) : exact.slice(0, cut - 1);
    return /^50*$/.test(exact.slice(cut)) && "02468".includes(kept.at(-1)) ? kept : value.toFixed(places);
  }

  // Python's format "g".
  function general(value, digits = 6) {
    if (value === 0) return "0";
    const [mantissa, power] = value.toExponential(digits - 1).split("e");
    const exponent = Number(power);
    const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (exponent >= -4 && exponent < digits) return trimmed(fixed(value, digits - 1 - exponent));
    return `${trimmed(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }

  function rounded(value, places) {
    if (places >= 0) return Number(fixed(value, places));
    const unit = 10 ** -places;
    const below = Math.floor(value / unit);
    const rest = 2 * (value - below * unit);
    return (rest > unit || (rest === unit && below % 2 === 1) ? below + 1 : below) * unit;
  }

  function number(value, digits = 3) {
    if (value <= 0) return general(value);
    const exponent = Math.floor(Math.log10(Number(value.toExponential(digits - 1))));
    return thousands(fixed(value, Math.max(0, digits - 1 - exponent)));
  }

  function count(value, digits = 2) {
    if (value <= 0) return general(value);
    const near = rounded(value, digits - 1 - Math.floor(Math.log10(value)));
    for (const [limit, scale, unit] of [[1e9, 1e9, " billion"], [1e6, 1e6, " million"], [1e4, 1e3, " k"]]) {
      if (near >= limit) return `${general(near / scale)}${unit}`;
    }
    return thousands(general(near));
  }

  const [YEAR, DAY, HOUR] = [31557600, 86400, 3600];
  const LONG_TIMES = [[2 * YEAR, YEAR, "years"], [2 * DAY, DAY, "days"], [HOUR, HOUR, "h"], [0, 60, "min"]];

  function seconds(value) {
    if (value >= 119.95) {
      const [, length, name] = LONG_TIMES.find(([least]) => value >= least);
      return `${count(value / length, 3)} ${name}`;
    }
    const [scale, unit] = [[1e-6, "µs"], [1e-3, "ms"], [1, "s"]].find(([scale]) => value < 999.5 * scale);
    const scaled = value / scale;
    if (scaled < 0.995) return `${general(scaled, 2)} ${unit}`;
    return `${fixed(scaled, 2 - Math.floor(Math.log10(Math.max(scaled, 1))))} ${unit}`;
  }

  function bytes(value) {
    const [scale, unit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([scale]) => value >= 0.9995 * scale) ?? [1, "B"];
    return unit === "B" ? `${fixed(value, 0)} B` : `${number(value / scale)} ${unit}`;
  }

  const whole = (value) => thousands(fixed(value, 0));
  const rate = (value) => (value >= 99.5 ? `${whole(value)}/s` : `${general(value, 3)}/s`);
  const percent = (share) => `${number(100 * share, 2)} %`;

  // A count that was measured or given.
  const known = (value) => (value < 1e4 ? whole(value) : count(value, 3));

  page.format = { number, count, known, seconds, bytes, rate, percent, whole };

  // A value of a metric with its unit.
  page.metricText = (metric, value) => page.format[metric.kind](value) + (metric.unit ? ` ${metric.unit}` : "");
})(window.Crossover);
