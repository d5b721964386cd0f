// Figure: the stage as a chapter's mini-stage. The chapter says which moment is shown; the figure brings the station at
// which it happened to the middle. It shows a recording, or, when asked to go live, the running program.

import { toMiddle } from "../stories/presenter.js";

export const figure = {
  name: "figure",
  offers: ["figure"],
  needs: ["player", "scene"],
  join: newFigure,
};

function newFigure(stage) {
  if (!document.body.classList.contains("figure")) return { figure: null };
  const ground = document.querySelector(".ground");
  let station = "";

  // The chapter around this page and the figure talk by messages: a file may not look into another one.
  const figure = {
    ready() {
      document.body.dataset.figure = "ready";
      parent.postMessage({ figure: "ready" }, "*");
    },
  };

  addEventListener("message", async ({ source, data }) => {
    if (source !== parent || !Number.isSafeInteger(data?.seq)) return;
    station = data.station;
    await stage.player.seek(data.seq);
    look();
    parent.postMessage({ figure: "shows", seq: data.seq }, "*");
  });

  function look() {
    const el = stage.scene.stations.get(station);
    if (!el) return;
    document.querySelectorAll(".station.lit").forEach((other) => other.classList.remove("lit"));
    el.classList.add("lit");
    toMiddle(ground, el);
  }

  new ResizeObserver(look).observe(ground);
  return { figure };
}
