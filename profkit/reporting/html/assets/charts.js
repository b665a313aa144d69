"use strict";
// What hovers over a mark of a chart is also shown where the keyboard rests on it, or a finger touches it.
(function () {
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  function show(text, at, below) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    const above = below ? -1 : at.top - box.height - 6;
    tip.style.left = Math.max(8, Math.min(at.left + at.width / 2 - box.width / 2, wide - box.width - 8)) + window.scrollX + "px";
    tip.style.top = (above > 0 ? above : at.bottom + 6) + window.scrollY + "px";
  }
  const near = (target, selector) => (target && target.closest ? target.closest(selector) : null);
  const held = (event) => event.ctrlKey || event.metaKey || event.altKey;

  // ---- a mark
  const mark = (target) => near(target, ".chart [tabindex], .winners [tabindex]");
  document.addEventListener("focusin", (event) => {
    const one = mark(event.target), title = one && (one.querySelector("title") || { textContent: one.title });
    if (title) show(title.textContent, one.getBoundingClientRect()); else hide();
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // ---- a map of winners: one cell is reached by Tab, the others from it by arrow keys
  const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
  function walk(cell, step) {
    const [row, column] = cell.dataset.at.split(",").map(Number);
    for (let n = 1; n <= 200; n++) { // past those that were not compared
      const next = cell.closest(".winners").querySelector('[data-at="' + (row + n * step[0]) + "," + (column + n * step[1]) + '"]');
      if (!next) continue;
      cell.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
      return;
    }
  }

  // ---- many points: the nearest to the pointer, or one after the other; each has words, or its row of the sortable table
  function numbers(area, row) {
    if (!/^\d+$/.test(row)) return row;
    const place = document.querySelector('#kernel-table tr[data-row="' + row + '"]'), titles = area.dataset.columns.split("|");
    if (!place) return "";
    const heads = Array.from(place.closest("table").tHead.rows[0].cells, (head) => head.textContent);
    const values = heads.flatMap((head, n) => titles.includes(head) && place.cells[n].textContent ? [head.toLowerCase() + " " + place.cells[n].textContent] : []);
    return place.dataset.name + ": " + values.join(", ");
  }
  const clouds = new WeakMap();
  function dots(area) {
    if (!clouds.has(area)) {
      const found = [], places = area.dataset.points.split("||").map((cloud) => cloud.split("|"));
      area.ownerSVGElement.querySelectorAll(".cloud").forEach((path, cloud) => {
        path.getAttribute("d").split("M").slice(1).forEach((dot, n) => {
          const [x, y] = dot.replace("h0", "").split(/[ ,]/).map(Number);
          found.push({ x, y, row: places[cloud][n] });
        });
      });
      found.sort((a, b) => a.x - b.x || a.y - b.y);
      const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      ring.setAttribute("class", "ring");
      ring.setAttribute("r", "4");
      ring.setAttribute("visibility", "hidden");
      area.ownerSVGElement.append(ring);
      clouds.set(area, { found, ring, at: -1 });
    }
    return clouds.get(area);
  }
  function point(area, number) {
    const chart = dots(area), dot = chart.found[number];
    chart.at = number;
    chart.ring.setAttribute("cx", dot.x);
    chart.ring.setAttribute("cy", dot.y);
    chart.ring.setAttribute("visibility", "visible");
    show(numbers(area, dot.row), chart.ring.getBoundingClientRect());
  }
  function nearest(area, event) {
    const chart = dots(area), box = area.ownerSVGElement.getBoundingClientRect();
    const scale = area.ownerSVGElement.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    let number = -1, least = 12 * 12;
    chart.found.forEach((dot, n) => {
      const far = (dot.x - x) ** 2 + (dot.y - y) ** 2;
      if (far < least) { least = far; number = n; }
    });
    if (number >= 0) point(area, number); else { hide(); chart.ring.setAttribute("visibility", "hidden"); }
  }
  const cloud = (target) => near(target, ".chart .reader");
  document.addEventListener("keydown", (event) => {
    if (held(event)) return;
    const cell = near(event.target, ".winners [data-at]"), area = cloud(event.target);
    if (cell && steps[event.key]) walk(cell, steps[event.key]);
    else if (area) {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: -1, ArrowUp: 1, Home: -1e9, End: 1e9, PageUp: 50, PageDown: -50 }[event.key];
      if (step === undefined) return;
      const chart = dots(area);
      point(area, Math.max(0, Math.min(chart.found.length - 1, chart.at + step)));
    } else return;
    event.preventDefault();
  });

  document.addEventListener("pointermove", (event) => {
    const area = cloud(event.target);
    if (area) nearest(area, event);
    else if (!mark(document.activeElement)) hide();
  });
})();
