"use strict";
// A table that sorts by what its cells hold (data-v), and filters by its words and the whole names of its rows.
(function () {
  const table = document.getElementById("kernel-table");
  if (!table) return;
  const body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
  const filter = document.getElementById("kernel-filter"), count = document.getElementById("kernel-count");
  const collator = new Intl.Collator("en", { numeric: true });
  const hay = new Map();
  let sorted = -1, down = true;
  function value(row, number) {
    const cell = row.cells[number];
    return heads[number].classList.contains("num") ? (cell.dataset.v === undefined ? null : Number(cell.dataset.v)) : cell.textContent || null;
  }
  function sort(number) {
    const numeric = heads[number].classList.contains("num");
    down = number === sorted ? !down : numeric;
    sorted = number;
    const keys = new Map(rows.map((row) => [row, value(row, number)]));
    rows.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      if (x === null || y === null) return (x === null) - (y === null) || a.dataset.row - b.dataset.row; // not known: last
      const order = numeric ? x - y : collator.compare(x, y);
      return (down ? -order : order) || a.dataset.row - b.dataset.row;
    });
    heads.forEach((head, n) => {
      if (n === number) head.setAttribute("aria-sort", down ? "descending" : "ascending"); else head.removeAttribute("aria-sort");
    });
    body.append(...rows);
  }
  function narrow() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      if (!hay.has(row)) hay.set(row, (row.cells[0].title + "\n" + row.textContent).toLowerCase());
      row.hidden = !words.every((word) => hay.get(row).includes(word));
      if (!row.hidden) shown += 1;
    }
    count.textContent = (words.length ? shown.toLocaleString("en") + " of " : "") + rows.length.toLocaleString("en") + (rows.length === 1 ? " row" : " rows");
  }
  heads.forEach((head, number) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(number));
    head.replaceChildren(button);
  });
  filter.addEventListener("input", narrow);
  document.getElementById("kernel-tools").hidden = rows.length < 4;
  narrow();
})();
