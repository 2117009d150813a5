// SPDX-License-Identifier: Apache-2.0
// Makes the page's pictures answer: hovers, legends that hide lines, zoom, keyboard. The page says
// all without it.
"use strict";
(() => {
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

  // Titles of boxes become our own tips, which a keyboard reaches, too. `near` finds the box that a
  // pointer is about.
  const takeTitles = (svg, near = (event) => event.target.closest("[data-tip]")) => {
    for (const title of svg.querySelectorAll(":scope * > title")) {
      title.parentElement.dataset.tip = title.textContent;
      title.remove();
    }
    const boxes = [...svg.querySelectorAll("[data-tip]")];
    svg.addEventListener("pointermove", (event) => {
      const box = near(event, boxes);
      if (box) showTip(box.dataset.tip, event.clientX, event.clientY);
      else hideTip();
    });
    svg.addEventListener("pointerleave", hideTip);
    return boxes;
  };

  // Marks the box that the keyboard has come to, and no other, and shows its tip.
  const picker = () => {
    let picked;
    return (box) => {
      picked?.classList.remove("picked");
      picked = box;
      if (!box) return hideTip();
      box.classList.add("picked");
      box.scrollIntoView({ block: "nearest", inline: "nearest" });
      const seen = box.getBoundingClientRect();
      showTip(box.dataset.tip, seen.left + seen.width / 2, seen.bottom);
    };
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
    const mark = picker();
    const pick = (to) => {
      if (to >= 0 && to < boxes.length) mark(boxes[picked = to]);
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
    drawing.addEventListener("blur", () => mark());
  }

  // Closed parts are printed, too.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of opened) each.open = false; });

  // Charts: the nearest point says its numbers, and arrows go along a line and from line to line.
  const shown = (box) => !box.closest("[hidden]");
  const distance = (box, { clientX, clientY }) => {
    const { left, right, top, bottom } = box.getBoundingClientRect();
    return Math.hypot((left + right) / 2 - clientX, (top + bottom) / 2 - clientY);
  };
  const nearest = (event, boxes) => boxes.filter(shown).map((box) => [distance(box, event), box])
    .reduce((best, each) => (each[0] < best[0] ? each : best), [Infinity])[1];
  for (const figure of document.querySelectorAll("figure.chart")) {
    const still = figure.querySelector(".still");
    const points = takeTitles(still.querySelector("svg"), nearest);
    const partsOf = (line) => figure.querySelectorAll(`[data-line="${line}"]`);

    // The legend shows and hides lines.
    const items = [...figure.querySelectorAll(".legend li")];
    items.forEach((item, line) => {
      const button = make("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const hides = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!hides));
        for (const part of partsOf(line)) part.toggleAttribute("hidden", hides);
      });
    });

    const lines = items.map((_, line) => points.filter((point) => [...partsOf(line)].includes(point.parentElement)));
    const mark = picker();
    let line = 0, point = -1;
    still.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      const move = moves[event.key];
      const seen = lines.filter((each) => each.length > 0 && shown(each[0]));
      if (!move || seen.length === 0) return;
      event.preventDefault();
      line = (line + move[0] + seen.length) % seen.length;
      point = Math.min(seen[line].length - 1, Math.max(0, point + move[1]));
      mark(seen[line][point]);
    });
    still.addEventListener("blur", () => mark());
  }
})();
