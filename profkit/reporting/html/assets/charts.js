"use strict";
// What hovers over a mark of a chart is also shown where the keyboard rests on it, or a finger touches it.
(function () {
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the mark has the same words as its name
  document.body.append(tip);
  const mark = (target) => (target.closest ? target.closest(".chart [tabindex]") : null);
  function show(one) {
    const title = one.querySelector("title");
    if (!title) return;
    tip.textContent = title.textContent;
    tip.hidden = false;
    const at = one.getBoundingClientRect(), box = tip.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left + at.width / 2 - box.width / 2, document.documentElement.clientWidth - box.width - 8));
    const above = at.top - box.height - 6;
    tip.style.left = left + window.scrollX + "px";
    tip.style.top = (above > 0 ? above : at.bottom + 6) + window.scrollY + "px";
  }
  const hide = () => { tip.hidden = true; };
  // Of a long line the value nearest to the pointer: its numbers stand in an attribute.
  const known = new WeakMap();
  function read(area, event) {
    const line = known.get(area) || JSON.parse(area.dataset.read);
    known.set(area, line);
    const box = area.getBoundingClientRect(), chart = area.ownerSVGElement;
    const scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
    const left = box.left + (line.x[0] - area.x.baseVal.value) * scale, wide = (line.x[1] - line.x[0]) * scale;
    const share = Math.max(0, Math.min(1, (event.clientX - left) / wide)), last = line.v.length - 1;
    const days = (i) => (line.d ? line.d[i] : i), goal = share * days(last);
    let nearest = 0;
    for (let i = 1; i <= last; i++) if (Math.abs(days(i) - goal) < Math.abs(days(nearest) - goal)) nearest = i;
    const date = "t" in line ? new Date(1000 * (line.t + 86400 * days(nearest))).toISOString().slice(0, 10) : "night " + (nearest + 1);
    tip.textContent = date + ": " + line.v[nearest] + " " + line.u;
    tip.hidden = false;
    const at = left + (wide * days(nearest)) / days(last), room = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(at - room.width / 2, document.documentElement.clientWidth - room.width - 8)) + window.scrollX + "px";
    tip.style.top = box.bottom + 4 + window.scrollY + "px";
  }
  document.addEventListener("pointermove", (event) => {
    const area = event.target.closest && event.target.closest("svg.trend") && event.target.closest("svg.trend").querySelector(".reader");
    if (area) read(area, event);
    else if (!document.activeElement || !mark(document.activeElement)) hide();
  });
  document.addEventListener("focusin", (event) => { const one = mark(event.target); if (one) show(one); else hide(); });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
