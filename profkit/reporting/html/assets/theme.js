(function () {
  var root = document.documentElement, kept = null;
  root.classList.add("js");
  try { kept = localStorage.getItem("profkit-theme"); } catch (refused) { /* a page from a file may keep nothing */ }
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
})();
