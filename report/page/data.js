// The page's data, parsed on first use; `Crossover` is the only global name of the page's own scripts.
"use strict";
window.Crossover = {};
((page) => {
  let parsed = null;

  function column(encoded, count) {
    if (Array.isArray(encoded)) return encoded;
    if ("all" in encoded) return new Array(count).fill(encoded.all);
    return encoded.at.map((index) => encoded.values[index]);
  }

  function rowsOf({ count, cells }, more) {
    const columns = Object.entries(cells).map(([name, encoded]) => [name, column(encoded, count)]);
    return Array.from({ length: count }, (_, place) => ({ ...Object.fromEntries(columns.map(([name, values]) => [name, values[place]])), ...more(place) }));
  }

  page.data = () => {
    if (parsed) return parsed;
    parsed = JSON.parse(document.getElementById("page-data").textContent);
    parsed.rows = rowsOf(parsed, (place) => ({ place, job: parsed.jobs[place] }));
    for (const row of parsed.rows) row.key = parsed.axes.map((axis) => encodeURIComponent(row[axis])).join("/");
    parsed.elsewhere.rows = rowsOf(parsed.elsewhere, () => ({ elsewhere: true }));
    parsed.commands = parsed.commands.map((encoded) => column(encoded, parsed.count));
    return parsed;
  };

  // The command of a cell's first trial; empty if not recorded.
  page.commandOf = (row) => page.data().commands.map((values) => values[row.place]).join("");

  // Unpack a library and run it as a classic script, on first use.
  page.library = async (name) => {
    const element = document.getElementById(`library-${name}`);
    if (!element) return;
    element.remove();
    const packed = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  };

  // Create an element with attributes and children; strings become text nodes, so they need no escaping.
  page.element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") made.addEventListener(name, value);
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };

  page.reveal = (target) => {
    for (let ancestor = target; ancestor; ancestor = ancestor.parentElement) {
      if (ancestor.tagName === "DETAILS") ancestor.open = true;
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
