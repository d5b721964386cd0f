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

  // figure is for the chapter around this page: it returns when the moment is on stage.
  const figure = {
    async show(seq, name) {
      station = name;
      await stage.player.seek(seq);
      look();
    },
  };

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
