// Presenter: a mode for viewers far from the screen. A remote clicker's PageDown and PageUp step through the stations.

import { $, parts, put, when } from "../dom/dom.js";

/**
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {page.Zoom} zoom
 * @property {() => void} restyle
 */

/** @param {Stage} stage @returns {page.Part} */
export function newPresenter({ scene, zoom, restyle }) {
  const root = document.documentElement;
  const on = () => root.dataset.presenter === "on";
  const stations = () => parts(scene.root, ".station");
  const focused = () => stations().findIndex((each) => each.contains(document.activeElement));

  function toggle() {
    put(root, "data-presenter", on() ? null : "on");
    put($("#presenter"), "aria-pressed", String(on()));
    light();
    scene.stale = true;
    restyle();
  }

  // light lights the station with the focus, or none, unless a story lights its own.
  function light() {
    const lit = on() && stations()[focused()]?.dataset.station;
    if (!document.body.dataset.story) zoom.frameOn(lit ? [lit] : []);
  }

  /** @param {number} step */
  function walk(step) {
    if (!on()) toggle();
    const [all, at] = [stations(), focused()];
    all.at(at < 0 ? Math.min(0, step) : (at + step) % all.length)?.focus({ preventScroll: true });
  }

  function escape() {
    if (!on() || focused() < 0) return false;
    /** @type {HTMLElement} */ (document.activeElement).blur();
    light();
    return true;
  }

  when(scene.root, "focusin", () => on() && light());
  return { escape, keys: { a: toggle, PageDown: () => walk(1), PageUp: () => walk(-1) } };
}
