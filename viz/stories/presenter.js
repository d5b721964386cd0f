// Presenter: the stage for the last row of a room. Type grows, what is only for the hand goes away, and one station at
// a time can stand in the light. The keys of a remote clicker, PageDown and PageUp, walk through the stations.

import { $, parts, put, when } from "../dom/dom.js";

/**
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {page.Zoom} zoom
 * @property {() => void} restyle
 */

/** @param {Stage} stage @returns {page.Part} */
export function newPresenter(stage) {
  const root = document.documentElement;
  const button = $("#presenter");
  const stations = () => parts(stage.scene.root, ".station");
  const on = () => root.dataset.presenter === "on";
  /** @type {HTMLElement | null} */
  let lit = null;
  const within = (/** @type {Element | null} */ el) =>
    /** @type {HTMLElement | null} */ (el?.closest(".station") ?? null);

  function toggle() {
    put(root, "data-presenter", on() ? null : "on");
    put(button, "aria-pressed", String(on()));
    light(on() ? within(document.activeElement) : null);
    stage.scene.stale = true;
    stage.restyle();
  }

  // light puts a station into the light, or none, unless a story says where to look.
  /** @param {HTMLElement | null} station */
  function light(station) {
    lit = station;
    if (!document.body.dataset.story) stage.zoom.frameOn(lit ? [lit.dataset.station ?? ""] : []);
  }

  /** @param {number} step */
  function walk(step) {
    if (!on()) toggle();
    const all = stations();
    const at = lit ? all.indexOf(lit) + step : step > 0 ? step - 1 : -1;
    const next = all[(at + all.length) % all.length];
    light(next);
    next.focus({ preventScroll: true });
  }

  when(stage.scene.root, "focusin", (event) => {
    const station = within(event.target);
    if (on() && station && station !== lit) light(station);
  });

  return {
    escape: () => lit !== null && (light(null), true),
    keys: { a: toggle, PageDown: () => walk(1), PageUp: () => walk(-1) },
  };
}
