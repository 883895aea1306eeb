// Ticks of an axis: readable places, as many as have room for their words.
"use strict";
((page) => {
  const GAP = 14; // pixels that two words are apart at least
  const SETS = [[1, 2, 5], [1, 3], [1]];
  const MANY = [1, 2, 3, 4, 5, 7];
  const context = document.createElement("canvas").getContext("2d");

  page.CHART_FONT_PX = 13;

  // How many pixels words take in a row, in the chart's letters.
  page.widthOf = (words) => {
    context.font = `${page.CHART_FONT_PX}px ${getComputedStyle(document.body).fontFamily}`;
    return context.measureText(words).width;
  };

  // Of places in order, those whose words keep clear of the last one's; `length` is the axis' in pixels.
  function clear(places, [low, high], length, sizeOf) {
    let end = -Infinity;
    return places.filter((at) => {
      const middle = (length * Math.log(at / low)) / Math.log(high / low);
      const half = sizeOf(at) / 2;
      if (middle - half < end + GAP) return false;
      end = middle + half;
      return true;
    });
  }

  // Places on a logarithmic axis: multiples of the powers of ten, or every second, third, ... power, the most that have room.
  page.logTicks = (extent, length, sizeOf) => {
    const [low, high] = extent;
    const powers = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) powers.push(power);
    const multiples = (digits) => powers.flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`))).filter((at) => low <= at && at <= high);
    const tens = multiples([1]);
    const thinned = tens.map((_, rank) => tens.filter((_, place) => place % (rank + 1) === 0));
    const roomy = (places) => places.length > 1 && clear(places, extent, length, sizeOf).length === places.length;
    return [...SETS.map(multiples), ...thinned].find(roomy) ?? clear(multiples(MANY), extent, length, sizeOf);
  };
})(window.Crossover);
