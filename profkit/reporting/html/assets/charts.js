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

  // ---- a mark
  const mark = (target) => near(target, ".chart [tabindex]");
  document.addEventListener("focusin", (event) => {
    const one = mark(event.target), title = one && one.querySelector("title");
    if (title) show(title.textContent, one.getBoundingClientRect()); else hide();
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  document.addEventListener("pointermove", () => { if (!mark(document.activeElement)) hide(); });
})();
