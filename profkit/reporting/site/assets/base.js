"use strict";
// What all pages share: the data as it was written, numbers and dates as people read them, and the search.
window.profkitSite = (function () {
  const site = { shared: null, up: document.body.dataset.up };
  const written = new Map(), decoded = new Map(), loading = new Map(); // by id, by id, by file
  site.share = (data) => { site.shared = data; };
  site.workload = (data) => { written.set(data.id, data); };
  // A file may hold several workloads, of which a page shows one: each is decoded where it is asked for.
  site.get = (id) => {
    if (!decoded.has(id) && written.has(id)) decoded.set(id, decode(written.get(id)));
    return decoded.get(id);
  };

  // ---- elements: a text is only ever a text
  site.make = (name, attributes, ...children) => {
    const svg = /^(svg|g|path|line|rect|circle|text|title)$/.test(name);
    const one = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) one.addEventListener(key.slice(2), value);
      else one.setAttribute(key, value === true ? "" : value);
    }
    one.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return one;
  };

  // ---- what was written
  const at = (column, i) => (Array.isArray(column) ? column[i] : column);
  function decode(data) {
    const runs = data.runs, moments = site.shared.moments, list = [];
    let moment = 0;
    for (let i = 0; i < runs.count; i++) {
      moment = Array.isArray(runs.at) ? moment + runs.at[i] : runs.at.from + i * runs.at.step;
      const commit = runs.c === undefined ? moments[moment][1] : at(runs.c, i);
      const links = runs.l, outcome = at(runs.o, i);
      list.push({
        index: i,
        moment,
        minute: moments[moment][0] + at(runs.m, i),
        commit: commit < 0 ? "" : site.shared.commits[commit],
        dirty: Boolean(runs.d && at(runs.d, i)),
        machine: site.shared.machines[at(runs.k, i)],
        outcome: outcome < 0 ? "" : site.shared.outcomes[outcome],
        doubt: runs.x && String(i) in runs.x ? data.reasons[runs.x[i]] : "",
        link: links && links[2][i] !== null ? links[0] + links[2][i] + links[1] : "",
      });
    }
    const series = data.series.map((one, number) => {
      const row = one.row < 0 ? null : data.rows[one.row];
      const scale = (n) => (n === null || n === undefined || one.e === null ? (n ?? null) : one.e < 0 ? n / 10 ** -one.e : n * 10 ** one.e);
      const points = one.v.map((n, i) => ({
        run: list[row ? row[i] : i],
        value: scale(n),
        low: one.lo && one.lo[i] !== null ? scale(n - one.lo[i]) : null,
        high: one.hi && one.hi[i] !== null ? scale(n + one.hi[i]) : null,
        doubt: one.x && String(i) in one.x ? data.reasons[one.x[i]] : "",
      }));
      // Machines that take turns share a segment: only there a line needs to say whose it is.
      const machines = new Map();
      let pooled = false, segment = 0;
      points.forEach((point, i) => {
        while (segment + 1 < one.seg.length && one.seg[segment + 1][0] <= i) segment++;
        if (point.value === null || point.doubt) return;
        if (!machines.has(segment)) machines.set(segment, point.run.machine);
        pooled = pooled || machines.get(segment) !== point.run.machine;
      });
      const of = new Map(points.map((point, i) => [point.run.index, i]));
      return {
        number, points, of, pooled, name: one.n, title: one.t, unit: one.u[0], factor: one.u[1], better: one.b, gates: Boolean(one.g),
        segments: one.seg, changes: one.ch || [], notes: one.notes || [],
        level: one.level ?? null, before: one.before ?? null, counts: one.counts ?? null,
      };
    });
    return { id: data.id, name: data.name, runs: list, series };
  }
  site.load = (file) => {
    if (!loading.has(file)) {
      loading.set(file, new Promise((done) => {
        document.body.append(site.make("script", { src: site.up + file, onload: () => done(true), onerror: () => done(false) }));
      }));
    }
    return loading.get(file);
  };

  // ---- numbers and dates
  site.figures = (value, count) => {
    if (value === 0) return "0";
    const digits = count - 1 - Math.floor(Math.log10(Math.abs(value)));
    return digits > 9 || digits < -9 ? value.toExponential(count - 1) : value.toFixed(Math.max(0, digits));
  };
  site.quantity = (value, series) => {
    if (value === null) return "-";
    return (site.figures(value / series.factor, 4) + "\u00a0" + series.unit).trim();
  };
  site.percent = (share) => {
    const size = Math.abs(100 * share);
    return (size === 0 || size >= 0.95 ? size.toFixed(1) : size >= 0.0095 ? size.toFixed(2) : "<0.01") + "\u00a0%";
  };
  site.by = (ratio) => (ratio >= 11 ? "× " + site.figures(ratio, 3) : site.percent(ratio - 1));
  site.step = (before, after) => {
    const sign = after > before ? "▲" : "▼";
    return before > 0 && after >= 0 ? sign + " " + site.by(after / before) : sign;
  };
  site.course = (before, after, better) => {
    if (better === "none" || before === after) return "";
    return after > before === (better === "lower") ? "worse" : "better";
  };
  site.tone = (word) => ({ worse: "fail", better: "pass" })[word] || "soft";
  site.day = (minute) => new Date(60000 * minute).toISOString().slice(0, 10);
  site.time = (minute) => new Date(60000 * minute).toISOString().slice(0, 16).replace("T", " ");
  site.count = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");

  // ---- a commit, as a link where it was said where commits are looked at
  site.commit = (commit, dirty) => {
    if (!commit) return null;
    const short = site.make("code", null, commit.slice(0, 10) + (dirty ? "+" : ""));
    if (!site.shared.commit) return short;
    const href = site.shared.commit.replaceAll("{commit}", () => encodeURIComponent(commit));
    return site.make("a", { href, rel: "noreferrer" }, short);
  };
  // ---- a point in time by a name that stays the same when there are more of them
  site.key = (moment) => {
    const [minute, commit, night] = site.shared.moments[moment];
    return night || site.day(minute) + (commit < 0 ? "" : "_" + site.shared.commits[commit].slice(0, 12));
  };

  // ---- every word must be there, in any order
  site.matcher = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return (name) => { const low = name.toLowerCase(); return words.every((word) => low.includes(word)); };
  };
  const MOST = 20;
  function search() {
    const box = document.querySelector(".find"), input = document.getElementById("find"), list = document.getElementById("found");
    const status = document.getElementById("find-count");
    box.hidden = false;
    function look() {
      const text = input.value.trim(), fits = site.matcher(text), found = [];
      let more = 0;
      if (text) {
        const rows = site.shared.workloads;
        for (const row of rows) if (fits(row[0])) found.push([row, -1]);
        for (const row of rows) {
          row[3].forEach((name, i) => {
            if (!fits(row[0] + " " + name)) return;
            if (found.length < MOST) found.push([row, i]); else more++;
          });
        }
      }
      more += Math.max(0, found.length - MOST);
      list.replaceChildren(...found.slice(0, MOST).map(([row, i]) => {
        const href = site.up + "workload/" + row[1] + ".html" + (i < 0 ? "" : "#s" + i);
        return site.make("li", null, site.make("a", { href }, site.make("b", null, row[0]), i < 0 ? "" : " " + row[3][i]));
      }));
      if (more) list.append(site.make("li", { class: "soft" }, "and " + more + " more"));
      if (text && !found.length) list.append(site.make("li", { class: "soft" }, "Nothing has such a name."));
      list.hidden = !text;
      status.textContent = text ? site.count(found.length + more, "match", "matches") : "";
      document.dispatchEvent(new CustomEvent("find", { detail: text }));
    }
    const close = () => { list.hidden = true; };
    input.addEventListener("input", look);
    input.addEventListener("focus", () => { if (input.value.trim()) list.hidden = false; });
    box.addEventListener("focusout", (event) => { if (!box.contains(event.relatedTarget)) close(); });
    box.addEventListener("keydown", (event) => {
      const links = Array.from(list.querySelectorAll("a")), now = links.indexOf(document.activeElement);
      if (event.key === "Escape") { close(); input.focus(); close(); return; }
      if (event.key === "Enter" && document.activeElement === input && links.length && !list.hidden) { links[0].click(); return; }
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || list.hidden || !links.length) return;
      event.preventDefault();
      const next = now + step;
      (next < 0 ? input : links[Math.min(next, links.length - 1)]).focus();
    });
    document.addEventListener("keydown", (event) => { // as on many pages: "/" goes to the search
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
      event.preventDefault();
      input.focus();
    });
  }

  const starts = {};
  site.page = (kind, start) => { starts[kind] = start; };
  document.addEventListener("DOMContentLoaded", () => {
    if (!site.shared) {
      const why = "The data of these pages is missing beside them: copy the whole folder, or write it again.";
      document.getElementById("main").append(site.make("p", { class: "state unknown", role: "alert" }, why));
      return;
    }
    search();
    const start = starts[document.body.dataset.page];
    if (start) start();
  });
  return site;
})();
