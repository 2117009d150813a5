// SPDX-License-Identifier: Apache-2.0
// Makes the page's pictures live: charts drawn by Chart.js, hovers, zoom, keyboard. The page says
// all without it.
"use strict";
(() => {
  const style = () => getComputedStyle(document.documentElement);
  const color = (name) => style().getPropertyValue(name).trim();
  const number = (value) => String(Number(value.toPrecision(5)));
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // What a box says, beside the pointer or the box that the keyboard has picked.
  const tip = make("div", "tip");
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  const showTip = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
  };
  const hideTip = () => { tip.hidden = true; };

  // Titles of boxes become our own tips, which a keyboard reaches, too.
  const takeTitles = (svg) => {
    for (const title of svg.querySelectorAll(":scope * > title")) {
      title.parentElement.dataset.tip = title.textContent;
      title.remove();
    }
    const boxes = [...svg.querySelectorAll("[data-tip]")];
    svg.addEventListener("pointermove", (event) => {
      const box = event.target.closest("[data-tip]");
      if (box) showTip(box.dataset.tip, event.clientX, event.clientY);
      else hideTip();
    });
    svg.addEventListener("pointerleave", hideTip);
    return boxes;
  };

  // Schedules: zoom, and arrows from box to box.
  const kMost = 8, kLeast = 0.25;
  for (const drawing of document.querySelectorAll(".drawing")) {
    const svg = drawing.querySelector("svg");
    const boxes = takeTitles(svg);
    let zoom = 1, picked = -1;
    const tools = make("div", "tools");
    const said = make("span", "quiet", "100 %");
    const setZoom = (to) => {
      const before = zoom;
      zoom = Math.min(kMost, Math.max(kLeast, to));
      const middle = drawing.scrollLeft + drawing.clientWidth / 2;
      svg.style.width = zoom === 1 ? "" : `calc(max(100%, 42rem) * ${zoom})`;
      drawing.scrollLeft = middle * zoom / before - drawing.clientWidth / 2;
      said.textContent = `${Math.round(100 * zoom)} %`;
      drawing.dataset.zoom = zoom;
    };
    const button = (text, label, act) => {
      const element = make("button", "", text);
      element.type = "button";
      element.setAttribute("aria-label", label);
      element.addEventListener("click", act);
      tools.append(element);
    };
    button("−", "Zoom out", () => setZoom(zoom / 1.5));
    button("+", "Zoom in", () => setZoom(zoom * 1.5));
    button("Fit", "Fit into the page", () => setZoom(1));
    tools.append(said);
    drawing.before(tools);
    drawing.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      setZoom(zoom * Math.exp(-event.deltaY / 300));
    }, { passive: false });

    const place = (box) => ({ x: +box.getAttribute("x"), y: +box.getAttribute("y") });
    const pick = (to) => {
      if (to < 0 || to >= boxes.length) return;
      boxes[picked]?.classList.remove("picked");
      picked = to;
      const box = boxes[to];
      box.classList.add("picked");
      box.scrollIntoView({ block: "nearest", inline: "nearest" });
      const seen = box.getBoundingClientRect();
      showTip(box.dataset.tip, seen.left + seen.width / 2, seen.bottom);
    };
    // The nearest box of the lane above or below.
    const across = (direction) => {
      const from = place(boxes[picked]);
      let lane, best = -1, nearest = Infinity;
      boxes.forEach((box) => {
        const { y } = place(box);
        if ((y - from.y) * direction <= 0) return;
        if (lane === undefined || (y - lane) * direction < 0) lane = y;
      });
      boxes.forEach((box, i) => {
        const { x, y } = place(box);
        if (y === lane && Math.abs(x - from.x) < nearest) [best, nearest] = [i, Math.abs(x - from.x)];
      });
      return best;
    };
    drawing.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const acts = {
        "+": () => setZoom(zoom * 1.5), "=": () => setZoom(zoom * 1.5), "-": () => setZoom(zoom / 1.5),
        "0": () => setZoom(1), ArrowRight: () => pick(picked + 1), ArrowLeft: () => pick(Math.max(0, picked - 1)),
        ArrowDown: () => pick(picked < 0 ? 0 : across(1)), ArrowUp: () => pick(picked < 0 ? 0 : across(-1)),
        Home: () => pick(0), End: () => pick(boxes.length - 1), Escape: hideTip,
      };
      if (!acts[event.key] || boxes.length === 0) return;
      event.preventDefault();
      acts[event.key]();
    });
    drawing.addEventListener("blur", () => { boxes[picked]?.classList.remove("picked"); hideTip(); });
  }
  for (const strip of document.querySelectorAll(".strip")) takeTitles(strip);

  // Closed parts are printed, too.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of opened) each.open = false; });

  // Charts.
  const data = document.getElementById("data");
  if (typeof Chart === "undefined" || !data) return;
  const kShapes = ["circle", "rect", "triangle", "rectRot"];
  const kDashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
  const kColors = 8;
  const lineColor = (line) => color(`--c${line.look % kColors}`);

  // Bands or bars for intervals, and crosses where runs diverged.
  const extrasOf = (spec) => ({
    id: "extras",
    eachLine(chart, draw) {
      const { ctx, chartArea: area } = chart;
      spec.lines.forEach((line, i) => {
        if (!chart.isDatasetVisible(i)) return;
        ctx.save();
        ctx.beginPath();
        ctx.rect(area.left, area.top, area.width, area.height);
        ctx.clip();
        ctx.beginPath();
        draw(ctx, line, chart.scales.x, chart.scales.y);
        ctx.restore();
      });
    },
    beforeDatasetsDraw(chart) {
      if (spec.bars) return;
      this.eachLine(chart, (ctx, line, x, y) => {
        if (!line.points.some((point) => point[2] > 0)) return;
        const at = ([px, mean, reach], sign) => [x.getPixelForValue(px), y.getPixelForValue(mean + sign * reach)];
        [0, ...line.breaks].forEach((begin, i) => {
          const joined = line.points.slice(begin, line.breaks[i]);
          joined.forEach((point, k) => (k ? ctx.lineTo(...at(point, 1)) : ctx.moveTo(...at(point, 1))));
          for (const point of joined.reverse()) ctx.lineTo(...at(point, -1));
          ctx.closePath();
        });
        ctx.globalAlpha = 0.13;
        ctx.fillStyle = lineColor(line);
        ctx.fill();
      });
    },
    afterDatasetsDraw(chart) {
      this.eachLine(chart, (ctx, line, x, y) => {
        if (spec.bars)
          for (const [at, mean, reach] of line.points) {
            if (!(reach > 0)) continue;
            ctx.moveTo(x.getPixelForValue(at), y.getPixelForValue(mean - reach));
            ctx.lineTo(x.getPixelForValue(at), y.getPixelForValue(mean + reach));
          }
        for (const at of line.crosses) {
          const px = x.getPixelForValue(at), py = y.bottom - 7;
          ctx.moveTo(px - 4, py - 4); ctx.lineTo(px + 4, py + 4);
          ctx.moveTo(px - 4, py + 4); ctx.lineTo(px + 4, py - 4);
        }
        ctx.strokeStyle = lineColor(line);
        ctx.lineWidth = 1.5;
        ctx.stroke();
      });
    },
  });

  const say = (spec, line, point) => {
    const [x, y, reach, runs, name] = point;
    const at = spec.names[x] ?? number(x);
    return `${name ?? line.name}: ${number(y)}` + (reach > 0 ? ` ± ${number(reach)}` : "") +
      (runs > 1 ? ` (${runs} runs)` : "") + `, ${spec.x} ${at}`;
  };

  const datasetOf = (line) => ({
    label: line.name, data: line.points.map(([x, y]) => ({ x, y })),
    showLine: line.kind !== "points", stepped: line.kind === "steps" ? "before" : false,
    borderColor: () => lineColor(line), pointBackgroundColor: () => lineColor(line), pointBorderColor: () => lineColor(line),
    pointHoverBackgroundColor: () => lineColor(line), borderWidth: 2, pointStyle: kShapes[line.look % kShapes.length],
    ...(line.breaks.length > 0 && {
      segment: { borderColor: ({ p1DataIndex }) => (line.breaks.includes(p1DataIndex) ? "transparent" : undefined) },
    }),
    borderDash: line.kind === "published" ? [1, 4] : kDashes[Math.floor(line.look / kColors) % kDashes.length],
    pointRadius: line.points.length > 60 || line.kind === "steps" ? 0 : 3.5, pointHoverRadius: 6, pointHitRadius: 8,
  });

  const paint = (chart) => {
    const { x, y } = chart.options.scales;
    for (const axis of [x, y]) {
      axis.ticks.color = axis.title.color = color("--quiet");
      axis.grid.color = color("--rule");
      axis.grid.borderColor = color("--quiet");
    }
    Object.assign(chart.options.plugins.tooltip, {
      backgroundColor: color("--ink"), titleColor: color("--paper"), bodyColor: color("--paper"),
    });
    chart.update("none");
  };

  const axis = (label, log, [low, high, ...ticks], names) => ({
    type: log ? "logarithmic" : "linear", min: low, max: high, title: { display: true, text: label }, grid: {},
    ticks: { autoSkip: true, callback: (value) => names[value] ?? number(value) },
    afterBuildTicks: (scale) => { scale.ticks = ticks.map((value) => ({ value })); },
  });

  Chart.defaults.font.family = style().fontFamily || "sans-serif";
  Chart.defaults.font.size = 12.5;
  const charts = [];
  const specs = JSON.parse(data.textContent);
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const spec = specs[figure.dataset.chart];
    const live = make("div", "live");
    const canvas = make("canvas");
    const label = `${spec.title ? spec.title + ": " : ""}${spec.y} over ${spec.x}; arrows go from point to point`;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
    live.append(canvas);
    figure.querySelector(".still").before(live);
    const readout = make("p", "readout quiet");
    readout.setAttribute("aria-live", "polite");
    figure.querySelector(".legend").before(readout);
    const chart = new Chart(canvas, {
      type: "line",
      data: { datasets: spec.lines.map(datasetOf) },
      plugins: [extrasOf(spec)],
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
        interaction: { mode: "nearest", intersect: false },
        scales: {
          x: axis(spec.x, spec.logX, spec.scaleX, spec.names),
          y: axis(spec.y, spec.logY, spec.scaleY, []),
        },
        plugins: {
          legend: { display: false },
          tooltip: {
            displayColors: false,
            callbacks: { title: () => "", label: (item) => say(spec, spec.lines[item.datasetIndex], spec.lines[item.datasetIndex].points[item.dataIndex]) },
          },
        },
      },
    });
    charts.push(chart);
    figure.chart = chart;
    paint(chart);

    // The legend shows and hides lines.
    figure.querySelectorAll(".legend li").forEach((item, i) => {
      const button = make("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        chart.setDatasetVisibility(i, shown);
        chart.update("none");
      });
    });

    // Arrows go along a line and from line to line.
    const lines = spec.lines.map((line, i) => (line.points.length > 0 ? i : -1)).filter((i) => i >= 0);
    let at = { line: 0, point: -1 };
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      const move = moves[event.key];
      if (!move || lines.length === 0) return;
      event.preventDefault();
      const line = (at.line + move[0] + lines.length) % lines.length;
      const points = spec.lines[lines[line]].points;
      at = { line, point: Math.min(points.length - 1, Math.max(0, at.point + move[1])) };
      const active = [{ datasetIndex: lines[line], index: at.point }];
      chart.setActiveElements(active);
      chart.tooltip.setActiveElements(active, { x: 0, y: 0 });
      chart.update("none");
      readout.textContent = say(spec, spec.lines[lines[line]], points[at.point]);
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(paint));
})();
