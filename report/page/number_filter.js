// What is typed above a column of numbers: "> 10", "<= 703 k", "100 to 1 million", or a number's beginning as it is shown.
"use strict";
((page) => {
  const bare = (text) => text.replaceAll(",", "");

  const SIDES = {
    "<": (value, limit) => value < limit, ">": (value, limit) => value > limit,
    "<=": (value, limit) => value <= limit, ">=": (value, limit) => value >= limit,
    "=": (value, limit, text) => value === limit || Number(bare(text)) === limit,
  };

  // As the table shows it, in the unit of the column's head.
  page.numberText = (value, factor) => {
    if (value === null) return "";
    const scaled = value * factor;
    const size = Math.abs(scaled);
    const text = Number.isInteger(scaled) ? page.format.whole(size) : page.format.number(size);
    return scaled < 0 ? `-${text}` : text;
  };

  // A test of a value and of its text, or null where what is typed cannot be read.
  function readFilter(asked) {
    const typed = asked.trim().replace("≤", "<=").replace("≥", ">=");
    const [, side, ...ends] = /^(<=|>=|<|>|=)(.*)$/.exec(typed) ?? /^()(.+?)(?:to|–|-)(.+)$/.exec(typed) ?? [null, "", typed];
    const [low, high] = ends.map(page.readNumber);
    if (!low || high === null) return null;
    if (side) return (value, text) => SIDES[side](value, low.value, text);
    if (high) return (value) => low.value <= value && value <= high.value;
    // "703 k" is what would be rounded to it.
    if (low.rounded) return (value) => low.value - low.step / 2 <= value && value < low.value + low.step / 2;
    return (value, text) => [bare(text), String(value)].some((one) => one.startsWith(bare(typed)));
  }

  page.isNumberFilter = (asked) => asked.trim() === "" || readFilter(asked) !== null;

  page.numberFilter = (asked, value, factor = 1) => {
    if (value === null || asked.trim() === "") return value !== null;
    return readFilter(asked)?.(value * factor, page.numberText(value, factor)) ?? false;
  };
})(window.Crossover);
