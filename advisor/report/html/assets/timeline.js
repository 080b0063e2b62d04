// The window as lanes: one row per thread or stream and nesting level, drawn by Plot; buttons, keys and the wheel zoom.
"use strict";
(() => {
  const LEVEL = 11;
  const views = report.data.timeline;
  const holder = document.getElementById("lanes");
  if (!holder || !views.length) return;
  const hover = document.getElementById("lane-hover");
  const colors = { next: "c1", iterator: "c2", produce: "c4", function: "c0", op: "c5", step: "c7", tracing: "c3", device: "c6" };
  let view = views[0];
  let range = [0, view.duration];

  function draw() {
    const margin = holder.clientWidth < 600 ? 130 : 230;
    const letters = margin / 6.7;
    const rows = [];
    const titles = [];
    let y = 0;
    for (const [name, spans] of view.lanes) {
      const levels = 1 + Math.max(...spans.map((span) => span[0]));
      titles.push({ name: name.length > letters ? `${name.slice(0, letters - 1)}…` : name, full: name, y: y + 0.5 });
      for (const [level, start, duration, label, count, busy] of spans) {
        if (start + duration < range[0] || start > range[1]) continue;
        rows.push({ x1: Math.max(start, range[0]), x2: Math.min(start + duration, range[1]), y: y + level, kind: view.kinds[label], name: view.names[label], start, duration, count, busy, lane: name });
      }
      y += levels + 0.6;
    }
    const chart = Plot.plot({
      width: Math.max(640, holder.clientWidth - 4), height: 46 + y * LEVEL, marginLeft: margin, marginTop: 30, marginRight: 12,
      color: { domain: Object.keys(colors), range: Object.values(colors).map(report.color) },
      x: { domain: range, axis: "top", label: null, tickFormat: report.time, grid: true },
      y: { domain: [y, 0], axis: null },
      marks: [
        Plot.rect(rows, { x1: "x1", x2: "x2", y1: "y", y2: (row) => row.y + 0.9, fill: "kind", fillOpacity: (row) => (row.count > 1 ? 0.55 : 1) }),
        Plot.text(titles, { frameAnchor: "left", dx: 8 - margin, y: "y", text: "name", textAnchor: "start", title: "full" }),
        Plot.tip(rows, Plot.pointer({ px: (row) => (row.x1 + row.x2) / 2, py: (row) => row.y + 0.5, x1: "x1", x2: "x2", y1: "y", y2: (row) => row.y + 0.9, title: describe, maxRadius: 30 })),
      ],
    });
    chart.addEventListener("input", () => { if (chart.value) hover.textContent = describe(chart.value).replaceAll("\n", ", "); });
    holder.replaceChildren(chart);
  }

  function describe(row) {
    const name = row.name.length > 90 ? `${row.name.slice(0, 89)}…` : row.name;
    const what = row.count > 1 ? `${name} and others: ${row.count} events, ${report.time(row.busy)} in all` : name;
    return `${what}\n${report.time(row.duration)} at ${report.time(row.start)}\n${row.lane}`;
  }

  function zoom(factor, at = 0.5) {
    const length = Math.min(view.duration, Math.max(view.duration / 1e4, (range[1] - range[0]) * factor));
    move(range[0] + (range[1] - range[0] - length) * at, length);
  }

  function move(start, length = range[1] - range[0]) {
    const first = Math.max(0, Math.min(start, view.duration - length));
    range = [first, first + length];
    draw();
  }

  const actions = {
    in: () => zoom(0.5),
    out: () => zoom(2),
    left: () => move(range[0] - (range[1] - range[0]) / 4),
    right: () => move(range[0] + (range[1] - range[0]) / 4),
    all: () => move(0, view.duration),
  };
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", Home: "all" };
  for (const button of document.querySelectorAll("[data-lane]")) button.addEventListener("click", () => actions[button.dataset.lane]());
  holder.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    actions[keys[event.key]]();
    event.preventDefault();
  });
  holder.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return; // the wheel alone scrolls the page
    event.preventDefault();
    const box = holder.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, (event.clientX - box.left - 130) / (box.width - 142))));
  }, { passive: false });
  document.getElementById("timeline-host").addEventListener("change", (event) => {
    view = views[Number(event.target.value)];
    actions.all();
  });
  report.whenShown("timeline", draw);
})();
