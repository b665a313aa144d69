"use strict";
(function () {
  const island = document.getElementById("kernel-data");
  if (!island) return;
  const table = document.getElementById("kernel-table");
  const grid = document.getElementById("kernel-grid");
  const filter = document.getElementById("kernel-filter");
  const count = document.getElementById("kernel-count");
  const detail = document.getElementById("kernel-detail");
  const data = JSON.parse(island.textContent);
  const columns = data.columns, total = data.name.length;
  const EXTRA = 12; // rows kept above and below what is seen

  // ---- numbers as the rest of the page writes them (profkit/words.py)
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

  // ---- order and filter
  let order = Uint32Array.from({ length: total }, (_, n) => n); // every row, as sorted
  let shown = order; // those that the filter leaves
  let sorted = -1, down = true;
  let haystack = null;
  function sort(number) {
    const first = columns[number].unit !== "text";
    down = number === sorted ? !down : first;
    sorted = number;
    const values = columns[number].values, sign = down ? -1 : 1;
    const text = columns[number].unit === "text";
    const collator = text ? new Intl.Collator("en", { numeric: true }) : null;
    order = Array.from({ length: total }, (_, n) => n).sort((a, b) => {
      const x = values[a], y = values[b];
      if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1; // what is not known comes last
      const by = text ? collator.compare(x, y) : x - y;
      return by ? sign * by : a - b;
    });
    heads.forEach((head, n) => {
      if (n === number) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    narrow();
  }
  function narrow() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && !haystack) {
      const names = data.names.map((name) => name.toLowerCase());
      const texts = columns.filter((column) => column.unit === "text");
      haystack = data.name.map((name, n) =>
        names[name] + "\n" + data.shape[n] + "\n" + texts.map((c) => (c.values[n] || "").toLowerCase()).join("\n"));
    }
    shown = words.length ? order.filter((n) => words.every((word) => haystack[n].includes(word))) : order;
    const share = columns.find((column) => column.title === "Share");
    let sum = 0;
    if (share) for (const n of shown) sum += share.values[n] || 0;
    count.textContent = words.length
      ? shown.length.toLocaleString("en") + " of " + total.toLocaleString("en") +
        (share ? ", " + percent(Math.min(100, sum)) + " % of the time of all kernels" : "")
      : total.toLocaleString("en") + (total === 1 ? " row" : " rows");
    table.setAttribute("aria-rowcount", shown.length + 1);
    active = Math.max(0, Math.min(active, shown.length - 1));
    grid.scrollTop = 0;
    active = 0;
    draw(true);
  }

  // ---- the rows that are seen
  const body = document.createElement("tbody");
  body.className = "live";
  table.classList.add("live");
  const group = document.createElement("colgroup");
  const widths = columns.map((column, n) => Math.min(n ? 30 : 52, column.width));
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
  let first = -1, last = -1, height = 28, active = 0, chosen = -1;
  function cell(row, number) {
    const column = columns[number], value = column.values[row];
    const odd = column.odd[row];
    const source = odd ? odd[0] : value === null ? 0 : column.source;
    const mark = odd ? odd[1] : value === null ? "" : column.mark;
    const box = document.createElement(number ? "td" : "th");
    if (number === 0) { box.scope = "row"; box.className = "name"; }
    else if (column.unit !== "text") box.className = "num";
    let into = box;
    if (source) {
      into = document.createElement("a");
      into.className = value === null ? "n unavailable" : "n";
      into.href = "#s" + source;
      into.tabIndex = -1;
      box.append(into);
    }
    into.textContent = value === null && source ? "–" : quantity(value, column.unit);
    if (mark) {
      const small = document.createElement("small");
      small.className = "mark";
      small.textContent = mark;
      into.append(" ", small);
    }
    return box;
  }
  function gap(rows) {
    const row = document.createElement("tr"), box = document.createElement("td");
    row.className = "gap";
    row.setAttribute("aria-hidden", "true");
    box.colSpan = columns.length;
    box.style.height = rows * height + "px";
    row.append(box);
    return row;
  }
  function draw(all) {
    const from = Math.max(0, Math.floor(grid.scrollTop / height) - EXTRA);
    const to = Math.min(shown.length, Math.ceil((grid.scrollTop + grid.clientHeight) / height) + EXTRA);
    if (!all && from >= first && to <= last && first >= 0) return;
    const focused = body.contains(document.activeElement);
    first = Math.max(0, from - EXTRA);
    last = Math.min(shown.length, to + EXTRA);
    const rows = [];
    if (first) rows.push(gap(first));
    for (let n = first; n < last; n++) {
      const row = document.createElement("tr");
      row.dataset.at = n;
      row.setAttribute("aria-rowindex", n + 2);
      row.tabIndex = n === active ? 0 : -1;
      if (shown[n] === chosen) row.classList.add("chosen");
      for (let c = 0; c < columns.length; c++) row.append(cell(shown[n], c));
      rows.push(row);
    }
    if (last < shown.length) rows.push(gap(shown.length - last));
    body.replaceChildren(...rows);
    if (active < first || active >= last) { const one = body.querySelector("tr[data-at]"); if (one) one.tabIndex = 0; }
    if (focused) focus(false);
  }
  const at = (n) => body.querySelector('tr[data-at="' + n + '"]');
  function focus(scroll) {
    const head = table.tHead.offsetHeight, top = active * height;
    if (scroll !== false) {
      if (top < grid.scrollTop) grid.scrollTop = top;
      else if (top + height > grid.scrollTop + grid.clientHeight - head) {
        grid.scrollTop = top + height - grid.clientHeight + head;
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
    const title = element("h3", columns[0].values[chosen]);
    title.tabIndex = -1;
    const whole = element("pre");
    whole.tabIndex = 0;
    whole.append(element("code", data.names[data.name[chosen]]));
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
        if (n && column.values[chosen] !== null) line(column.title, quantity(column.values[chosen], column.unit), column.source, "");
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
    const page = Math.max(1, Math.floor(grid.clientHeight / height) - 2);
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
  window.addEventListener("resize", () => draw(true));
  document.getElementById("kernel-tools").hidden = total < 4;
  narrow();
  const one = body.querySelector("tr[data-at]");
  if (one && one.offsetHeight) { height = one.getBoundingClientRect().height; draw(true); }
})();
