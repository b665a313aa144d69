"use strict";
// Flame graphs: draws boxes from numbers, zooms, searches; every box is reached by arrow keys.
(function () {
  const island = document.getElementById("flame-data");
  if (!island) return;
  const flames = JSON.parse(island.textContent);
  const ROW = 1.2, NARROWEST = 0.0008; // rem; share of the zoomed box below which nothing can be seen

  function nodes(flame) {
    const found = [], path = [], ends = [0];
    for (let i = 0; i < flame.boxes.length; i += 3) {
      const [name, depth, value] = flame.boxes.slice(i, i + 3);
      path.length = depth;
      ends.length = depth + 1;
      const node = { name, depth, value, start: ends[depth], parent: path[depth - 1] || null, children: [] };
      if (node.parent) node.parent.children.push(node);
      ends[depth] += value;
      ends[depth + 1] = node.start;
      path[depth] = node;
      found.push(node);
    }
    return found;
  }

  document.querySelectorAll(".flame").forEach((place, index) => {
    const flame = flames[index];
    if (!flame) return;
    const all = nodes(flame), tools = place.closest(".flame-graph");
    const told = tools.querySelector(".flame-told"), search = tools.querySelector("input"), whole = tools.querySelector("button");
    const percent = (value) => { const p = (100 * value) / flame.parts; return (p >= 0.95 ? p.toFixed(1) : p.toPrecision(2)) + " %"; };
    const kinds = Array.from(tools.querySelectorAll(".flame-key span"), (one) => one.textContent);
    const words = (node) => flame.names[node.name] + " (" + kinds[flame.kinds[node.name]] + "): " + percent(node.value) + " of " + flame.total;
    let zoom = null, focused = null, elements = new Map();

    function shown(node) {
      if (!zoom) return true;
      for (let up = zoom; up; up = up.parent) if (up === node) return true; // what leads to it
      return node.start >= zoom.start && node.start + node.value <= zoom.start + zoom.value + 1 && node.depth > zoom.depth;
    }
    function draw() {
      const from = zoom ? zoom.start : 0, span = zoom ? zoom.value : flame.parts;
      const wanted = search.value.trim().toLowerCase(), drawn = [];
      let deepest = 0, matched = 0, matchedEnd = -1;
      elements = new Map();
      for (const node of all) {
        const found = wanted !== "" && flame.names[node.name].toLowerCase().includes(wanted);
        // Of boxes on each other only the outermost counts, or a recursion would be more than the whole.
        if (found && node.start >= matchedEnd) { matched += node.value; matchedEnd = node.start + node.value; }
        if (!shown(node)) continue;
        const leads = zoom && node.depth <= zoom.depth;
        const left = leads ? 0 : (node.start - from) / span, wide = leads ? 1 : node.value / span;
        if (wide < NARROWEST) continue;
        const box = document.createElement("button");
        box.type = "button";
        box.tabIndex = -1;
        box.className = "flame-box k" + flame.kinds[node.name] + (leads && node !== zoom ? " dim" : "") + (found ? " found" : "");
        box.style.left = 100 * left + "%";
        box.style.width = 100 * wide + "%";
        box.style.top = ROW * node.depth + "rem";
        box.textContent = wide > 0.015 ? flame.names[node.name] : "";
        box.title = words(node);
        box.setAttribute("aria-label", words(node));
        box.addEventListener("click", () => go(node));
        box.addEventListener("focus", () => { focused = node; told.textContent = words(node); });
        elements.set(node, box);
        drawn.push(box);
        deepest = Math.max(deepest, node.depth);
      }
      place.style.height = ROW * (deepest + 1) + "rem";
      place.replaceChildren(...drawn);
      const entry = elements.get(focused) || elements.get(zoom) || drawn[0];
      if (entry) entry.tabIndex = 0;
      whole.disabled = !zoom;
      if (wanted !== "") told.textContent = matched ? "found in " + percent(matched) + " of " + flame.total : "nothing is called like that";
      else told.textContent = zoom ? words(zoom) : "all of " + flame.total;
    }
    function go(node) {
      zoom = node;
      focused = node;
      draw();
      const box = elements.get(node);
      if (box) box.focus();
    }
    function move(node) {
      const box = node && elements.get(node);
      if (!box) return;
      for (const other of elements.values()) other.tabIndex = -1;
      box.tabIndex = 0;
      box.focus();
    }
    function beside(node, step) {
      const row = all.filter((other) => other.depth === node.depth && elements.has(other));
      return row[row.indexOf(node) + step];
    }
    place.addEventListener("keydown", (event) => {
      if (!focused) return;
      const to = { ArrowDown: () => focused.children.find((one) => elements.has(one)), ArrowUp: () => focused.parent,
        ArrowLeft: () => beside(focused, -1), ArrowRight: () => beside(focused, 1) }[event.key];
      if (to) { event.preventDefault(); move(to()); }
      if (event.key === "Escape" && zoom) { event.preventDefault(); const was = zoom; zoom = null; draw(); move(was); }
    });
    whole.addEventListener("click", () => { zoom = null; draw(); });
    search.addEventListener("input", draw);
    for (const one of tools.querySelectorAll(".flame-tools")) one.hidden = false;
    window.addEventListener("beforeprint", () => { zoom = null; search.value = ""; draw(); });
    draw();
  });
})();
