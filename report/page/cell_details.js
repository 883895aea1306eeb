// All that is known of one cell, with the command that measures it again.
"use strict";
((page) => {
  const { element } = page;
  const place = document.querySelector("#cell-table .cell");

  function text(spec, value) {
    if (typeof value !== "number") return String(value);
    if (["MB", "GB"].includes(spec.unit)) return page.format.bytes(value);
    return `${page.numberText(value, spec.factor)} ${spec.unit}`.trim();
  }

  page.showCell = async (key) => {
    const row = page.data().rows.find((one) => one.key === key);
    place.hidden = false;
    if (!row) {
      place.replaceChildren(element("p", {}, "The link names a cell that this run does not have."));
      place.scrollIntoView({ block: "center" });
      return;
    }
    const table = await page.table();
    if (!table.getRows("active").some((one) => one.getData() === row)) await page.clearTable();
    table.deselectRow();
    table.selectRow(row.place);
    await table.scrollToRow(row.place, "center", false).catch(() => {});
    const { axes, columns } = page.data();
    const unnamed = (spec) => spec.key === "machine" && !axes.includes("machine");
    const facts = columns.filter((spec) => row[spec.key] !== null && row[spec.key] !== "" && !unnamed(spec));
    const command = page.commandOf(row);
    const list = element("dl", {}, ...facts.map((spec) => element("div", {}, element("dt", {}, `${spec.title}:`), " ", element("dd", {}, text(spec, row[spec.key])))));
    const again = command
      ? [element("p", {}, "Measured by this command; each trial is the same with another ", element("code", {}, "--trial"), ":"), element("pre", { tabindex: "0" }, element("code", {}, command))]
      : [element("p", {}, "Its command was not recorded.")];
    place.replaceChildren(
      element("h3", {}, `${row.study}, ${page.format.whole(row.size)} ${row.size_name}, ${row.device_label}`),
      element("p", {}, element("a", { href: page.studyLink(row.study) }, "to its study")), list, ...again,
    );
    place.scrollIntoView({ block: "nearest" });
  };
})(window.Crossover);
