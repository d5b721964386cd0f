// The theme, and whether this is a first visit, are known before anything is painted: a dark room stays dark, and what
// a first visitor does not need never flashes by.
(function () {
  const root = document.documentElement;
  const chosen = localStorage.getItem("theme");
  if (chosen && ["light", "dark", "contrast"].includes(chosen)) root.dataset.theme = chosen;
  const query = new URLSearchParams(location.search);
  const elsewhere = ["story", "take", "detail", "lab", "figure"].some((name) => query.has(name)) || location.hash;
  const wanted = query.get("tour") === "1" || (!query.has("tour") && !elsewhere && !localStorage.getItem("first"));
  if (root.dataset.tours === "true" && wanted) root.dataset.first = "asks";
})();
