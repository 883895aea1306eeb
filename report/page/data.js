// The page's data, read when first asked for; `Crossover` is the one name that the page's scripts share.
"use strict";
window.Crossover = {};
((page) => {
  let known = null;

  function column(encoded, count) {
    if (Array.isArray(encoded)) return encoded;
    if ("all" in encoded) return new Array(count).fill(encoded.all);
    return encoded.at.map((place) => encoded.values[place]);
  }

  function rowsOf({ count, cells }, more) {
    const columns = Object.entries(cells).map(([name, encoded]) => [name, column(encoded, count)]);
    return Array.from({ length: count }, (_, place) => ({ ...Object.fromEntries(columns.map(([name, values]) => [name, values[place]])), ...more(place) }));
  }

  page.data = () => {
    if (known) return known;
    known = JSON.parse(document.getElementById("page-data").textContent);
    known.rows = rowsOf(known, (place) => ({ place, job: known.jobs[place] }));
    for (const row of known.rows) row.key = known.axes.map((axis) => encodeURIComponent(row[axis])).join("/");
    known.elsewhere.rows = rowsOf(known.elsewhere, () => ({ elsewhere: true }));
    known.commands = known.commands.map((encoded) => column(encoded, known.count));
    return known;
  };

  // The command of a cell's first trial; empty where none is recorded.
  page.commandOf = (row) => page.data().commands.map((values) => values[row.place]).join("");

  // A library waits, packed, until it is wanted; then it runs as the classic script that it is.
  page.library = async (name) => {
    const held = document.getElementById(`library-${name}`);
    if (!held) return;
    held.remove();
    const packed = Uint8Array.from(atob(held.textContent), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  };

  // An element with attributes and children; strings become text, whatever they hold.
  page.element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") made.addEventListener(name, value);
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };

  // Show an element that may lie in what is folded.
  page.reveal = (target) => {
    for (let around = target; around; around = around.parentElement) {
      if (around.tagName === "DETAILS") around.open = true;
    }
    target.scrollIntoView();
  };

  page.studyLink = (study) => `#study-${encodeURIComponent(study)}`;

  page.whenSeen = (element, act) => {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      act();
    }, { rootMargin: "200px" });
    observer.observe(element);
  };
})(window.Crossover);
