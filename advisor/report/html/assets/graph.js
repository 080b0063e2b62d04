// The input pipelines drawn: dagre lays the nodes out, D3 draws them; boxes hold what runs on the same threads.
"use strict";
(() => {
  const WIDTH = 236, LINE = 16, PAD = 10, LABEL = 8;
  const SMALLEST = 0.75; // of its own size: a graph that would have to shrink further scrolls instead, its text has to be read
  const pipelines = report.data.pipelines;
  const pick = { host: byId("pick-host"), pipeline: byId("pick-pipeline"), rank: byId("pick-rank") };
  if (!pick.host || !pipelines.length) return;
  let current = 0;
  let chosen = null;

  function byId(id) { return document.getElementById(id); }

  function fill(select, texts, value) {
    select.replaceChildren(...texts.map(([text, key]) => new Option(text, key)));
    select.value = value;
  }

  function shorten(text, most = 70) { return text.length > most ? `${text.slice(0, most - 1)}…` : text; }

  function showPipeline(number) {
    current = number;
    chosen = null;
    const pipeline = pipelines[number];
    const hosts = [...new Set(pipelines.map((one) => one.host))];
    fill(pick.host, hosts.map((host) => [shorten(host), host]), pipeline.host);
    const here = pipelines.map((one, index) => [shorten(one.title), index]).filter(([, index]) => pipelines[index].host === pipeline.host);
    fill(pick.pipeline, here, number);
    fill(pick.rank, pipeline.ranks.map((rank, index) => [rank.label, index]), 0);
    for (const part of document.querySelectorAll("[data-summary]")) part.hidden = Number(part.dataset.summary) !== number;
    draw();
    drawWritten();
    choose(pipeline.ranks[0].bottleneck);
    for (const id of ["executed", "written"]) reveal(byId(id));
  }

  function executedLines(node, figures) {
    const [calls, total, own, share] = figures;
    return [
      ...node.lines.map((text) => ["", text]),
      ["minor", `${share} of wait · self ${own}`],
      ["minor", `total ${total} · ${calls}`],
      ...node.settings.map((text) => ["minor", text]),
    ];
  }

  function draw() {
    const { nodes, groups, ranks } = pipelines[current];
    const rank = ranks[Number(pick.rank.value) || 0];
    const onPath = new Set(rank.path);
    const isGrouped = groups.names.length > 1;
    const graph = new dagre.graphlib.Graph({ compound: true }).setGraph({ rankdir: "TB", nodesep: 36, ranksep: 40, marginx: 16, marginy: 16 });
    graph.setDefaultEdgeLabel(() => ({}));
    const boxes = nodes.map((node, index) => ({ node, index, lines: executedLines(node, rank.figures[index]) }));
    if (isGrouped) groups.names.forEach((name, index) => graph.setNode(`g${index}`, { label: name }));
    for (const box of boxes) {
      graph.setNode(`n${box.index}`, { width: WIDTH, height: PAD * 2 + LINE * (box.lines.length + 1) });
      if (isGrouped) graph.setParent(`n${box.index}`, `g${groups.of[box.index]}`);
    }
    const edges = nodes.flatMap((node, index) => (node.parent === null ? [] : [{ from: index, to: node.parent }]));
    for (const edge of edges) graph.setEdge(`n${edge.from}`, `n${edge.to}`);
    dagre.layout(graph);
    const svg = canvas("executed", graph);
    if (isGrouped) {
      const parts = svg.append("g").selectAll("g").data(groups.names.map((name, index) => ({ name, ...graph.node(`g${index}`) }))).join("g").attr("class", "group");
      parts.append("rect").attr("x", (d) => d.x - d.width / 2).attr("y", (d) => d.y - d.height / 2 - LABEL)
        .attr("width", (d) => d.width).attr("height", (d) => d.height + LABEL).attr("rx", 10);
      parts.append("text").attr("x", (d) => d.x - d.width / 2 + 8).attr("y", (d) => d.y - d.height / 2 - LABEL + 14).text((d) => d.name);
    }
    drawEdges(svg, graph, edges, (edge) => (onPath.has(edge.from) && onPath.has(edge.to) ? "path" : ""));
    drawNodes(svg, graph, boxes, {
      title: (box) => box.node.title,
      className: (box) => [rank.bottleneck === box.index ? "bottleneck" : "", onPath.has(box.index) ? "path" : "", box.index === chosen ? "chosen" : ""].join(" "),
      label: (box) => [
        box.node.title, ...box.lines.map(([, text]) => text),
        rank.bottleneck === box.index ? "bottleneck" : onPath.has(box.index) ? "on the critical path" : "",
        box.node.isAsync ? "asynchronous" : "", box.node.isUnseen ? "its input did not run in the window" : "",
      ].filter(Boolean).join(", "),
      isDouble: (box) => box.node.isAsync,
      onChoose: (box) => choose(box.index),
      next: (box, step) => (step > 0 ? box.node.parent : nodes.findIndex((other) => other.parent === box.index)),
    });
  }

  function drawWritten() {
    const calls = pipelines[current].written;
    byId("written-none").hidden = calls.length > 0;
    byId("written").hidden = !calls.length;
    if (!calls.length) return;
    const graph = new dagre.graphlib.Graph().setGraph({ rankdir: "TB", nodesep: 24, ranksep: 26, marginx: 16, marginy: 16 });
    graph.setDefaultEdgeLabel(() => ({}));
    const { nodes, ranks } = pipelines[current];
    const boxes = calls.map((call, index) => {
      const runs = call.runs.map((place) => nodes[place].title);
      return { call, index, lines: [["minor", call.place], ["minor", runs.length ? `runs as ${shorten(runs.join(", "), 22)}` : "no iterator in the window"]].filter(([, text]) => text) };
    });
    for (const box of boxes) graph.setNode(`n${box.index}`, { width: WIDTH, height: PAD * 2 + LINE * (box.lines.length + 1) });
    const edges = [];
    for (const box of boxes) {
      for (const input of box.call.inputs) edges.push({ from: input, to: box.index });
      if (box.call.nestedIn !== null && !boxes.some((other) => other.call.inputs.includes(box.index))) edges.push({ from: box.index, to: box.call.nestedIn, isNested: true });
    }
    for (const edge of edges) graph.setEdge(`n${edge.from}`, `n${edge.to}`);
    dagre.layout(graph);
    const svg = canvas("written", graph);
    drawEdges(svg, graph, edges, (edge) => (edge.isNested ? "nested" : "written"));
    drawNodes(svg, graph, boxes, {
      title: (box) => box.call.title,
      className: (box) => (box.call.runs.includes(ranks[0].bottleneck) ? "bottleneck" : box.call.runs.some((place) => ranks[0].path.includes(place)) ? "path" : "plain"),
      label: (box) => [box.call.title, ...box.lines.map(([, text]) => text)].join(", "),
      isDouble: () => false,
      onChoose: (box) => { if (box.call.runs.length) choose(box.call.runs[box.call.runs.length - 1]); },
      next: (box, step) => (step > 0 ? calls.findIndex((other) => other.inputs.includes(box.index)) : box.call.inputs[0]),
    });
  }

  function canvas(id, graph) {
    const { width, height } = graph.graph();
    const holder = byId(id);
    holder.replaceChildren();
    const svg = d3.select(holder).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height)
      .attr("class", "fit").attr("data-width", width).attr("role", "group");
    svg.node().style.minWidth = `${width * SMALLEST}px`;
    const marks = svg.append("defs").selectAll("marker").data(["", "path"]).join("marker").attr("id", (d) => `arrow-${id}-${d}`)
      .attr("viewBox", "0 0 10 10").attr("refX", 9).attr("refY", 5).attr("markerWidth", 11).attr("markerHeight", 11)
      .attr("markerUnits", "userSpaceOnUse").attr("orient", "auto");
    marks.append("path").attr("d", "M0,0L10,5L0,10z").attr("class", (d) => `arrow ${d}`);
    return svg;
  }

  // a graph wider than its place: scrolled to what is looked for, without moving the page
  function reveal(holder) {
    const box = holder.querySelector(".node.bottleneck rect.box") || holder.querySelector(".node rect.box");
    if (!box || holder.scrollWidth <= holder.clientWidth) return;
    const [inner, outer] = [box.getBoundingClientRect(), holder.getBoundingClientRect()];
    holder.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  }

  function drawEdges(svg, graph, edges, className) {
    const line = d3.line((p) => p.x, (p) => p.y).curve(d3.curveBasis);
    const id = svg.node().parentNode.id;
    svg.append("g").selectAll("path").data(edges).join("path").attr("class", (edge) => `edge ${className(edge)}`)
      .attr("d", (edge) => line(graph.edge(`n${edge.from}`, `n${edge.to}`).points))
      .attr("marker-end", (edge) => `url(#arrow-${id}-${className(edge) === "path" ? "path" : ""})`);
  }

  function drawNodes(svg, graph, boxes, style) {
    const groups = svg.append("g").selectAll("g").data(boxes).join("g")
      .attr("class", (box) => `node ${style.className(box)}`).attr("role", "button").attr("tabindex", 0)
      .attr("data-node", (box) => box.index).attr("aria-label", style.label)
      .attr("transform", (box) => { const at = graph.node(`n${box.index}`); return `translate(${at.x - at.width / 2},${at.y - at.height / 2})`; });
    const height = (box) => graph.node(`n${box.index}`).height;
    groups.append("rect").attr("class", "ring").attr("x", -6).attr("y", -6).attr("rx", 12).attr("width", WIDTH + 12).attr("height", (box) => height(box) + 12);
    groups.append("rect").attr("class", "box").attr("width", WIDTH).attr("height", height).attr("rx", 8);
    groups.filter(style.isDouble).append("rect").attr("class", "second").attr("x", 4).attr("y", 4).attr("rx", 5)
      .attr("width", WIDTH - 8).attr("height", (box) => height(box) - 8);
    groups.append("text").attr("class", "title").attr("x", 14).attr("y", PAD + 13).text(style.title);
    groups.each(function (box) {
      d3.select(this).selectAll("text.line").data(box.lines).join("text").attr("class", ([kind]) => `line ${kind}`)
        .attr("x", 14).attr("y", (_, row) => PAD + 13 + LINE * (row + 1)).text(([, text]) => text);
    });
    groups.on("click", (_, box) => style.onChoose(box)).on("keydown", (event, box) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Enter" || event.key === " ") style.onChoose(box);
      else if (step === undefined) return;
      else {
        const next = svg.node().querySelector(`[data-node="${style.next(box, step)}"]`);
        if (next) next.focus();
      }
      event.preventDefault();
    });
  }

  function choose(place) {
    chosen = place;
    for (const article of document.querySelectorAll("#node-details article")) article.hidden = article.id !== `node-${current}-${place}`;
    byId("node-hint").hidden = place !== null;
    const { written } = pipelines[current];
    d3.select("#executed").selectAll(".node").classed("chosen", (box) => box.index === place).attr("aria-pressed", (box) => box.index === place);
    d3.select("#written").selectAll(".node").classed("related", (box) => place !== null && written[box.index].runs.includes(place));
  }

  pick.host.addEventListener("change", () => showPipeline(pipelines.findIndex((one) => one.host === pick.host.value)));
  pick.pipeline.addEventListener("change", () => showPipeline(Number(pick.pipeline.value)));
  pick.rank.addEventListener("change", () => draw());
  for (const button of document.querySelectorAll("[data-pick]")) {
    button.addEventListener("click", () => {
      showPipeline(Number(button.dataset.pick));
      byId("executed").focus();
    });
  }
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      const svg = byId("executed").querySelector("svg");
      const factor = Number(button.dataset.zoom);
      const width = svg.getBoundingClientRect().width * factor;
      svg.classList.toggle("fit", !factor);
      svg.style.minWidth = factor ? "" : `${svg.dataset.width * SMALLEST}px`;
      svg.setAttribute("width", factor ? width : svg.dataset.width);
      if (factor) svg.removeAttribute("height");
      else svg.setAttribute("height", svg.viewBox.baseVal.height);
    });
  }
  report.whenShown("pipelines", () => showPipeline(0));
})();
