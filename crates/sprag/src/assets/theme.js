// Before the first paint: a page must not flash in the wrong colours.
(() => {
  const wanted = localStorage.getItem("sprag-theme");
  if (wanted === "light" || wanted === "dark") document.documentElement.dataset.theme = wanted;
})();
