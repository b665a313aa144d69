"use strict";
// The overview is whole without a script; what is searched for is also what is left of its tables.
profkitSite.page("overview", () => {
  const site = profkitSite, nothing = document.getElementById("nothing-found");
  const names = new Map(site.shared.workloads.map((row) => [row[0], row[3]]));
  document.addEventListener("find", (event) => {
    const fits = site.matcher(event.detail);
    const shown = new Map();
    const matches = (name) => {
      if (!shown.has(name)) shown.set(name, fits(name) || (names.get(name) || []).some((each) => fits(name + " " + each)));
      return shown.get(name);
    };
    let left = 0;
    for (const one of document.querySelectorAll("[data-find]")) {
      one.hidden = !matches(one.dataset.find);
      if (!one.hidden && one.tagName === "TBODY") left++;
    }
    if (nothing) nothing.hidden = left > 0;
  });
});
