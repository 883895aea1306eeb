// What is typed above a column of numbers: "> 10", "<= 703 k", "100 to 1 million", or a number's beginning as it is shown.
"use strict";
((page) => {
  const UNITS = { k: 1e3, million: 1e6, billion: 1e9 };
  const DIGITS = String.raw`-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|-?\.\d+`;
  const NUMBER = String.raw`(${DIGITS})\s*(k|million|billion)?`;
  const WHOLE = new RegExp(`^${NUMBER}$`, "i");
  const RANGE = new RegExp(`^${NUMBER}\\s*(?:to|-|–)\\s*${NUMBER}$`, "i");
  const BOUND = new RegExp(`^(<=|>=|<|>|=|≤|≥)\\s*${NUMBER}$`, "i");
  // Still without the last digits of a group of three.
  const BEGUN = /^-?\d{1,3}(?:,\d{3})*,\d{0,2}$/;

  const bare = (text) => text.replaceAll(",", "");
  const unitOf = (unit) => UNITS[unit?.toLowerCase()] ?? 1;
  const numberOf = (digits, unit) => Number(bare(digits)) * unitOf(unit);

  const SIDES = {
    "<": (value, limit) => value < limit, ">": (value, limit) => value > limit,
    "<=": (value, limit) => value <= limit, ">=": (value, limit) => value >= limit,
    "≤": (value, limit) => value <= limit, "≥": (value, limit) => value >= limit,
    "=": (value, limit, text) => value === limit || Number(bare(text)) === limit,
  };

  // As the table shows it, in the unit of the column's head.
  page.numberText = (value, factor) => {
    if (value === null || value === undefined) return "";
    const scaled = value * factor;
    return Number.isInteger(scaled) ? page.format.whole(scaled) : page.format.precise(scaled);
  };

  // A test of a value and of its text, or null where what is typed cannot be read.
  function readFilter(asked) {
    const typed = asked.trim();
    const range = RANGE.exec(typed);
    if (range) {
      const [low, high] = [numberOf(range[1], range[2]), numberOf(range[3], range[4])];
      return (value) => low <= value && value <= high;
    }
    const bound = BOUND.exec(typed);
    if (bound) return (value, text) => SIDES[bound[1]](value, numberOf(bound[2], bound[3]), text);
    const whole = WHOLE.exec(typed);
    if (whole?.[2]) {
      // "703 k" is what would be rounded to it.
      const [limit, places] = [numberOf(whole[1], whole[2]), bare(whole[1]).split(".")[1]?.length ?? 0];
      const half = unitOf(whole[2]) / 10 ** places / 2;
      return (value) => limit - half <= value && value < limit + half;
    }
    if (whole) return (value, text) => [bare(text), String(value)].some((one) => one.startsWith(bare(typed)));
    if (BEGUN.test(typed)) return (value, text) => text.startsWith(typed);
    return null;
  }

  page.isNumberFilter = (asked) => asked.trim() === "" || readFilter(asked) !== null;

  page.numberFilter = (asked, value, factor = 1) => {
    if (value === null || value === undefined) return false;
    if (asked.trim() === "") return true;
    return readFilter(asked)?.(value * factor, page.numberText(value, factor)) ?? false;
  };
})(window.Crossover);
