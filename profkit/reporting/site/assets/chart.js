"use strict";
// One series as a chart: a line for each machine in each segment, its interval, where it changed, nights that do not count.
profkitSite.chart = (function () {
  const site = profkitSite, make = site.make;
  const LETTER = 6.7, ROW = 15; // pixels: the width of a letter at 12 px, and a line of them
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const DAY = 1440;

  function ticks(low, high, most) {
    const power = 10 ** Math.floor(Math.log10((high - low) / most));
    const step = [1, 2, 5, 10, 20].map((n) => n * power).find((s) => (high - low) / s <= most);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) {
      const text = (n * step).toFixed(Math.min(20, digits));
      found.push([n * step, text.length < 10 ? text : (n * step).toPrecision(5)]);
    }
    return found;
  }

  function dates(first, last, most) {
    const found = [], days = (last - first) / DAY;
    const hours = [1, 2, 3, 6, 12].find((n) => (days * 24) / n <= most);
    const whole = [1, 2, 7, 14].find((n) => days / n <= most);
    if (hours || whole) {
      const step = hours ? hours * 60 : whole * DAY;
      for (let t = Math.ceil(first / step) * step; t <= last; t += step) {
        const date = new Date(60000 * t);
        const midnight = t % DAY === 0;
        found.push([t, hours && !midnight ? date.toISOString().slice(11, 16) : date.getUTCDate() + " " + MONTHS[date.getUTCMonth()]]);
      }
      return found;
    }
    const step = [1, 2, 3, 6, 12, 24, 60, 120, 1200].find((n) => days / 30.5 / n <= most) || 12000;
    const date = new Date(60000 * first);
    let month = date.getUTCFullYear() * 12 + date.getUTCMonth() + 1;
    month += (step - (month % step)) % step;
    for (; ; month += step) {
      const t = Date.UTC(Math.floor(month / 12), month % 12, 1) / 60000;
      if (!(t <= last)) return found;
      const year = Math.floor(month / 12);
      found.push([t, month % 12 === 0 ? String(year) : MONTHS[month % 12] + (found.length ? "" : " " + year)]);
    }
  }

  const number = (x) => Math.round(10 * x) / 10;
  const line = (places) => "M" + places.map(([x, y]) => number(x) + " " + number(y)).join("L");

  // Stretches of valid neighbours: of one segment and one machine, and cut where a run has no value at all.
  function stretches(series, runs) {
    const found = [], open = new Map();
    let segment = -1, begin = 0;
    const gaps = [0];
    runs.forEach((run, i) => gaps.push(gaps[i] + (series.of.has(run.index) ? 0 : 1)));
    series.points.forEach((point, i) => {
      while (begin < series.segments.length && series.segments[begin][0] <= i) { segment = begin++; open.clear(); }
      if (point.value === null || point.doubt) return;
      const machine = point.run.machine, last = open.get(machine);
      const missed = last ? gaps[point.run.index] - gaps[last[last.length - 1].run.index] : 0;
      if (last && !missed) { last.push(point); return; }
      const piece = [point];
      piece.machine = machine;
      piece.segment = segment;
      open.set(machine, piece);
      found.push(piece);
    });
    return found;
  }

  const TONES = { regressed: "fail", missing: "fail", invalid: "unknown", ambiguous: "unknown", improved: "pass" };
  const SHAPES = { regressed: "M-4 4L0-4L4 4z", missing: "M-4-4L4 4M4-4L-4 4", invalid: "M-4-4L4 4M4-4L-4 4", ambiguous: "M-3-3h6v6h-6z", improved: "M-4-4L0 4L4-4z" };
  const sign = (outcome) => make("path", { d: SHAPES[outcome], class: "outcome " + TONES[outcome] });

  function draw(room, series, work, outcomes) {
    const wide = Math.max(240, room.clientWidth), high = room.clientHeight || 160;
    const points = series.points.filter((point) => point.value !== null);
    const svg = make("svg", { class: "chart plot", viewBox: "0 0 " + wide + " " + high, width: wide, height: high, role: "img", "aria-label": told(series) });
    if (!points.length) {
      svg.append(make("text", { x: 2, y: 30, class: "note" }, "No value."));
      room.replaceChildren(svg);
      return null;
    }
    const counted = points.filter((point) => !point.doubt), seen = counted.length ? counted : points;
    let low = Infinity, top = -Infinity;
    for (const point of seen) { low = Math.min(low, point.value); top = Math.max(top, point.value); }
    const reach = top - low || Math.abs(top) || 1; // an interval that reaches further than the values is cut
    const [least, most] = [low - reach, top + reach];
    for (const point of seen) if (point.low !== null) { low = Math.min(low, Math.max(least, point.low)); top = Math.max(top, Math.min(most, point.high)); }
    const space = top - low <= 1e-5 * Math.abs(top) ? 0.05 * Math.abs(top) || 1 : 0.06 * (top - low);
    const bottom = low >= 0 ? Math.max(0, low - space) : low - space, ceiling = top + space;
    const marks = ticks(bottom / series.factor, ceiling / series.factor, high > 180 ? 5 : 3);
    const left = 10 + LETTER * Math.max(...marks.map(([, label]) => label.length)), right = wide - 10;
    const head = ROW + 8, foot = high - ROW - 8 - (outcomes ? 10 : 0);
    const times = work.runs.map((run) => run.minute), first = times[0], last = times[times.length - 1];
    const x = (minute) => (last > first ? left + 6 + ((right - left - 12) * (minute - first)) / (last - first) : (left + right) / 2);
    const y = (value) => foot - ((foot - head) * (Math.min(ceiling, Math.max(bottom, value)) - bottom)) / (ceiling - bottom);

    for (const [value, label] of marks) {
      const at = number(y(value * series.factor));
      svg.append(make("path", { class: "grid", d: "M" + left + " " + at + "H" + right }), make("text", { class: "e", x: left - 5, y: at + 4 }, label));
    }
    svg.append(make("path", { class: "axis", d: "M" + left + " " + foot + "H" + right }));
    let free = 0;
    const named = last > first ? dates(first, last, wide / 90) : [[first, site.day(first)]];
    for (const [minute, label] of named) {
      const at = number(x(minute)), half = (label.length * LETTER) / 2;
      if (at - half < free || at + half > wide) continue;
      free = at + half + 8;
      svg.append(make("path", { class: "axis", d: "M" + at + " " + foot + "v4" }), make("text", { class: "m", x: at, y: high - 5 }, label));
    }

    const machines = work.machines, place = (point) => [x(point.run.minute), y(point.value)];
    const pieces = stretches(series, work.runs);
    for (const piece of pieces) {
      const known = piece.filter((point) => point.low !== null);
      if (known.length === piece.length && piece.length > 1) {
        const each = Math.ceil(known.length / Math.max(60, wide / 4)), upper = [], lower = [];
        for (let i = 0; i < known.length; i += each) {
          const group = known.slice(i, i + each), at = x(group[group.length >> 1].run.minute);
          upper.push([at, y(Math.max(...group.map((p) => p.high)))]);
          lower.push([at, y(Math.min(...group.map((p) => p.low)))]);
        }
        svg.append(make("path", { class: "area", d: line(upper.concat(lower.reverse())) + "z" }));
      }
    }
    for (const piece of pieces) {
      const which = series.pooled ? " l" + ((machines.indexOf(piece.machine) % 8) + 1) : "";
      if (piece.length > 1) svg.append(make("path", { class: "line" + which, d: line(piece.map(place)) }));
      else { const [cx, cy] = place(piece[0]); svg.append(make("circle", { class: "dot", cx, cy, r: 2.5 })); }
    }
    for (const point of points) if (point.doubt) { const [cx, cy] = place(point); svg.append(make("circle", { class: "dot hollow", cx, cy, r: 2.5 })); }

    const unit = series.unit;
    if (unit) svg.append(make("text", { class: "note", x: 2, y: head - 11 }, unit));
    const between = (i) => (x(series.points[i].run.minute) + x(series.points[Math.max(0, i - 1)].run.minute)) / 2;
    const events = series.changes.map(([i, before, after]) => [between(i), "change", site.step(before, after)]);
    for (const [i, cause] of series.segments) if (i > 0) events.push([between(i), "segment", "◆ " + cause]);
    const taken = unit ? [[0, unit.length * LETTER + 6]] : [];
    for (const [at, kind, word] of events) {
      svg.append(make("path", { class: kind, d: "M" + number(at) + " " + head + "V" + foot }));
      const half = (word.length * LETTER) / 2 + 2, middle = Math.min(wide - half, Math.max(half, at));
      if (taken.some(([from, to]) => middle + half > from && middle - half < to)) continue;
      taken.push([middle - half, middle + half]);
      svg.append(make("text", { class: kind + " m", x: number(middle), y: head - 6 }, word));
    }
    if (outcomes) {
      for (const run of work.runs) {
        if (!SHAPES[run.outcome]) continue;
        const mark = sign(run.outcome);
        mark.setAttribute("transform", "translate(" + number(x(run.minute)) + " " + (foot + 8) + ")");
        svg.append(mark);
      }
    }
    const cursor = make("path", { class: "cursor" }), dot = make("circle", { class: "cursor-dot", r: 4, visibility: "hidden" });
    svg.append(cursor, dot);
    room.replaceChildren(svg);

    const order = points.map((point) => [x(point.run.minute), point.run.index]);
    return {
      show(run) {
        const point = series.points[series.of.get(run.index) ?? -1], at = number(x(run.minute));
        cursor.setAttribute("d", "M" + at + " " + head + "V" + foot);
        const there = point && point.value !== null;
        dot.setAttribute("visibility", there ? "visible" : "hidden");
        if (there) { dot.setAttribute("cx", at); dot.setAttribute("cy", number(y(point.value))); }
      },
      nearest(clientX) {
        const box = svg.getBoundingClientRect(), goal = ((clientX - box.left) * wide) / box.width;
        let from = 0, to = order.length - 1;
        while (to - from > 1) { const half = (from + to) >> 1; if (order[half][0] < goal) from = half; else to = half; }
        return order[Math.abs(order[from][0] - goal) <= Math.abs(order[to][0] - goal) ? from : to][1];
      },
    };
  }

  function told(series) {
    const known = series.points.filter((point) => point.value !== null), parts = [];
    if (!known.length) return series.name + ": no value";
    const last = known[known.length - 1];
    parts.push(series.name + ": " + site.count(known.length, "value") + " from " + site.day(known[0].run.minute) + " to " + site.day(last.run.minute));
    parts.push("the last is " + site.quantity(last.value, series));
    const hollow = known.filter((point) => point.doubt).length;
    if (hollow) parts.push(hollow + " of them decide nothing");
    for (const [i, before, after] of series.changes.slice(-5)) {
      parts.push("changed from " + site.quantity(before, series) + " to " + site.quantity(after, series) + " on " + site.day(series.points[i].run.minute));
    }
    return parts.join("; ") + ".";
  }
  return { draw, sign, outcomes: Object.keys(SHAPES) };
})();
