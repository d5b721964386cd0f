// @ts-nocheck
// Presenter: the stage for the last row of a room. Type grows, what is only for the hand goes away, and one station at
// a time can stand in the light. The keys of a remote clicker, PageDown and PageUp, walk through the stations.

import { $, put, when } from "../dom/dom.js";

export function newPresenter(stage) {
  const root = document.documentElement;
  const button = $("#presenter");
  const stations = () => [...stage.scene.root.querySelectorAll(".station")];
  const on = () => root.dataset.presenter === "on";
  let lit = null;

  function toggle() {
    put(root, "data-presenter", on() ? null : "on");
    put(button, "aria-pressed", String(on()));
    light(on() ? document.activeElement?.closest?.(".station") ?? null : null);
    stage.touch();
    stage.restyle();
  }

  // light puts a station into the light, or none, unless a story or the tour says where to look.
  function light(station) {
    const { story, tour } = document.body.dataset;
    lit = station;
    if (!story && !Number(tour)) stage.zoom.frameOn(lit ? [lit.dataset.station] : []);
  }

  function walk(step) {
    if (!on()) toggle();
    const all = stations();
    const next = all[(all.indexOf(lit) + (lit || step > 0 ? step : 0) + all.length) % all.length];
    light(next);
    next.focus({ preventScroll: true });
  }

  when(stage.scene.root, "focusin", (event) => {
    const station = event.target.closest(".station");
    if (on() && station && station !== lit) light(station);
  });

  return {
    escape: () => lit !== null && (light(null), true),
    keys: [
      [["a"], "presenter: large type, one station lit", toggle],
      [["PageDown"], "presenter: the next station; also on a remote clicker", () => walk(1)],
      [["PageUp"], "presenter: the station before", () => walk(-1)],
    ],
  };
}
