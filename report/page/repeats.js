// The spread of repeats: a dot for each trial, relative to the mean of its cell.
"use strict";
((page) => {
  const box = document.getElementById("repeats");
  if (!box) return;
  const { element, drawn, format } = page;
  const data = page.data();
  const [ROW, LEFT, MARGIN] = [30, 60, 50]; // pixels

  const offs = data.rows.flatMap((row) => {
    const times = data.repeats?.[row.place] ?? [];
    if (times.length < 2) return [];
    const middle = times.reduce((sum, time) => sum + Math.log(time), 0) / times.length;
    return times.map((time) => ({ off: Math.log(time) - middle, device: row.device, side: page.sideText(row) }));
  });
  if (!offs.length) return;

  const sorted = offs.map(({ off }) => Math.exp(Math.abs(off))).sort((first, second) => first - second);
  const [half, most] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  const sides = [...new Set(offs.map(({ side }) => side))];
  const words = `Each dot is a trial relative to the middle of its cell: half of them lie within ${format.number(100 * (half - 1))} %, the farthest is ${format.number(most)} times off.`;

  function draw() {
    const width = box.clientWidth;
    if (!width) return;
    const height = ROW * sides.length + 24;
    const [left, right] = [LEFT + MARGIN, width - MARGIN];
    const x = (off) => (left + right) / 2 + (off / Math.log(Math.max(most, 1.01))) * ((right - left) / 2);
    const below = (label, off) => page.chartText(label, x(off), height - 4, { "text-anchor": "middle" });
    const picture = page.canvas(width, height, words);
    picture.append(
      drawn("path", { d: `M${x(0)},0V${ROW * sides.length}`, stroke: page.ink("line") }),
      ...sides.map((side, rank) => page.chartText(side, 0, ROW * (rank + 0.5) + 4)),
      // Dots are shifted up and down in turn, so that equal times do not hide each other.
      ...offs.map(({ off, device, side }, rank) => drawn("circle", {
        cx: x(off), cy: ROW * (sides.indexOf(side) + 0.5) + ((rank % 5) - 2) * 4, r: 2.5, fill: page.tone(data.colours.devices[device]), opacity: 0.6,
      })),
      below(`${format.number(most)} times faster`, -Math.log(most)), below("middle", 0), below("slower", Math.log(most)));
    box.replaceChildren(element("p", {}, words), picture);
  }
  box.hidden = false;
  new ResizeObserver(draw).observe(box);
  document.addEventListener("crossover:theme", draw);
})(window.Crossover);
