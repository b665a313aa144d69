"use strict";
// Timelines: draws lanes of marks from numbers, zooms, searches; every mark is reached by arrow keys.
(function () {
  const island = document.getElementById("timeline-data");
  if (!island) return;
  const AXIS = 24, BAR = 16, GUTTER = 190, NARROW = 620, LEAST = 20, STRIP = 18, LETTER = 6.2; // px, but LEAST: ns

  function duration(ns) {
    const [unit, size] = ns < 1e3 ? ["ns", 1] : ns < 1e6 ? ["µs", 1e3] : ns < 1e9 ? ["ms", 1e6] : ["s", 1e9];
    const value = ns / size;
    return (value >= 100 || size === 1 ? Math.round(value) : Number(value.toPrecision(3))) + " " + unit;
  }
  const percent = (share) => (100 * share >= 0.95 ? (100 * share).toFixed(1) : Number((100 * share).toPrecision(2))) + " %";

  function unpack(lane) {
    let at = 0;
    lane.start = Float64Array.from(lane.s, (step) => (at += step));
    lane.end = Float64Array.from(lane.d, (length, n) => lane.start[n] + length);
    lane.longest = lane.d.reduce((most, length) => Math.max(most, length), 0);
    return lane;
  }
  // The first mark that may reach beyond a time: those before it end sooner.
  function firstAt(lane, time) {
    let low = 0, high = lane.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.start[middle] < time - lane.longest) low = middle + 1; else high = middle;
    }
    return low;
  }

  function timeline(box, data) {
    const find = (selector) => box.querySelector(selector);
    const canvas = find(".timeline-canvas"), strip = find(".timeline-strip"), told = find(".timeline-told"), search = find("input");
    const pen = canvas.getContext("2d"), lanes = data.lanes.map(unpack), texts = data.texts;
    const labels = data.labels.map(([kind, title, detail]) => ({ kind, title: texts[title], detail: texts[detail] }));
    const tip = document.createElement("div");
    tip.className = "timeline-tip";
    tip.hidden = true;
    document.body.append(tip);
    let from = 0, to = data.span, focused = null, found = null, colours = {}, waiting = false;

    // ---- how it looks
    function readColours() {
      const style = getComputedStyle(box), of = (name) => style.getPropertyValue(name).trim();
      colours = { ink: of("--ink"), soft: of("--soft"), paper: of("--paper"), track: of("--raised"), line: of("--line"), busy: of("--mark"), sans: of("--sans") };
      colours.kinds = data.kinds.map(({ id }) => of("--k-" + id) || colours.soft);
      for (const one of box.querySelectorAll(".timeline-key i")) one.style.background = of("--k-" + one.dataset.kind);
    }
    function room() {
      const wide = canvas.clientWidth, narrow = wide < NARROW, left = narrow ? 0 : GUTTER;
      return { wide, narrow, left, row: narrow ? BAR + 20 : BAR + 6, above: narrow ? 15 : 3, across: Math.max(1, wide - left) };
    }
    function sized(one, context, wide, high) {
      const scale = window.devicePixelRatio || 1;
      if (one.width !== Math.round(wide * scale) || one.height !== Math.round(high * scale)) {
        one.width = Math.round(wide * scale);
        one.height = Math.round(high * scale);
        one.style.height = high + "px";
      }
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, wide, high);
      context.font = "12px " + colours.sans;
      context.textBaseline = "middle";
    }
    function fitted(text, wide) {
      const letters = Math.floor(wide / LETTER);
      return text.length <= letters ? text : letters < 3 ? "" : text.slice(0, letters - 1) + "…";
    }

    // ---- drawing
    function draw() {
      waiting = false;
      const at = room();
      if (!at.wide) return;
      sized(canvas, pen, at.wide, AXIS + lanes.length * at.row + 4);
      axis(at);
      lanes.forEach((lane, n) => {
        const y = AXIS + n * at.row;
        pen.fillStyle = colours.ink;
        pen.fillText(fitted(lane.name, at.narrow ? at.wide - 8 : at.left - 10), 4, at.narrow ? y + 8 : y + at.above + BAR / 2);
        pen.fillStyle = colours.track;
        pen.fillRect(at.left, y + at.above, at.across, BAR);
        marks(lane, y + at.above, at);
      });
      if (focused) outline(at);
      drawStrip();
      find("[data-do=all]").disabled = from === 0 && to === data.span;
    }
    const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
    const place = (time, at) => at.left + ((time - from) / (to - from)) * at.across;
    function edges(lane, n, at) { // in px, cut to what is shown; at least one wide
      const left = Math.max(at.left, place(lane.start[n], at)), right = Math.min(at.wide, place(lane.end[n], at));
      return [left, Math.max(1, right - left)];
    }
    function marks(lane, y, at) {
      let column = -1, longest = 0;
      for (let n = firstAt(lane, from); n < lane.start.length && lane.start[n] < to; n++) {
        if (lane.end[n] < from) continue;
        const label = labels[lane.l[n]], kind = data.kinds[label.kind], length = lane.end[n] - lane.start[n];
        const [left, wide] = edges(lane, n, at);
        if (wide <= 1) { // of what shares a column of pixels the longest is seen
          if (Math.floor(left) === column && length <= longest) continue;
          column = Math.floor(left);
          longest = length;
        }
        const high = kind.low ? BAR / 2 : BAR, top = y + BAR - high;
        pen.globalAlpha = found && !found[lane.l[n]] ? 0.2 : 1;
        pen.fillStyle = colours.kinds[label.kind];
        pen.fillRect(left, top, wide > 3 ? wide - 0.5 : wide, high);
        if (wide > 34 && !kind.low) {
          pen.fillStyle = colours.paper;
          pen.fillText(fitted(label.title, wide - 8), left + 4, y + BAR / 2 + 0.5);
        }
      }
      pen.globalAlpha = 1;
    }
    function axis(at) {
      const span = to - from, least = (span / at.across) * 90; // px between two
      const power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= least);
      pen.strokeStyle = colours.line;
      pen.fillStyle = colours.soft;
      for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
        const x = place(time, at);
        pen.beginPath();
        pen.moveTo(x, AXIS - 6);
        pen.lineTo(x, AXIS + lanes.length * at.row);
        pen.stroke();
        const words = time === 0 ? "0" : duration(time);
        if (x + words.length * LETTER < at.wide) pen.fillText(words, x + 3, AXIS / 2 - 2);
      }
    }
    function outline(at) {
      const lane = lanes[focused.lane], [left, wide] = edges(lane, focused.mark, at), y = AXIS + focused.lane * at.row + at.above;
      if (lane.start[focused.mark] > to || lane.end[focused.mark] < from) return;
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 2;
      pen.strokeRect(left - 1, y - 1, wide + 2, BAR + 2);
      pen.lineWidth = 1;
    }
    function drawStrip() {
      const rows = data.strip, at = room();
      if (!rows.length) return;
      const context = strip.getContext("2d"), line = STRIP + (at.narrow ? 14 : 3);
      sized(strip, context, at.wide, rows.length * line + 4);
      const begin = data.threads ? from : data.begin, end = data.threads ? to : data.begin + data.span;
      rows.forEach((row, n) => {
        const y = n * line + (at.narrow ? 14 : 0), wide = at.across / row.v.length;
        context.fillStyle = colours.soft;
        context.fillText(fitted(row.name, at.narrow ? at.wide - 8 : at.left - 10), 4, at.narrow ? y - 6 : y + STRIP / 2);
        context.fillStyle = colours.track;
        context.fillRect(at.left, y, at.across, STRIP);
        context.fillStyle = colours.busy;
        row.v.forEach((share, bin) => { if (share) context.fillRect(at.left + bin * wide, y + STRIP * (1 - share / 100), wide, (STRIP * share) / 100); });
      });
      const left = at.left + (begin / data.whole) * at.across, wide = Math.max(2, ((end - begin) / data.whole) * at.across);
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      context.strokeRect(Math.min(left, at.wide - 3), 1, wide, rows.length * line + 1);
      context.lineWidth = 1;
    }

    // ---- words
    function words(lane, n) {
      const label = labels[lane.l[n]], length = lane.end[n] - lane.start[n], count = lane.c ? lane.c[n] : 1;
      const many = count > 1 ? count.toLocaleString("en") + " marks in " + duration(length) + ", " + duration(lane.b[n]) + " of it busy; the longest: " : "";
      const what = many + label.title + (count > 1 ? "" : ": " + duration(length) + ", " + percent(length / data.span));
      const when = lane.name + ", from " + duration(lane.start[n]) + " on";
      return [what, label.detail, when].filter(Boolean).join("\n");
    }
    function whole() {
      if (!found) { told.textContent = from === 0 && to === data.span ? "" : duration(to - from) + " of " + duration(data.span) + ", from " + duration(from) + " on"; return; }
      let count = 0, time = 0;
      for (const lane of lanes) lane.l.forEach((label, n) => { if (found[label]) { count += lane.c ? lane.c[n] : 1; time += lane.b ? lane.b[n] : lane.end[n] - lane.start[n]; } });
      told.textContent = count ? "found " + count.toLocaleString("en") + (count === 1 ? " mark, " : " marks, ") + duration(time) + " together; Enter: the next one" : "nothing is called like that";
    }

    // ---- moving about
    function show(begin, end) {
      const least = Math.min(data.span, LEAST), span = Math.min(data.span, Math.max(least, end - begin));
      from = Math.min(Math.max(0, begin), data.span - span);
      to = from + span;
      later();
    }
    function zoom(factor, time) { show(time - (time - from) * factor, time + (to - time) * factor); if (!focused) whole(); }
    const middle = () => (focused ? Math.min(to, Math.max(from, (lanes[focused.lane].start[focused.mark] + lanes[focused.lane].end[focused.mark]) / 2)) : (from + to) / 2);
    function focusOn(lane, mark) {
      focused = { lane, mark };
      const begin = lanes[lane].start[mark], end = lanes[lane].end[mark], span = to - from;
      if (end < from || begin > to) show((begin + end) / 2 - span / 2, (begin + end) / 2 + span / 2); else later();
      told.textContent = words(lanes[lane], mark);
      const at = room(), y = AXIS + lane * at.row, view = canvas.parentElement;
      if (y < view.scrollTop) view.scrollTop = y - AXIS; else if (y + at.row > view.scrollTop + view.clientHeight) view.scrollTop = y + at.row - view.clientHeight;
    }
    function nearest(lane, time) { // the mark at a time, else the one next to it
      let best = -1, distance = Infinity;
      for (let n = firstAt(lane, time); n < lane.start.length; n++) {
        const away = Math.max(lane.start[n] - time, time - lane.end[n], 0);
        if (away < distance) { distance = away; best = n; }
        if (lane.start[n] > time) break;
      }
      return best >= 0 ? best : lane.start.length - 1;
    }
    function beside(step) {
      if (!focused) return focusOn(0, nearest(lanes[0], from));
      const mark = focused.mark + step;
      if (mark >= 0 && mark < lanes[focused.lane].start.length) focusOn(focused.lane, mark);
    }
    function otherLane(step) {
      if (!focused) return beside(0);
      const lane = focused.lane + step;
      if (lane >= 0 && lane < lanes.length) focusOn(lane, nearest(lanes[lane], middle()));
    }
    function nextFound() {
      if (!found) return;
      const every = [];
      lanes.forEach((lane, l) => lane.l.forEach((label, n) => { if (found[label]) every.push([lane.start[n], l, n]); }));
      every.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      if (!every.length) return;
      const now = focused ? every.findIndex(([, l, n]) => l === focused.lane && n === focused.mark) : -1;
      const [, lane, mark] = every[(now + 1) % every.length];
      focusOn(lane, mark);
    }
    function alone() {
      if (!focused) return;
      const begin = lanes[focused.lane].start[focused.mark], length = Math.max(LEAST, lanes[focused.lane].end[focused.mark] - begin);
      show(begin - 0.1 * length, begin + 1.1 * length);
    }
    function all() { focused = null; show(0, data.span); told.textContent = ""; whole(); }

    // ---- the pointer
    function under(event) {
      const box = canvas.getBoundingClientRect(), at = room(), x = event.clientX - box.left, y = event.clientY - box.top - AXIS;
      const n = Math.floor(y / at.row), time = from + ((x - at.left) / at.across) * (to - from);
      if (y < 0 || n >= lanes.length || x < at.left) return { time };
      const lane = lanes[n], mark = nearest(lane, time);
      if (mark < 0) return { time };
      const [left, wide] = edges(lane, mark, at);
      return x >= left - 2 && x <= left + wide + 2 ? { time, lane: n, mark } : { time };
    }
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from, to, moved: false }; canvas.setPointerCapture(event.pointerId); tip.hidden = true; });
    canvas.addEventListener("pointermove", (event) => {
      if (drag && event.buttons) {
        const by = ((event.clientX - drag.x) / room().across) * (drag.to - drag.from);
        drag.moved = drag.moved || Math.abs(event.clientX - drag.x) > 3;
        if (drag.moved) show(drag.from - by, drag.to - by);
        return;
      }
      const on = under(event);
      tip.hidden = on.mark === undefined;
      if (tip.hidden) return;
      tip.textContent = words(lanes[on.lane], on.mark);
      const size = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
      tip.style.left = Math.max(8, Math.min(event.clientX + 12, wide - size.width - 8)) + "px";
      tip.style.top = (event.clientY + 18 + size.height < window.innerHeight ? event.clientY + 18 : event.clientY - size.height - 10) + "px";
    });
    canvas.addEventListener("pointerup", (event) => {
      const on = drag && !drag.moved ? under(event) : {};
      drag = null;
      if (on.mark !== undefined) focusOn(on.lane, on.mark);
    });
    for (const name of ["pointerleave", "pointercancel"]) canvas.addEventListener(name, () => { drag = null; tip.hidden = true; });
    canvas.addEventListener("dblclick", alone);
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      tip.hidden = true;
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        const by = ((event.deltaX || event.deltaY) / room().across) * (to - from);
        show(from + by, to + by);
      } else zoom(1.0015 ** Math.max(-400, Math.min(400, event.deltaY)), under(event).time);
    }, { passive: false });
    strip.addEventListener("click", (event) => {
      if (!data.threads) return;
      const at = room(), time = ((event.clientX - strip.getBoundingClientRect().left - at.left) / at.across) * data.whole, half = (to - from) / 2;
      show(time - half, time + half);
    });

    // ---- the keyboard
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = (to - from) / 4, last = () => (focused ? lanes[focused.lane].start.length - 1 : 0);
      const act = {
        ArrowLeft: () => (event.shiftKey ? show(from - step, to - step) : beside(-1)),
        ArrowRight: () => (event.shiftKey ? show(from + step, to + step) : beside(1)),
        ArrowUp: () => otherLane(-1), ArrowDown: () => otherLane(1),
        Home: () => focusOn(focused ? focused.lane : 0, 0), End: () => focusOn(focused ? focused.lane : 0, last()),
        "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()), Enter: alone, Escape: all,
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    for (const [what, act] of [["in", () => zoom(0.5, middle())], ["out", () => zoom(2, middle())], ["all", all]]) {
      find("[data-do=" + what + "]").addEventListener("click", act);
    }
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      found = wanted === "" ? null : labels.map((label) => (label.title + "\n" + label.detail).toLowerCase().includes(wanted));
      focused = null;
      whole();
      later();
    });
    search.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); nextFound(); } });

    // ---- when it is drawn again
    for (const one of box.querySelectorAll(".timeline-tools, canvas")) one.hidden = one === strip && !data.strip.length;
    const again = () => { readColours(); draw(); };
    new ResizeObserver(later).observe(canvas.parentElement);
    new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    window.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
    window.addEventListener("beforeprint", () => { all(); again(); });
    window.addEventListener("afterprint", again);
    again();
  }

  const every = JSON.parse(island.textContent);
  document.querySelectorAll(".timeline-box").forEach((box, n) => { if (every[n]) timeline(box, every[n]); });
})();
