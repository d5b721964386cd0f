// The theme is chosen before anything is painted, so that a dark room stays dark.
(function () {
  const chosen = localStorage.getItem("theme");
  if (["light", "dark", "contrast"].includes(chosen)) document.documentElement.dataset.theme = chosen;
})();
