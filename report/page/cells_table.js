// The table of cells, which can be sorted, filtered and exported; the details of a cell; and links within the page.
"use strict";
((page) => {
  const { element } = page;
  const section = document.getElementById("cell-table");
  const DANGEROUS = /^[=+\-@\t\r]/;
  let table = null;
  let search = [];

  // A spreadsheet may take text that begins with one of these characters for a formula.
  page.csvText = (value) => (typeof value === "string" && DANGEROUS.test(value) ? `'${value}` : value);

  const isNumber = (spec, rows) => rows.some((row) => typeof row[spec.key] === "number");
  function shown(spec, rows) {
    const values = new Set(rows.map((row) => row[spec.key]));
    return values.size > 1 || (spec.always && !values.has(null));
  }

  // A device has two names, such as cuda in the config and the data, and GPU on the page.
  const deviceFilter = (text, value, row) =>
    [value, row.device_label].some((name) => name.toLowerCase().includes(text.trim().toLowerCase()));

  function column(spec, rows) {
    const title = spec.unit ? `${spec.title}, ${spec.unit}` : spec.title;
    const attributes = { "aria-label": `filter ${title}` };
    const common = {
      field: spec.key, title, titleDownload: spec.key, headerTooltip: spec.doc || title, visible: shown(spec, rows), download: true,
      accessorDownload: page.csvText, headerFilter: "input", headerFilterParams: { elementAttributes: attributes },
    };
    if (isNumber(spec, rows)) {
      return {
        ...common, sorter: "number", sorterParams: { alignEmptyValues: "bottom" }, hozAlign: "right",
        headerFilterPlaceholder: "> 10", headerFilterFunc: (text, value) => page.numberFilter(text, value, spec.factor),
        formatter: (cell) => page.numberText(cell.getValue(), spec.factor),
      };
    }
    const formatter = spec.key === "study"
      ? (cell) => element("a", { href: page.studyLink(cell.getValue()) }, cell.getValue())
      : "plaintext";
    const live = { ...common, sorter: "string", formatter, headerFilterLiveFilter: true };
    return spec.key === "device" ? { ...live, headerFilterFunc: deviceFilter } : live;
  }

  const link = (row) =>
    element("a", { href: `#cell=${row.key}`, "aria-label": `details of ${row.study}, size ${row.size}, ${row.device}` }, "details");

  // The library sorts on a mouse click only.
  function sortByKeys(table) {
    for (const column of table.getColumns().filter((candidate) => candidate.getDefinition().headerSort !== false)) {
      const head = column.getElement();
      head.tabIndex = 0;
      head.addEventListener("keydown", (event) => {
        if (event.target !== head || !["Enter", " "].includes(event.key)) return;
        event.preventDefault();
        table.setSort(column.getField(), head.getAttribute("aria-sort") === "ascending" ? "desc" : "asc");
      });
    }
  }

  function matches(row) {
    const texts = Object.values(row).filter((value) => value !== null).map((value) => String(value).toLowerCase());
    return search.every((word) => texts.some((text) => text.includes(word)));
  }

  // Mark filters that cannot be parsed as invalid, and return messages about them.
  function markInvalidFilters() {
    const { rows, columns } = page.data();
    const typed = new Map(table.getHeaderFilters().map(({ field, value }) => [field, String(value)]));
    const numbers = columns.filter((spec) => isNumber(spec, rows));
    return numbers.flatMap((spec) => {
      const isInvalid = !page.isNumberFilter(typed.get(spec.key) ?? "");
      const input = table.getColumn(spec.key).getElement().querySelector("input");
      input?.setAttribute("aria-invalid", isInvalid);
      return isInvalid ? [`${spec.title}: “${typed.get(spec.key)}” is not a filter; type a number such as 1,000, or > 703 k, or 1 to 2`] : [];
    });
  }

  function count() {
    const all = page.data().count;
    const text = `${page.format.whole(table.getDataCount("active"))} of ${page.format.whole(all)} cell${all === 1 ? "" : "s"}`;
    section.querySelector(".count").textContent = [text, ...markInvalidFilters()].join("; ");
  }

  // The content of an ARIA grid must be in rows of cells, so the message of an empty table is a row too.
  const NO_CELLS = [{ role: "row", class: "tabulator-placeholder-contents" }, element("div", { role: "gridcell" }, "no cell matches the filters")];

  async function make() {
    await page.library("tabulator");
    const { rows, columns } = page.data();
    const container = section.querySelector(".table");
    return new Promise((resolve) => {
      table = new Tabulator(container, {
        data: rows, index: "place", layout: "fitDataFill", height: rows.length > 15 ? "32rem" : undefined, placeholder: element("div", ...NO_CELLS),
        columns: [
          { title: "cell", field: "key", formatter: (cell) => link(cell.getData()), headerSort: false, download: false, frozen: true },
          ...columns.map((spec) => column(spec, rows)),
        ],
        columnDefaults: { headerSortTristate: true }, rowHeight: 30,
      });
      table.on("tableBuilt", () => {
        sortByKeys(table);
        // The scrolling element takes the focus, with or without rows. In a grid, it must be a row group.
        const holder = container.querySelector(".tabulator-tableholder");
        for (const [name, value] of [["tabindex", "0"], ["role", "rowgroup"], ["aria-label", "cells"]]) holder.setAttribute(name, value);
        holder.querySelector(".tabulator-table").setAttribute("role", "presentation");
        table.on("dataFiltered", () => setTimeout(count));
        count();
        resolve(table);
      });
    });
  }

  let promise = null;
  page.table = () => (promise ??= make());

  function setSearch(text) {
    search = text.toLowerCase().split(/\s+/).filter(Boolean);
    section.querySelector(".search").value = text;
    if (search.length) table.setFilter(matches);
    else table.clearFilter();
  }

  page.clearTable = async () => {
    await page.table();
    setSearch("");
    table.clearHeaderFilter();
  };

  page.showStudyInTable = async (study) => {
    page.reveal(section);
    await page.clearTable();
    table.setHeaderFilterValue("study", study);
  };

  page.whenSeen(section.querySelector(".table"), page.table);
  section.querySelector(".search").addEventListener("input", async (event) => {
    await page.table();
    setSearch(event.target.value);
  });
  section.querySelector(".clear").addEventListener("click", page.clearTable);
  section.querySelector(".download").addEventListener("click", async () => {
    await page.table();
    table.download("csv", "cells.csv", { bom: true });
  });

  // --- One cell, with the command that measures it again ---

  const details = section.querySelector(".cell");

  function text(spec, value) {
    if (typeof value !== "number") return String(value);
    if (["MB", "GB"].includes(spec.unit)) return page.format.bytes(value);
    return `${page.numberText(value, spec.factor)} ${spec.unit}`.trim();
  }

  page.showCell = async (key) => {
    const row = page.data().rows.find((cell) => cell.key === key);
    details.hidden = false;
    if (!row) {
      details.replaceChildren(element("p", {}, "The link is to a cell that this run does not have."));
      details.scrollIntoView({ block: "center" });
      return;
    }
    const table = await page.table();
    if (!table.getRows("active").some((active) => active.getData() === row)) await page.clearTable();
    table.deselectRow();
    table.selectRow(row.place);
    await table.scrollToRow(row.place, "center", false).catch(() => {});
    const { axes, columns } = page.data();
    const isUnnamed = (spec) => spec.key === "machine" && !axes.includes("machine");
    const facts = columns.filter((spec) => row[spec.key] !== null && row[spec.key] !== "" && !isUnnamed(spec));
    const command = page.commandOf(row);
    const list = element("dl", {}, ...facts.map((spec) => element("div", {}, element("dt", {}, `${spec.title}:`), " ", element("dd", {}, text(spec, row[spec.key])))));
    const commandParts = command
      ? [element("p", {}, "Command of the first trial; other trials differ only in ", element("code", {}, "--trial"), ":"), element("pre", { tabindex: "0" }, element("code", {}, command))]
      : [element("p", {}, "Its command was not recorded.")];
    details.replaceChildren(
      element("h3", {}, `${row.study}, ${page.format.withUnit(page.format.whole(row.size), row.size_name)}, ${row.device_label}`),
      element("p", {}, element("a", { href: page.studyLink(row.study) }, "to its study")), list, ...commandParts,
    );
    details.scrollIntoView({ block: "nearest" });
  };

  // --- Links: #NAME opens the sections around its target, #cell=... shows a cell ---

  function follow() {
    const hash = location.hash.slice(1);
    if (hash.startsWith("chart?")) return;
    if (hash.startsWith("cell=")) {
      page.reveal(section);
      page.showCell(hash.slice("cell=".length));
      return;
    }
    const target = [...document.querySelectorAll("[id]")].find(({ id }) => [id, encodeURIComponent(id)].includes(hash));
    if (target) page.reveal(target);
  }
  window.addEventListener("hashchange", follow);
  if (location.hash) follow();
})(window.Crossover);
