"use strict";
// The map of winners by arrow keys, and the dots below the roofline: the nearest to the pointer, or one after the other.
(function () {
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  function place(at) {
    const box = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    tip.style.left = Math.max(8, Math.min(at.left + at.width / 2 - box.width / 2, wide - box.width - 8)) + window.scrollX + "px";
    const above = at.top - box.height - 6;
    tip.style.top = (above > 0 ? above : at.bottom + 6) + window.scrollY + "px";
  }

  // ---- the map: one cell is reached by Tab, the others from it
  const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest && event.target.closest(".winners [data-at]"), step = steps[event.key];
    if (!cell || !step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const chart = cell.ownerSVGElement, [row, column] = cell.dataset.at.split(",").map(Number);
    for (let n = 1; n < 1000; n++) { // past those that were not compared
      const next = chart.querySelector('[data-at="' + (row + n * step[0]) + "," + (column + n * step[1]) + '"]');
      if (!next && n > 200) return;
      if (!next) continue;
      cell.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
      return;
    }
  });

  // ---- the dots
  let told = null;
  function data() { // the table of all cases has every number
    if (!told) {
      const names = JSON.parse(document.getElementById("kernel-names").textContent);
      const held = JSON.parse(document.getElementById("kernel-data").textContent);
      const all = window.profkitUnpack(names.texts);
      told = { name: (row) => all[names.at[row]], columns: held.columns.filter((one) => ["Time", "Speed-up", "Roofline", "Traffic"].includes(one.title)) };
    }
    return told;
  }
  const charts = new WeakMap();
  function dots(area) {
    if (!charts.has(area)) {
      const found = [], rows = JSON.parse(area.dataset.rows);
      area.ownerSVGElement.querySelectorAll(".cloud").forEach((path, cloud) => {
        path.getAttribute("d").split("M").slice(1).forEach((one, n) => {
          const [x, y] = one.replace("h0", "").split(/[ ,]/).map(Number);
          found.push({ x, y, row: rows[cloud][n] });
        });
      });
      found.sort((a, b) => a.x - b.x || a.y - b.y);
      const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      ring.setAttribute("class", "ring");
      ring.setAttribute("r", "4");
      ring.setAttribute("visibility", "hidden");
      area.ownerSVGElement.append(ring);
      charts.set(area, { found, ring, at: -1 });
    }
    return charts.get(area);
  }
  function show(area, number) {
    const chart = dots(area), dot = chart.found[number];
    chart.at = number;
    chart.ring.setAttribute("cx", dot.x);
    chart.ring.setAttribute("cy", dot.y);
    chart.ring.setAttribute("visibility", "visible");
    const known = data();
    const values = known.columns.map((one) => {
      const value = one.values[dot.row];
      return value === null || value === undefined ? "" : one.title.toLowerCase() + " " + window.profkitQuantity(value, one.unit);
    });
    tip.textContent = known.name(dot.row) + ": " + values.filter(Boolean).join(", ");
    tip.hidden = false;
    place(chart.ring.getBoundingClientRect());
  }
  const reader = (target) => (target.closest ? target.closest(".cases .reader") : null);
  document.addEventListener("pointermove", (event) => {
    const area = reader(event.target);
    if (!area) { if (!reader(document.activeElement || document)) hide(); return; }
    const chart = dots(area), box = area.ownerSVGElement.getBoundingClientRect();
    const scale = area.ownerSVGElement.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    let nearest = -1, least = 12 * 12;
    chart.found.forEach((dot, n) => {
      const far = (dot.x - x) ** 2 + (dot.y - y) ** 2;
      if (far < least) { least = far; nearest = n; }
    });
    if (nearest >= 0) show(area, nearest); else { hide(); chart.ring.setAttribute("visibility", "hidden"); }
  });
  document.addEventListener("keydown", (event) => {
    const area = reader(event.target);
    if (!area) return;
    if (event.key === "Escape") { hide(); return; }
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: -1, ArrowUp: 1, Home: -1e9, End: 1e9, PageUp: 50, PageDown: -50 }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const chart = dots(area), last = chart.found.length - 1;
    show(area, Math.max(0, Math.min(last, chart.at + step)));
  });
  document.addEventListener("focusout", hide);
})();
