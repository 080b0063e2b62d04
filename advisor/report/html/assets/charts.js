// Charts: Observable Plot draws them when their page is first shown.
"use strict";
(() => {
  const { categories, hosts, memory } = report.data;
  const colors = { domain: categories, range: categories.map((_, index) => report.color(`c${index}`)) };
  const marginLeft = 64;

  function widthOf(holder) {
    return Math.max(320, Math.min(1100, holder.clientWidth || 900));
  }

  const kinds = {
    steps(holder, index) {
      const rows = (hosts[index] || { steps: [] }).steps.flatMap(([step, ...times]) => times.map((time, at) => ({ step, part: categories[at], time })).filter((row) => row.time > 0));
      return Plot.plot({
        width: Math.min(widthOf(holder), marginLeft + 90 * Math.max(3, new Set(rows.map((row) => row.step)).size)), height: 280, marginLeft, color: colors,
        x: { label: "step", type: "band", ticks: thinned(rows.map((row) => row.step)) },
        y: { label: "ms", grid: true },
        marks: [Plot.barY(rows, { x: "step", y: "time", fill: "part", tip: true, order: categories }), Plot.ruleY([0])],
      });
    },
    hosts(holder) {
      const rows = hosts.flatMap(({ host, mean }) => mean.map((time, at) => ({ host, part: categories[at], time })).filter((row) => row.time > 0));
      return Plot.plot({
        width: widthOf(holder), height: 60 + 34 * hosts.length, marginLeft: 150, color: colors,
        x: { label: "ms per step", grid: true }, y: { label: null, tickFormat: (name) => (name.length > 20 ? `${name.slice(0, 19)}…` : name) },
        marks: [Plot.barX(rows, { y: "host", x: "time", fill: "part", tip: true, order: categories }), Plot.ruleX([0])],
      });
    },
    memory(holder, index) {
      const names = ["heap", "stack", "free"];
      const most = Math.max(...memory[index].points.flatMap(([, ...sizes]) => sizes.slice(0, 3)));
      const [unit, unitName] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]].find(([size]) => most >= size || size === 1);
      const rows = memory[index].points.flatMap(([time, ...sizes]) => names.map((name, at) => ({ time, name, size: sizes[at] / unit })));
      return Plot.plot({
        width: widthOf(holder), height: 260, marginLeft,
        color: { domain: names, range: [report.color("c4"), report.color("c2"), report.color("c6")] },
        x: { label: "ms" }, y: { label: unitName, grid: true },
        marks: [Plot.lineY(rows, { x: "time", y: "size", stroke: "name", curve: "step-after", tip: true }), Plot.ruleY([0])],
      });
    },
  };

  function thinned(steps) {
    const distinct = [...new Set(steps)];
    const stride = Math.ceil(distinct.length / 12);
    return distinct.filter((_, index) => index % stride === 0);
  }

  for (const holder of document.querySelectorAll("[data-chart]")) {
    const page = holder.closest("section.page").dataset.page;
    report.whenShown(page, () => holder.append(kinds[holder.dataset.chart](holder, Number(holder.dataset.index))));
  }
})();
