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
  document.addEventListener("focusin", (event) => { const one = mark(event.target); if (one) show(one); else hide(); });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
