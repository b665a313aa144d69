"use strict";
// Flame graphs: draws boxes from numbers, zooms, searches; every box is reached by arrow keys.
(function () {
  const island = document.getElementById("flame-data");
  if (!island) return;
  const flames = JSON.parse(island.textContent);
  const ROW = 1.2, NARROWEST = 0.0008; // rem; share of the zoomed box below which nothing can be seen
  const WAITS = 4; // the first kind that waits: those before it run, or hold what does

  function nodes(flame) {
    const found = [], path = [], ends = [0];
    for (let i = 0; i < flame.boxes.length; i += 3) {
      const [name, depth, value] = flame.boxes.slice(i, i + 3);
      path.length = depth;
      ends.length = depth + 1;
      const node = { name, depth, value, start: ends[depth], parent: path[depth - 1] || null, children: [], waits: Number(flame.kinds[name]) >= WAITS };
      if (node.parent) node.parent.children.push(node);
      ends[depth] += value;
      ends[depth + 1] = node.start;
      path[depth] = node;
      found.push(node);
    }
    return found;
  }
  // The same without what waits: each box as wide as what runs in it.
  function running(all) {
    const copies = new Map();
    for (let n = all.length - 1; n >= 0; n--) { // what is in a box comes after it
      const node = all[n], waiting = node.waits ? node.value : node.children.reduce((sum, child) => sum + copies.get(child).waiting, 0);
      copies.set(node, { ...node, waiting, value: node.value - waiting, children: [] });
    }
    const kept = [], ends = [0];
    for (const node of all) {
      const copy = copies.get(node);
      if (copy.value <= 0) continue;
      copy.parent = node.parent ? copies.get(node.parent) : null;
      if (copy.parent) copy.parent.children.push(copy);
      copy.start = ends[copy.depth] = Math.max(ends[copy.depth] || 0, copy.parent ? copy.parent.start : 0);
      ends[copy.depth] += copy.value;
      kept.push(copy);
    }
    return kept;
  }
  function save(flame, all) {
    const frames = flame.names.map((name) => ({ name })), samples = [], weights = [], path = [];
    for (const node of all) {
      path.length = node.depth;
      path.push(node.name);
      const own = node.value - node.children.reduce((sum, child) => sum + child.value, 0);
      if (own > 0) { samples.push(path.slice()); weights.push((own / flame.parts) * flame.whole); }
    }
    const end = weights.reduce((sum, weight) => sum + weight, 0);
    const profile = { type: "sampled", name: flame.title, unit: flame.unit, startValue: 0, endValue: end, samples, weights };
    const text = JSON.stringify({ $schema: "https://www.speedscope.app/file-format-schema.json", name: document.title, exporter: "profkit", shared: { frames }, profiles: [profile] });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "flame.speedscope.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  document.querySelectorAll(".flame").forEach((place, index) => {
    const flame = flames[index];
    if (!flame) return;
    const every = nodes(flame), tools = place.closest(".flame-graph"), only = tools.querySelector(".flame-running");
    let all = every, parts = flame.parts;
    const told = tools.querySelector(".flame-told"), search = tools.querySelector("input[type=search]"), whole = tools.querySelector(".flame-all");
    const percent = (value) => { const p = (100 * value) / parts; return (p >= 0.95 ? p.toFixed(1) : p.toPrecision(2)) + " %"; };
    const kinds = Array.from(tools.querySelectorAll(".flame-key span"), (one) => one.textContent);
    const words = (node) => flame.names[node.name] + " (" + kinds[flame.kinds[node.name]] + "): " + percent(node.value) + " of " + total();
    const total = () => (all === every ? flame.total : percentOf(parts / flame.parts) + " of " + flame.total + " in which anything ran");
    const percentOf = (share) => (100 * share).toPrecision(3) + " %";
    let zoom = null, focused = null, elements = new Map();

    function shown(node) {
      if (!zoom) return true;
      for (let up = zoom; up; up = up.parent) if (up === node) return true; // what leads to it
      return node.start >= zoom.start && node.start + node.value <= zoom.start + zoom.value + 1 && node.depth > zoom.depth;
    }
    function draw() {
      const from = zoom ? zoom.start : 0, span = zoom ? zoom.value : parts;
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
      if (wanted !== "") told.textContent = matched ? "found in " + percent(matched) + " of " + total() : "nothing is called like that";
      else told.textContent = zoom ? words(zoom) : (all === every ? "all of " : "") + total();
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
    if (only) {
      only.addEventListener("change", () => {
        all = only.checked ? running(every) : every;
        parts = only.checked ? all.reduce((sum, node) => sum + (node.depth ? 0 : node.value), 0) || 1 : flame.parts;
        zoom = focused = null;
        draw();
      });
    }
    tools.querySelector(".flame-save").addEventListener("click", () => save(flame, every));
    for (const one of tools.querySelectorAll(".flame-tools")) one.hidden = false;
    window.addEventListener("beforeprint", () => { zoom = null; search.value = ""; draw(); });
    draw();
  });
})();
