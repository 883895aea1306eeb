// Deep links: #NAME opens what the target lies in, #cell=... shows a cell.
"use strict";
((page) => {
  function follow() {
    const hash = location.hash.slice(1);
    if (hash.startsWith("cell=")) {
      page.showCell(hash.slice("cell=".length));
      return;
    }
    const target = document.getElementById(decodeURIComponent(hash));
    if (!target) return;
    for (let around = target; around; around = around.parentElement) {
      if (around.tagName === "DETAILS") around.open = true;
    }
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", follow);
  if (location.hash) follow();
})(window.Crossover);
