"use strict";
// The page of a workload: one run is chosen for all charts, and each says its value there.
profkitSite.page("workload", () => {
  const site = profkitSite, make = site.make, chart = site.chart;
  const room = document.getElementById("trends"), work = site.get(document.body.dataset.workload);
  if (!work) {
    room.replaceChildren(make("p", { class: "state unknown", role: "alert" }, "The data of this page is missing beside it: copy the whole folder, or write it again."));
    return;
  }
  const BATCH = 60; // charts that are made at once: a sweep has thousands of series
  const runs = work.runs;
  work.machines = Array.from(new Set(runs.map((run) => run.machine)));
  if (!runs.length) { room.replaceChildren(make("p", null, "No run is stored.")); return; }

  // ---- the run that all charts speak of
  let pinned = runs.length - 1, shown = -1;
  const slider = make("input", { type: "range", id: "night", min: 0, max: runs.length - 1, value: pinned, disabled: runs.length < 2 });
  const facts = make("div", { class: "night-facts" });
  const legend = make("p", { class: "legend soft" });
  const button = (text, label, step) => make("button", { type: "button", "aria-label": label, onclick: () => pin(pinned + step) }, text);
  const bar = make("div", { class: "night-bar", role: "group", "aria-label": "The run that is shown" },
    make("div", { class: "night-choice" }, make("label", { for: "night" }, "Run"), button("‹", "One run earlier", -1), slider, button("›", "One run later", 1)), facts);
  slider.addEventListener("input", () => pin(Number(slider.value)));
  function pin(i) {
    pinned = Math.max(0, Math.min(runs.length - 1, i));
    slider.value = pinned;
    show(pinned);
  }
  function show(i) {
    if (i === shown) return;
    shown = i;
    const run = runs[i], words = [site.time(run.minute) + " UTC"];
    if (run.outcome) words.push(run.outcome);
    if (run.doubt) words.push("decides nothing: " + run.doubt);
    slider.setAttribute("aria-valuetext", words.join(", "));
    const parts = [make("b", null, site.time(run.minute)), make("span", { class: "soft" }, "UTC")];
    const commit = site.commit(run.commit, run.dirty);
    if (commit) parts.push(make("span", null, "commit ", commit));
    if (run.outcome) parts.push(make("span", { class: { regressed: "fail", missing: "fail", improved: "pass", invalid: "unknown", ambiguous: "unknown" }[run.outcome] || "soft" }, run.outcome));
    if (run.doubt) parts.push(make("span", { class: "unknown" }, "decides nothing: " + run.doubt));
    if (work.machines.length > 1) parts.push(make("span", { class: "soft" }, "on " + run.machine));
    if (run.link) parts.push(make("a", { href: run.link }, "the run's report"));
    const other = i < runs.length - 1 ? runs.length - 1 : Math.max(0, runs.findLastIndex((one) => one.minute <= run.minute - 30 * 1440));
    if (runs.length > 1) {
      const [from, to] = [Math.min(i, other), Math.max(i, other)].map((n) => encodeURIComponent(site.key(runs[n].moment)));
      const words = other < i ? "compare with " + site.day(runs[other].minute) : "compare with the last run";
      parts.push(make("a", { href: site.up + "compare.html#from=" + from + "&to=" + to + "&find=" + encodeURIComponent(work.name) }, words));
    }
    facts.replaceChildren(...parts.flatMap((part, n) => (n ? [" ", part] : [part])));
    for (const card of cards.values()) card.show(run);
  }

  // ---- one series
  const cards = new Map(); // by its element
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) cards.get(entry.target)?.draw();
  }, { rootMargin: "500px 0px" });
  function card(series) {
    const plot = make("div", { class: "plot-room" }), value = make("p", { class: "value" });
    const heading = make("h3", null, make("a", { href: "#s" + series.number, class: "self" }, make("code", null, series.name)), " ", series.title ? make("span", { class: "soft title" }, series.title) : "");
    const about = [];
    if (series.level !== null) about.push(make("span", null, "level now ", make("b", null, site.quantity(series.level, series))));
    if (series.level > 0 && series.before > 0) {
      const large = series.counts !== null && Math.abs(series.level / series.before - 1) >= series.counts;
      const word = large ? site.course(series.before, series.level, series.better) : "";
      about.push(make("span", { class: site.tone(word) }, site.step(series.before, series.level) + " over 30 days" + (word ? ", " + word : "")));
    }
    if (series.counts !== null) about.push(make("span", { class: "soft" }, "a change counts from " + site.percent(series.counts) + " on"));
    const one = make("figure", { class: series.gates ? "card gate" : "card", id: "s" + series.number, tabindex: "-1" },
      heading, make("p", { class: "level" }, ...about.flatMap((part, n) => (n ? ["; ", part] : [part]))), plot, value, ...below(series));
    let drawn = null, asked = false;
    const self = {
      draw(again) {
        if (asked && !again) return;
        asked = true;
        drawn = chart.draw(plot, series, work, series.gates);
        self.show(runs[shown]);
      },
      show(run) {
        const point = series.points[series.of.get(run.index) ?? -1];
        const parts = [site.day(run.minute) + ": "];
        if (!point || point.value === null) parts.push(make("span", { class: "soft" }, "no value"));
        else {
          parts.push(make("b", null, site.quantity(point.value, series)));
          if (point.low !== null) parts.push(make("span", { class: "soft" }, " (" + site.quantity(point.low, series) + " to " + site.quantity(point.high, series) + ")"));
          if (point.doubt) parts.push(make("span", { class: "unknown" }, " decides nothing: " + point.doubt));
        }
        value.replaceChildren(...parts);
        if (drawn) drawn.show(run);
      },
      redraw() { if (asked) self.draw(true); },
    };
    plot.addEventListener("pointermove", (event) => { if (drawn && event.pointerType !== "touch") show(drawn.nearest(event.clientX)); });
    plot.addEventListener("pointerleave", () => show(pinned));
    plot.addEventListener("click", (event) => { if (drawn) pin(drawn.nearest(event.clientX)); });
    cards.set(one, self);
    return one;
  }

  // ---- what is to be said of it
  function below(series) {
    const items = series.changes.map(([i, before, after]) => {
      const run = series.points[i].run, word = site.course(before, after, series.better);
      const previous = series.points.slice(0, i).reverse().find((point) => !point.doubt);
      const parts = [make("b", { class: site.tone(word) }, site.step(before, after) + (word ? " " + word : "")), " on ", choose(run), ": ",
        site.quantity(before, series) + " → " + site.quantity(after, series)];
      if (run.commit) parts.push("; commit ", site.commit(run.commit, run.dirty));
      if (previous && previous.run.commit && previous.run.commit !== run.commit) parts.push(", after ", site.commit(previous.run.commit, previous.run.dirty));
      if (previous) {
        const href = site.up + "compare.html#from=" + encodeURIComponent(site.key(previous.run.moment)) + "&to=" + encodeURIComponent(site.key(run.moment)) + "&find=" + encodeURIComponent(work.name);
        parts.push("; ", make("a", { href }, "all metrics there"));
      }
      return make("li", null, ...parts);
    }).reverse();
    for (const [i, cause, reason] of series.segments) {
      if (i > 0) items.push(make("li", null, make("span", { class: "segment-word" }, "◆ " + cause), " from ", choose(series.points[i].run), " on: ", reason));
    }
    const found = [];
    const open = items.slice(0, series.gates ? 6 : 2), folded = items.slice(open.length);
    if (open.length) found.push(make("ul", { class: "notes" }, ...open));
    if (folded.length) found.push(make("details", null, make("summary", null, site.count(folded.length, "earlier one")), make("ul", { class: "notes" }, ...folded)));
    if (series.notes.length) found.push(make("p", { class: "note" }, series.notes.join("; ") + "."));
    const table = make("details", null, make("summary", null, site.count(series.points.length, "value"), " as a table"));
    table.addEventListener("toggle", () => { if (table.open && table.children.length === 1) table.append(values(series)); });
    return [...found, table];
  }
  const choose = (run) => make("button", { type: "button", class: "date", onclick: () => pin(run.index) }, site.day(run.minute));

  function values(series) {
    const heads = ["run (UTC)", "value", "interval", "commit", "outcome", ""].map((title) => make("th", { scope: "col" }, title || make("span", { class: "hidden" }, "remark")));
    const rows = series.points.slice().reverse().map((point) => make("tr", null,
      make("th", { scope: "row", class: "nowrap" }, site.time(point.run.minute)),
      make("td", { class: "num" }, site.quantity(point.value, series)),
      make("td", { class: "num" }, point.low === null ? "-" : site.quantity(point.low, series) + " to " + site.quantity(point.high, series)),
      make("td", null, site.commit(point.run.commit, point.run.dirty)),
      make("td", null, point.run.outcome),
      make("td", null, point.doubt ? "decides nothing: " + point.doubt : "", point.run.link ? make("a", { href: point.run.link }, " report") : "")));
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Values of " + series.name }, make("table", null, make("thead", null, make("tr", null, ...heads)), make("tbody", null, ...rows)));
  }

  // ---- all of them, those that gate first; of very many as many as are asked for
  const filter = make("input", { type: "search", id: "filter", autocomplete: "off" }), changed = make("input", { type: "checkbox", id: "changed" });
  const count = make("span", { role: "status", class: "soft" });
  const tools = make("div", { class: "tools" }, make("span", { class: "pair" }, make("label", { for: "filter" }, "Metrics with"), filter),
    make("label", { for: "changed" }, changed, " only those that changed"), count);
  const sections = make("div", null);
  let most = BATCH;
  function fill() {
    const fits = site.matcher(filter.value);
    const chosen = work.series.filter((one) => fits(one.name + " " + one.title) && (!changed.checked || one.changes.length));
    cards.clear();
    watch.disconnect();
    const now = chosen.slice(0, most), parts = [];
    for (const [gates, title] of [[true, "Metrics that can fail a night"], [false, "Other metrics"]]) {
      const ours = now.filter((one) => one.gates === gates);
      if (!ours.length) continue;
      const made = ours.map(card);
      parts.push(make("section", { "aria-label": title }, make("h2", null, title), make("div", { class: gates ? "cards gates" : "cards" }, ...made)));
    }
    if (chosen.length > now.length) {
      parts.push(make("button", { type: "button", class: "more", onclick: () => { most += BATCH; fill(); } }, "Show " + Math.min(BATCH, chosen.length - now.length) + " more of " + (chosen.length - now.length)));
    }
    if (!chosen.length) parts.push(make("p", { class: "note" }, work.series.length ? "No metric is left." : "No value is stored of this workload."));
    sections.replaceChildren(...parts);
    count.textContent = chosen.length < work.series.length ? chosen.length + " of " + work.series.length : "";
    for (const one of cards.keys()) watch.observe(one);
    for (const one of cards.values()) one.show(runs[Math.max(0, shown)]);
  }
  filter.addEventListener("input", () => { most = BATCH; fill(); });
  changed.addEventListener("change", () => { most = BATCH; fill(); });

  function explain() {
    const any = (test) => work.series.some(test);
    const parts = [
      ["line", "value", true],
      ["area", "its 95 % interval", any((one) => one.points.some((point) => point.low !== null))],
      ["change", "▲▼ change point", any((one) => one.changes.length)],
      ["segment", "◆ new segment: values before and after are not compared", any((one) => one.segments.length > 1)],
      ["hollow", "decides nothing", any((one) => one.points.some((point) => point.doubt))],
    ].filter((part) => part[2]).map(([kind, word]) => key(kind, word));
    for (const outcome of chart.outcomes) {
      if (runs.some((run) => run.outcome === outcome)) parts.push(make("span", { class: "key" }, make("svg", { viewBox: "-6 -6 12 12", width: 12, height: 12, class: "chart key-mark", "aria-hidden": "true" }, chart.sign(outcome)), " night: " + outcome));
    }
    if (work.series.some((one) => one.pooled)) work.machines.forEach((name, i) => parts.push(key("line l" + ((i % 8) + 1), name)));
    legend.replaceChildren(...parts.flatMap((part) => [part, " "]));
  }
  function key(kind, word) {
    const shape = kind === "area" ? { d: "M0 2h22v8H0z" } : kind === "hollow" ? null : { d: kind === "change" || kind === "segment" ? "M11 0v12" : "M0 6h22" };
    const mark = shape ? make("path", { class: kind, ...shape }) : make("circle", { class: "dot hollow", cx: 11, cy: 6, r: 3 });
    return make("span", { class: "key" }, make("svg", { viewBox: "0 0 22 12", width: 22, height: 12, class: "chart key-mark", "aria-hidden": "true" }, mark), " " + word);
  }

  function reach() {
    const wanted = /^#s(\d+)$/.exec(location.hash), number = wanted ? Number(wanted[1]) : -1;
    if (number < 0 || number >= work.series.length) return;
    if (!document.getElementById("s" + number)) {
      filter.value = "";
      changed.checked = false;
      most = Math.max(most, number + 1);
      fill();
    }
    const one = document.getElementById("s" + number);
    one.scrollIntoView();
    one.focus({ preventScroll: true });
  }

  room.replaceChildren(bar, tools, legend, sections);
  explain();
  fill();
  show(pinned);
  reach();
  window.addEventListener("hashchange", reach);
  let wide = room.clientWidth, waiting = 0;
  new ResizeObserver(() => {
    if (room.clientWidth === wide) return;
    wide = room.clientWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { for (const one of cards.values()) one.redraw(); });
  }).observe(room);
  window.addEventListener("beforeprint", () => { for (const one of cards.values()) one.draw(); });
});
