"use strict";
// What a mark of a chart tells is shown at once where the pointer or the keyboard rests on it, or a finger touches it.
(function () {
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  let pointed = null, title = null; // the mark under the pointer, and its own words, or the browser would show them again
  function show(text, at) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    const above = at.top - box.height - 6;
    tip.style.left = Math.max(8, Math.min(at.left + at.width / 2 - box.width / 2, wide - box.width - 8)) + window.scrollX + "px";
    tip.style.top = (above > 0 ? above : at.bottom + 6) + window.scrollY + "px";
  }
  function leave() {
    if (pointed && title) pointed.prepend(title);
    pointed = title = null;
  }
  const hide = () => { leave(); tip.hidden = true; };
  const words = (mark) => Array.from(mark.children || []).find((one) => one.localName === "title");
  function marked(target) {
    const whole = target && target.closest ? target.closest(".chart, .step-bar") : null;
    if (!whole) return null;
    for (let one = target; one !== whole; one = one.parentNode) if (one === pointed || words(one)) return one;
    return null;
  }
  document.addEventListener("focusin", (event) => {
    const mark = marked(event.target);
    if (!mark) return hide();
    const own = mark === pointed ? title : words(mark);
    if (own) show(own.textContent, mark.getBoundingClientRect());
  });
  document.addEventListener("focusout", hide);

  // ---- Tab reaches the first of many marks alone, and arrow keys the others: nobody passes sixty to come to the table
  const FEW = 4;
  for (const whole of document.querySelectorAll(".chart, .step-bar > svg")) {
    const marks = Array.from(whole.querySelectorAll(":scope > [tabindex], :scope > a"));
    if (whole.classList.contains("roofline")) marks.reverse(); // drawn last is the largest
    if (marks.length <= FEW) continue;
    const enter = (place) => marks.forEach((mark, n) => mark.setAttribute("tabindex", n === place ? "0" : "-1"));
    enter(0);
    whole.addEventListener("focusin", (event) => { const place = marks.indexOf(event.target); if (place >= 0) enter(place); });
    whole.addEventListener("keydown", (event) => {
      const at = marks.indexOf(document.activeElement), last = marks.length - 1;
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      marks[Math.max(0, Math.min(last, to))].focus();
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("pointerover", (event) => {
    const mark = marked(event.target);
    if (mark && mark === pointed) return;
    if (pointed || (mark && !tip.hidden)) hide();
    if (!mark) return;
    pointed = mark;
    title = words(mark);
    show(title.textContent, { left: event.clientX, width: 0, top: event.clientY - 8, bottom: event.clientY + 18 });
    title.remove();
  });
})();
