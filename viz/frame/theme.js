// This script sets the theme, and whether this is a first visit, before the first paint, so that the page does not
// flash. If the browser refuses storage, as it may in another site's frame, nothing is stored.
(function () {
  try {
    void localStorage;
  } catch {
    Object.defineProperty(window, "localStorage", { value: { getItem: () => null, setItem() {} } });
  }
  const root = document.documentElement;
  const chosen = localStorage.getItem("theme");
  if (chosen && ["light", "dark", "contrast"].includes(chosen)) root.dataset.theme = chosen;
  const query = new URLSearchParams(location.search);
  const elsewhere = ["story", "take", "detail", "lab", "figure"].some((name) => query.has(name)) || location.hash;
  const wanted = query.get("tour") === "1" || (!query.has("tour") && !elsewhere && !localStorage.getItem("first"));
  if (root.dataset.tours === "true" && wanted) root.dataset.first = "asks";
})();
