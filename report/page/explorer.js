// A chart of a study's cells under its figures, made when it is opened.
"use strict";
((page) => {
  const FIRST_SHOWN = 12;
  const { element } = page;

  function select(title, options, chosen, act) {
    const control = element("select");
    for (const [place, option] of options.entries()) control.add(new Option(option.title, place, false, option === chosen));
    control.addEventListener("change", () => act(options[control.selectedIndex]));
    return element("label", {}, `${title} `, control);
  }

  function toggle(title, pressed, act) {
    const button = element("button", { type: "button", "aria-pressed": pressed }, title);
    button.addEventListener("click", () => {
      const now = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", now);
      act(now);
    });
    return button;
  }

  function build(details) {
    page.library("echarts");
    const study = details.dataset.study;
    const rows = page.data().rows.filter((row) => row.study === study);
    const metrics = page.data().metrics.filter((metric) => rows.some((row) => row[metric.key] !== null));
    const choices = page.xChoices(rows);
    const asked = choices.find((choice) => choice.key === page.data().studies[study].x_axis);
    const view = { metric: metrics[0], x: asked ?? choices[0], logY: true, hidden: new Set() };

    const plot = element("div", { class: "plot" });
    const lines = element("div", { class: "lines", role: "group", "aria-label": "Lines shown" });
    const nothing = element("p", { class: "nothing", role: "status" });
    const note = element("p", { class: "soft" });
    details.append(element("div", { class: "controls" }), lines, nothing, plot, note);
    if (!metrics.length) {
      note.textContent = "No cell of this study has a value to draw; the table of cells says why.";
      return;
    }
    const chart = echarts.init(plot, null, { renderer: "svg" });
    const draw = () => {
      const shown = view.series.filter((series) => !view.hidden.has(series.name));
      const empty = !shown.some((series) => series.points.some(({ row }) => page.pointOf(row, view.metric)));
      nothing.textContent = !empty ? "" : shown.length ? `The chosen lines have no value of: ${view.metric.title}.` : "No line is chosen.";
      plot.hidden = empty;
      if (empty) return;
      [view.width, view.height] = [plot.clientWidth, plot.clientHeight];
      chart.setOption(page.chartOption(view), { notMerge: true });
    };

    function swatch({ colour, dashes }) {
      return element("span", { class: "swatch", style: `border-top: 3px ${dashes} ${colour}`, "aria-hidden": "true" });
    }
    function listLines() {
      const looks = page.looksOf(view.series);
      lines.replaceChildren(...view.series.map((series) => {
        const button = toggle("", !view.hidden.has(series.name), (shown) => {
          view.hidden[shown ? "delete" : "add"](series.name);
          draw();
        });
        button.append(swatch(looks.get(series.name)), series.name);
        return button;
      }));
      if (view.series.length > 2) {
        const all = (shown) => () => {
          view.hidden = new Set(shown ? [] : view.series.map((series) => series.name));
          listLines();
          draw();
        };
        lines.append(element("button", { type: "button", click: all(true) }, "all"), element("button", { type: "button", click: all(false) }, "none"));
      }
    }
    function arrange(x) {
      Object.assign(view, page.seriesOf(rows, x.key), { x });
      view.hidden = new Set(view.series.slice(FIRST_SHOWN).map((series) => series.name));
      const more = view.hidden.size ? ` The first ${FIRST_SHOWN} of ${view.series.length} lines are on.` : "";
      note.textContent = `Bars: 95 % interval over trials, where there is more than one. Hollow: flagged. Cross: a cell without a value.${more}`;
      listLines();
      draw();
    }

    details.querySelector(".controls").append(
      select("show", metrics, view.metric, (metric) => { view.metric = metric; draw(); }),
      select("over", choices, view.x, arrange),
      toggle("log y", true, (on) => { view.logY = on; draw(); }),
      element("button", { type: "button", click: () => page.showStudyInTable(study) }, "these cells as a table"),
    );
    arrange(view.x);
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `${page.data().studies[study].title}: chart of the cells; the table of cells has the same values`);
    new ResizeObserver(() => { chart.resize(); draw(); }).observe(plot);
    document.addEventListener("crossover:theme", () => { listLines(); draw(); });
  }

  for (const details of document.querySelectorAll("details.explorer")) {
    details.addEventListener("toggle", () => build(details), { once: true });
  }
})(window.Crossover);
