// Deep links: #NAME opens what the target lies in, #cell=... shows a cell.
"use strict";
((page) => {
  function follow() {
    const hash = location.hash.slice(1);
    if (hash.startsWith("chart?")) return;
    if (hash.startsWith("cell=")) {
      page.reveal(document.getElementById("cell-table"));
      page.showCell(hash.slice("cell=".length));
      return;
    }
    const target = [...document.querySelectorAll("[id]")].find(({ id }) => [id, encodeURIComponent(id)].includes(hash));
    if (target) page.reveal(target);
  }
  window.addEventListener("hashchange", follow);
  if (location.hash) follow();
})(window.Crossover);
