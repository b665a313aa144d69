"use strict";
// Two points in time, and the ratio of every metric that was measured at both.
profkitSite.page("compare", async () => {
  const site = profkitSite, make = site.make, shared = site.shared;
  const room = document.getElementById("compare");
  const moments = shared.moments, BATCH = 200;
  if (moments.length < 2) {
    room.replaceChildren(make("p", null, moments.length ? "Only one point in time is stored; a comparison takes two." : "No run is stored yet."));
    return;
  }
  const keys = moments.map((_, i) => site.key(i));
  const label = (i) => {
    const [minute, commit, night, workloads] = moments[i];
    const commitName = commit < 0 ? "" : shared.commits[commit].slice(0, 10), nightName = night.includes(site.day(minute)) ? "" : night;
    return [site.time(minute), commitName, nightName, site.count(workloads, "workload")].filter(Boolean).join(" · ");
  };
  const given = new URLSearchParams(location.hash.slice(1));
  const place = (name, otherwise) => { const i = keys.indexOf(given.get(name) || ""); return i < 0 ? otherwise : i; };
  // Where nothing is said: the last one of many workloads, and the last of such 30 days before.
  const many = Math.max(...moments.map((moment) => moment[3])) / 2, end = moments.length - 1;
  const last = moments.findLastIndex((moment) => moment[3] >= many);
  let month = moments.findLastIndex((moment) => moment[3] >= many && moment[0] <= moments[last][0] - 30 * 1440);
  if (month < 0) month = moments.findIndex((moment, i) => i !== last && moment[3] >= many);
  if (month < 0) month = last ? 0 : 1;

  const choice = (id, chosen) => {
    const one = make("select", { id });
    for (let i = end; i >= 0; i--) one.append(make("option", { value: i }, label(i)));
    one.value = chosen;
    return one;
  };
  const from = choice("from", place("from", month)), to = choice("to", place("to", last));
  const filter = make("input", { type: "search", id: "filter", autocomplete: "off", value: given.get("find") || "" });
  const which = make("select", { id: "which" }, make("option", { value: "all" }, "all metrics"), make("option", { value: "gates" }, "only those that can fail a night"), make("option", { value: "large" }, "only changes that count"));
  const swap = make("button", { type: "button", onclick: () => { [from.value, to.value] = [to.value, from.value]; fill(); } }, "⇄ Swap");
  const pair = (id, text, input) => make("span", { class: "pair" }, make("label", { for: id }, text), input);
  const told = make("p", { class: "headline", role: "status" }), result = make("div", null);
  room.replaceChildren(
    make("div", { class: "tools" }, pair("from", "Before", from), swap, pair("to", "After", to)),
    make("div", { class: "tools" }, pair("filter", "Names with", filter), pair("which", "Show", which)),
    told, result);

  told.textContent = "Loading " + site.count(shared.workloads.length, "workload") + " …";
  await Promise.all(shared.workloads.map((row) => site.load(row[2])));
  const workloads = shared.workloads.map((row) => site.get(row[1])).filter(Boolean);
  const lost = shared.workloads.filter((row) => !site.get(row[1])).map((row) => row[0]);

  // Of several runs at one point in time the last one that counts; else the last.
  function at(series, moment) {
    let found = null;
    for (const point of series.points) if (point.run.moment === moment && point.value !== null && (!found || !point.doubt || found.doubt)) found = point;
    return found;
  }
  function segment(series, point) {
    const i = series.of.get(point.run.index);
    return series.segments.reduce((found, one) => (one[0] <= i ? one : found), null);
  }
  function rows() {
    const found = [];
    let missing = 0;
    for (const work of workloads) {
      for (const series of work.series) {
        const a = at(series, Number(from.value)), b = at(series, Number(to.value));
        if (!a && !b) continue;
        if (!a || !b) { missing++; continue; }
        const before = a.value, after = b.value, row = { work, series, a, b, ratio: before > 0 && after > 0 ? after / before : null };
        const begin = segment(series, b), other = begin !== segment(series, a);
        row.remark = a.doubt || b.doubt ? "decides nothing: " + (a.doubt || b.doubt) : a.run.machine !== b.run.machine ? "another machine" : other ? "another segment: " + begin[1] : "";
        row.large = row.ratio !== null && series.counts !== null && Math.abs(row.ratio - 1) >= series.counts;
        row.word = row.large ? site.course(before, after, series.better) : "";
        row.size = row.ratio === null ? 0 : Math.abs(Math.log(row.ratio));
        row.rank = row.remark ? 3 : row.word === "worse" ? 0 : row.large ? 1 : 2;
        found.push(row);
      }
    }
    found.sort((p, q) => p.rank - q.rank || Number(q.series.gates) - Number(p.series.gates) || q.size - p.size);
    return [found, missing];
  }
  let most = BATCH;
  function fill() {
    const fits = site.matcher(filter.value), [all, missing] = rows();
    const named = all.filter((row) => fits(row.work.name + " " + row.series.name + " " + row.series.title));
    const chosen = named.filter((row) => which.value === "all" || (which.value === "gates" ? row.series.gates : row.large));
    const worse = named.filter((row) => row.word === "worse" && !row.remark).length, better = named.filter((row) => row.word === "better" && !row.remark).length;
    const parts = [site.count(named.length, "metric") + ": " + worse + " worse and " + better + " better, of those that count"];
    if (missing) parts.push(site.count(missing, "metric") + " measured at one of both only");
    if (from.value === to.value) parts.push("both are the same point in time");
    if (lost.length) parts.push("not loaded: " + lost.join(", "));
    told.textContent = parts.join("; ") + ".";
    const heads = [["metric"], ["before", "num"], ["after", "num"], ["change", "num"], ["after / before", "num"], ["counts from", "num"], ["remark"]].map(([title, kind]) => make("th", { scope: "col", class: kind }, title));
    const body = chosen.slice(0, most).map((row) => make("tr", { class: row.remark || !row.large ? "quiet" : null },
      make("th", { scope: "row", class: "name" }, make("a", { href: "workload/" + row.work.id + ".html#s" + row.series.number }, make("b", null, row.work.name), " " + row.series.name), row.series.gates ? make("span", { class: "mark" }, "gates") : ""),
      make("td", { class: "num", "data-is": "before" }, site.quantity(row.a.value, row.series)),
      make("td", { class: "num", "data-is": "after" }, site.quantity(row.b.value, row.series)),
      make("td", { class: "num" }, make("span", { class: site.tone(row.remark ? "" : row.word) }, row.a.value === row.b.value ? "the same" : site.step(row.a.value, row.b.value), row.word && !row.remark ? " " + row.word : "")),
      make("td", { class: "num", "data-is": "ratio" }, row.ratio === null ? "-" : site.figures(row.ratio, 4)),
      make("td", { class: "num soft", "data-is": "counts from" }, row.series.counts === null ? "-" : site.percent(row.series.counts)),
      make("td", { class: "why" }, row.remark || (row.series.counts === null ? "the noise is not known" : ""))));
    const table = make("table", { class: "compare" }, make("caption", { class: "hidden" }, "Metrics before and after"), make("thead", null, make("tr", null, ...heads)), make("tbody", null, ...body));
    const links = [Number(from.value), Number(to.value)].map((i) => moments[i][1]).map((commit) => (commit < 0 ? null : site.commit(shared.commits[commit])));
    const head = links[0] && links[1] ? make("p", null, "commit ", links[0], " → ", links[1]) : "";
    result.replaceChildren(head, chosen.length ? make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Comparison" }, table) : make("p", { class: "note" }, "No metric is left."));
    if (chosen.length > most) result.append(make("button", { type: "button", class: "more", onclick: () => { most += BATCH; fill(); } }, "Show " + Math.min(BATCH, chosen.length - most) + " more of " + (chosen.length - most)));
    const address = new URLSearchParams({ from: keys[from.value], to: keys[to.value] });
    if (filter.value) address.set("find", filter.value);
    history.replaceState(null, "", "#" + address);
  }
  for (const one of [from, to, which]) one.addEventListener("change", () => { most = BATCH; fill(); });
  filter.addEventListener("input", () => { most = BATCH; fill(); });
  window.addEventListener("hashchange", () => location.reload());
  fill();
});
