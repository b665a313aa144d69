"use strict";
(function () {
  const root = document.documentElement;

  // ---- colours: as the system says, or as chosen
  const themes = ["system", "light", "dark"];
  const button = document.getElementById("theme");
  const current = () => root.dataset.theme || "system";
  const tell = () => { button.textContent = "Colours: " + current(); };
  if (button !== null) {  // a page inside of a notebook has none
    button.addEventListener("click", () => {
      const next = themes[(themes.indexOf(current()) + 1) % themes.length];
      if (next === "system") delete root.dataset.theme; else root.dataset.theme = next;
      try { localStorage.setItem("profkit-theme", next); } catch (refused) { /* then for this visit only */ }
      tell();
    });
    button.hidden = false;
    tell();
  }

  // ---- the source of a number, beside it: on hover, focus and tap
  const tip = document.getElementById("tip");
  let owner = null, waiting = 0;
  const footnote = (link) => document.getElementById(link.getAttribute("href").slice(1));
  const source = (target) => target.closest ? target.closest('a[href^="#s"].n, a[href^="#s"][data-source]') : null;
  function show(link) {
    const note = footnote(link);
    if (!note || link === owner) return;
    hide();
    owner = link;
    tip.replaceChildren(...Array.from(note.childNodes, (node) => node.cloneNode(true)));
    tip.hidden = false;
    link.setAttribute("aria-describedby", "tip");
    place();
  }
  function place() {
    const at = owner.getBoundingClientRect(), box = tip.getBoundingClientRect(), room = 8;
    const wide = root.clientWidth, high = window.innerHeight;
    const left = Math.max(room, Math.min(at.left, wide - box.width - room));
    const below = at.bottom + 6 + box.height <= high || at.top < high - at.bottom;
    tip.style.left = left + "px";
    tip.style.top = (below ? at.bottom + 6 : Math.max(room, at.top - box.height - 6)) + "px";
  }
  function hide() {
    clearTimeout(waiting);
    waiting = 0;
    if (!owner) return;
    owner.removeAttribute("aria-describedby");
    owner = null;
    tip.hidden = true;
  }
  const hideSoon = () => { clearTimeout(waiting); waiting = setTimeout(hide, 200); };
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const link = source(event.target);
    if (link) { clearTimeout(waiting); show(link); }
    else if (tip.contains(event.target)) clearTimeout(waiting);
    else if (owner && owner !== document.activeElement) hideSoon();
  });
  document.addEventListener("focusin", (event) => {
    const link = source(event.target);
    if (link) show(link); else if (!tip.contains(event.target)) hide();
  });
  document.addEventListener("click", (event) => {
    const link = source(event.target);
    if (link) {
      if (event.detail > 0) { event.preventDefault(); show(link); } // Enter follows the link to the list
    } else if (!tip.contains(event.target)) hide();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", (event) => { // a number that is focused may still be on its way into view
    if (!owner || tip.contains(event.target)) return;
    const at = owner.getBoundingClientRect();
    tip.hidden = at.bottom < 0 || at.top > window.innerHeight;
    place();
  }, { capture: true, passive: true });
  window.addEventListener("resize", hide);

  // ---- on paper nothing is folded
  const opened = [];
  window.addEventListener("beforeprint", () => {
    hide();
    for (const one of document.querySelectorAll("details:not([open])")) { one.open = true; opened.push(one); }
  });
  window.addEventListener("afterprint", () => { while (opened.length) opened.pop().open = false; });

  // ---- where in the page one is
  const links = new Map(Array.from(document.querySelectorAll(".contents a"), (a) => [a.hash.slice(1), a]));
  if ("IntersectionObserver" in window) {
    const seen = new Set();
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
      const first = Array.from(links.keys()).find((id) => seen.has(id));
      for (const [id, link] of links) {
        if (id === first) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
      }
    }, { rootMargin: "-10% 0px -60% 0px" });
    for (const section of document.querySelectorAll("main > section")) watch.observe(section);
  }
})();
