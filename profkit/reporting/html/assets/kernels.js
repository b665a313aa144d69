"use strict";
(async function () {
  const island = document.getElementById("kernel-data");
  if (!island) return;
  const table = document.getElementById("kernel-table");
  const grid = document.getElementById("kernel-grid");
  const filter = document.getElementById("kernel-filter");
  const count = document.getElementById("kernel-count");
  const detail = document.getElementById("kernel-detail");
  const EXTRA = 12, NEAR = 4; // rows drawn above and below what is seen, and how few of them may be left

  // ---- numbers as the rest of the page writes them (profkit/core/formatting.py)
  const figures = (value) => {
    if (value === 0) return "0";
    const digits = 2 - Math.floor(Math.log10(Math.abs(value)));
    return digits > 9 || digits < -12 ? value.toExponential(2) : value.toFixed(Math.max(0, digits));
  };
  const percent = (value) => {
    const size = Math.abs(value);
    if (size === 0 || size >= 0.95) return value.toFixed(1);
    if (size >= 0.0095) return value.toFixed(2);
    return size >= 0.00095 ? String(Number(value.toPrecision(1))) : "<0.001";
  };
  const scaled = (value, steps, unit) => {
    for (const [factor, prefix] of steps) {
      if (Math.abs(value) >= factor * (factor > 1 ? 0.9995 : 0) || factor === 1) {
        const part = value / factor;
        const told = factor === 1 && Number.isInteger(part) ? String(part) : figures(part);
        return (told + " " + prefix + unit).trim();
      }
    }
    return "";
  };
  const decimal = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const binary = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"], [1, ""]];
  function quantity(value, unit) {
    if (value === null) return "";
    if (typeof value === "string") return value;
    if (unit === "n") return String(value); // sizes, as they were asked for
    if (unit === "%") return percent(value) + " %";
    if (unit === "s") {
      for (const [factor, sign] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]) {
        if (Math.abs(value) >= factor * 0.9995) return figures(value / factor) + " " + sign;
      }
      return value ? figures(value / 1e-9) + " ns" : "0 s";
    }
    if (unit.split("/")[0] === "B" && unit !== "B/s") return scaled(value, binary, unit);
    if (["B/s", "FLOP", "FLOP/s", "Hz", "J"].includes(unit)) return scaled(value, decimal, unit);
    if (unit === "" || unit === "count" || value >= 1e4) {
      return scaled(value, decimal, "") + (unit === "" || unit === "count" ? "" : " " + unit);
    }
    return (figures(value) + " " + unit).trim();
  }
  window.profkitQuantity = quantity; // for whoever wants to check it
  window.profkitUnpack = unpack; // for dots that lead to rows

  // ---- what the table holds: numbers as numbers, NaN where there is none; words each once (profkit/reporting/html/packed.py)
  function unpack(told) {
    const found = [];
    let text = "";
    for (let n = 0; n < told.length; n += 3) {
      text = text.slice(0, told[n]) + told[n + 2] + (told[n + 1] ? text.slice(-told[n + 1]) : "");
      found.push(text);
    }
    return found;
  }
  // In steps, the page being painted first: no step is so long that a click would wait.
  const breath = () => new Promise((done) => setTimeout(done));
  await new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 500); });
  const data = JSON.parse(island.textContent), columns = data.columns, total = data.rows;
  for (const column of columns) {
    if (column.words) {
      await breath();
      column.texts = unpack(column.words.texts);
      column.at = new Int32Array(total).fill(-1);
      column.at.set(column.words.at);
    } else {
      column.numbers = new Float64Array(total).fill(NaN);
      column.values.forEach((value, n) => { if (value !== null) column.numbers[n] = value; });
      column.values = null;
    }
  }
  await breath();
  const valueOf = (column, row) => {
    if (column.texts) return column.at[row] < 0 ? null : column.texts[column.at[row]];
    return Number.isNaN(column.numbers[row]) ? null : column.numbers[row];
  };
  // By what a column is sorted: its numbers, or the places of its words in the alphabet.
  function keys(column) {
    if (column.texts && !column.numbers) {
      const collator = new Intl.Collator("en", { numeric: true });
      const places = Array.from(column.texts, (_, n) => n).sort((a, b) => collator.compare(column.texts[a], column.texts[b]));
      const rank = new Float64Array(places.length);
      let last = 0; // what the alphabet has at one place keeps the order of the page
      places.forEach((one, n) => {
        if (n && collator.compare(column.texts[places[n - 1]], column.texts[one])) last = n;
        rank[one] = last;
      });
      column.numbers = Float64Array.from(column.at, (at) => at < 0 ? NaN : rank[at]);
    }
    return column.numbers;
  }
  let held = null;
  function names() { // asked for by a filter or an opened kernel, and made when nobody waits
    if (!held) {
      const told = JSON.parse(document.getElementById("kernel-names").textContent);
      held = { texts: unpack(told.texts), at: told.at };
    }
    return held;
  }
  let haystack = null;
  function hay() {
    if (!haystack) {
      const { texts, at } = names(), lower = texts.map((name) => name.toLowerCase());
      const words = columns.filter((column) => column.texts).map((column) => [column.at, column.texts.map((text) => text.toLowerCase())]);
      haystack = Array.from({ length: total }, (_, n) => {
        let all = lower[at[n]] + "\n" + (data.shape[n] || ""); // rows that are no kernels have none
        for (const [place, told] of words) if (place[n] >= 0) all += "\n" + told[place[n]];
        return all;
      });
    }
    return haystack;
  }

  // ---- order and filter
  const natural = Uint32Array.from({ length: total }, (_, n) => n);
  let order = natural; // every row, as sorted
  let shown = order; // those that the filter leaves
  let sorted = -1, down = true;
  function sort(number) {
    const first = columns[number].unit !== "text";
    down = number === sorted ? !down : first;
    sorted = number;
    const values = keys(columns[number]), sign = down ? -1 : 1;
    order = natural.slice().sort((a, b) => {
      const x = values[a], y = values[b];
      if (x < y) return -sign;
      if (x > y) return sign;
      if (x === y) return a - b;
      return x !== x ? (y !== y ? a - b : 1) : -1; // what is not known comes last
    });
    heads.forEach((head, n) => {
      if (n === number) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    narrow();
  }
  function narrow() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = order;
    if (words.length) { const all = hay(); shown = order.filter((n) => words.every((word) => all[n].includes(word))); }
    const share = columns.find((column) => column.title === "Share");
    let sum = 0;
    if (share) for (const n of shown) sum += share.numbers[n] || 0;
    count.textContent = words.length
      ? shown.length.toLocaleString("en") + " of " + total.toLocaleString("en") +
        (share ? ", " + percent(Math.min(100, sum)) + " % of the time of all kernels" : "")
      : total.toLocaleString("en") + (total === 1 ? " row" : " rows");
    table.setAttribute("aria-rowcount", shown.length + 1);
    grid.scrollTop = 0;
    active = 0;
    draw(true, 0);
  }

  // ---- the rows that are seen
  const body = document.createElement("tbody");
  body.className = "live";
  table.classList.add("live");
  const group = document.createElement("colgroup");
  const most = (column, n) => n === 0 ? 52 : column.unit === "text" && n === columns.length - 1 ? 160 : 30; // signs
  const widths = columns.map((column, n) => Math.min(most(column, n), column.width));
  const wide = (width, n) => n ? (width * 0.49 + 1.2).toFixed(2) + "rem" : "min(46vw, " + (width * 0.52 + 1.2).toFixed(2) + "rem)"; // a sign each
  for (const [n, width] of widths.entries()) {
    const col = document.createElement("col");
    col.style.width = wide(width, n);
    group.append(col);
  }
  table.style.width = "calc(" + widths.map(wide).join(" + ") + ")";
  table.prepend(table.caption, group);
  table.append(body);
  const heads = Array.from(table.tHead.rows[0].cells);
  let first = -1, last = -1, height = 28, room = grid.clientHeight, active = 0, chosen = -1;
  // A cell is filled again with another row's value: making its element anew takes many times as long.
  function fill(box, row, number) {
    const column = columns[number], value = valueOf(column, row);
    const odd = column.odd[row];
    const source = odd ? odd[0] : value === null ? 0 : column.source;
    const mark = odd ? odd[1] : value === null ? "" : column.mark;
    const text = value === null && source ? "–" : quantity(value, column.unit);
    let into = box;
    if (source) {
      into = box.firstElementChild;
      if (!into || into.tagName !== "A") {
        into = document.createElement("a");
        into.tabIndex = -1;
        box.replaceChildren(into);
      }
      into.className = value === null ? "n unavailable" : "n";
      const href = "#s" + source;
      if (into.getAttribute("href") !== href) into.setAttribute("href", href);
    }
    if (into.childNodes.length === 1 && into.firstChild.nodeType === 3) into.firstChild.data = text;
    else into.textContent = text;
    if (mark) {
      const small = document.createElement("small");
      small.className = "mark";
      small.textContent = mark;
      into.append(" ", small);
    }
  }
  function made() {
    const row = document.createElement("tr");
    columns.forEach((column, number) => {
      const box = document.createElement(number ? "td" : "th");
      if (number === 0) { box.scope = "row"; box.className = "name"; }
      else if (column.unit !== "text") box.className = "num";
      row.append(box);
    });
    return row;
  }
  function gap() {
    const row = document.createElement("tr"), box = document.createElement("td");
    row.className = "gap";
    row.setAttribute("aria-hidden", "true");
    box.colSpan = columns.length;
    row.append(box);
    body.append(row);
    return (rows) => { row.hidden = rows === 0; box.style.height = rows * height + "px"; return row; };
  }
  await breath();
  const above = gap(), below = gap();
  let drawn = new Map(); // the row's element by its place
  function draw(all, top) {
    const seen = top === undefined ? grid.scrollTop : top;
    const from = Math.floor(seen / height), to = Math.ceil((seen + room) / height);
    if (!all && first >= 0 && Math.max(0, from - NEAR) >= first && Math.min(shown.length, to + NEAR) <= last) return;
    const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
    first = Math.max(0, Math.min(from, shown.length - 1) - EXTRA);
    last = Math.min(shown.length, to + EXTRA);
    const kept = new Map(), free = [];
    for (const row of Array.from(body.rows)) { // in their order, so that those of a page far away stay where they are
      const n = Number(row.dataset.at);
      if (Number.isNaN(n)) continue; // a gap
      if (!all && n >= first && n < last) kept.set(n, row);
      else if (row === focused) row.remove(); // the focus must not stay on what becomes another row
      else free.push(row);
    }
    if (kept.size) for (const row of free) row.remove(); // or those that stay would have to make way
    above(first);
    let place = below(shown.length - last);
    for (let n = last - 1; n >= first; n--) {
      let row = kept.get(n);
      if (!row) {
        row = free.pop() || made();
        row.dataset.at = n;
        row.setAttribute("aria-rowindex", n + 2);
        row.classList.toggle("chosen", shown[n] === chosen);
        for (let c = 0; c < columns.length; c++) fill(row.cells[c], shown[n], c);
        kept.set(n, row);
      }
      row.tabIndex = n === active ? 0 : -1;
      if (row.nextSibling !== place) body.insertBefore(row, place);
      place = row;
    }
    for (const row of free) row.remove();
    drawn = kept;
    if (active < first || active >= last) { const one = drawn.get(first); if (one) one.tabIndex = 0; }
    if (focused && !body.contains(document.activeElement)) focus(false);
  }
  const at = (n) => drawn.get(n);
  function focus(scroll) {
    const head = table.tHead.offsetHeight, top = active * height;
    if (scroll !== false) {
      if (top < grid.scrollTop) grid.scrollTop = top;
      else if (top + height > grid.scrollTop + room - head) {
        grid.scrollTop = top + height - room + head;
      }
      draw(false);
    }
    for (const one of body.querySelectorAll('tr[tabindex="0"]')) one.tabIndex = -1;
    const row = at(active);
    if (row) { row.tabIndex = 0; row.focus({ preventScroll: true }); }
  }
  let asked = false;
  grid.addEventListener("scroll", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(false); });
  }, { passive: true });

  // ---- one kernel with all that is known of it
  function element(name, words, kind) {
    const one = document.createElement(name);
    if (words !== undefined) one.textContent = words;
    if (kind) one.className = kind;
    return one;
  }
  function open(number) {
    chosen = shown[number];
    active = number;
    for (const row of body.querySelectorAll("tr.chosen")) row.classList.remove("chosen");
    const row = at(number);
    if (row) row.classList.add("chosen");
    const close = element("button", "Close", "close");
    close.type = "button";
    close.addEventListener("click", shut);
    const title = element("h3", valueOf(columns[0], chosen));
    title.tabIndex = -1;
    const whole = element("pre");
    whole.tabIndex = 0;
    whole.append(element("code", names().texts[names().at[chosen]]));
    const told = data.details[chosen];
    const parts = [close, title, whole];
    if (data.shape[chosen]) parts.push(element("p", data.shape[chosen].replace(" of ", " blocks of ") + " threads"));
    if (told && told.bound) parts.push(element("p", told.bound));
    if (told && told.verdicts.length) {
      const list = element("ul");
      for (const [word, shownWord, target, reason] of told.verdicts) {
        const one = element("li", undefined, word);
        one.append(element("span", shownWord, "word"), " ", element("code", target), " " + reason);
        list.append(one);
      }
      parts.push(list);
    }
    const values = element("dl");
    const line = (name, value, source, mark) => {
      const pair = element("div"), number = element("dd");
      let into = number;
      if (source) { into = element("a", undefined, "n"); into.href = "#s" + source; number.append(into); }
      into.append(value);
      if (mark) into.append(" ", element("small", mark, "mark"));
      pair.append(element("dt", name), number);
      values.append(pair);
    };
    if (told && told.readings.length) for (const [value, source, mark] of told.readings) {
      line(document.querySelector("#s" + source + " b").textContent, value, source, mark);
    }
    else {
      columns.forEach((column, n) => {
        const value = valueOf(column, chosen);
        if (n && value !== null) line(column.title, quantity(value, column.unit), column.source, "");
      });
    }
    parts.push(values);
    detail.replaceChildren(...parts);
    detail.hidden = false;
  }
  function shut() {
    detail.hidden = true;
    chosen = -1;
    for (const row of body.querySelectorAll("tr.chosen")) row.classList.remove("chosen");
    focus();
  }

  // ---- hands
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-at]");
    if (row && !event.target.closest("a")) open(Number(row.dataset.at));
  });
  body.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr[data-at]");
    if (row) active = Number(row.dataset.at);
  });
  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr[data-at]");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const links = Array.from(row.querySelectorAll("a")), link = links.indexOf(event.target);
    const page = Math.max(1, Math.floor(room / height) - 2);
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -total, End: total }[event.key];
    if (move !== undefined) { active = Math.max(0, Math.min(shown.length - 1, active + move)); focus(); }
    else if (event.key === "ArrowRight") { const next = links[link + 1]; if (next) next.focus(); }
    else if (event.key === "ArrowLeft") (links[link - 1] || row).focus();
    else if ((event.key === "Enter" || event.key === " ") && link < 0) { open(active); detail.querySelector("h3").focus(); }
    else return;
    event.preventDefault();
  });
  detail.addEventListener("keydown", (event) => { if (event.key === "Escape") shut(); });
  heads.forEach((head, number) => {
    const button = element("button", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => sort(number));
    head.replaceChildren(button);
  });
  filter.addEventListener("input", narrow);
  window.addEventListener("resize", () => { room = grid.clientHeight; draw(true); });
  document.getElementById("kernel-tools").hidden = total < 4;
  narrow();
  const one = drawn.get(first), high = one ? one.getBoundingClientRect().height : 0;
  room = grid.clientHeight;
  if (high && high !== height) { height = high; draw(true); }
  else draw(false);
  const idle = window.requestIdleCallback || ((act) => setTimeout(act, 200));
  const ahead = [names, hay, ...columns.filter((column) => column.texts).map((column) => () => keys(column))];
  const work = () => { const next = ahead.shift(); if (next) { next(); idle(work); } };
  idle(work);
})();
