// Figure: the stage as a chapter's mini-stage. The chapter writes into the page's address which moment is shown; the
// figure shows the station at which it happened, whole.

import { $, parts, when } from "../dom/dom.js";

/** @typedef {{ player: page.Player, scene: page.Scene, zoom: page.Zoom }} Stage */

const nearby = 200; // records that are played
const lasts = 2400; // ms

/** @param {Stage} stage @returns {page.Part & { ready?: () => void }} */
export function newFigure({ player, scene, zoom }) {
  if (!document.body.classList.contains("figure")) return {};
  const ground = $(".ground");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let [shown, station, named] = ["", "", ""]; // as the address says them
  $("#legend").style.visibility = "hidden"; // half of it would be cut

  // show comes to the moment in the address, and lights the part that the chapter's reader points at. It says to the
  // chapter what is shown by a message: a file may not look into another one.
  async function show() {
    const { at = "", part = "", kind, ...place } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (part !== named) name((named = part), kind);
    if (at === shown) return;
    [shown, station] = [at, place.station ?? ""];
    if (!(await go(Number(at)))) return; // the reader is elsewhere by now
    look();
    parent.postMessage({ shows: at }, "*");
  }

  // go comes to a record: what is a few steps on is shown as it happens.
  /** @param {number} seq */
  function go(seq) {
    const on = seq - player.cursor;
    return on > 0 && on <= nearby && !still.matches ? player.playTo(seq, { within: lasts }) : player.seek(seq);
  }

  // name lights the part that the chapter's reader points at, or none. One that is out of sight is brought to the
  // middle.
  /** @param {string} part @param {string} [kind] */
  function name(part, kind) {
    parts(scene.root, ".named").forEach((other) => other.classList.remove("named"));
    const found = parts(scene.root, `[data-${kind === "queue" ? "queue" : "station"}="${part}"]`);
    for (const el of found) {
      el.classList.add("named");
      el.dataset.kind = kind ?? "";
    }
    if (found.length === 0) return look();
    const [spot, place] = [found[0], ground].map((el) => el.getBoundingClientRect());
    const near = found[0].closest("[data-station]")?.dataset.station;
    if ((spot.left < place.left || spot.right > place.right) && near) zoom.around(near);
  }

  function look() {
    const el = scene.stations.get(station);
    if (!el) return;
    document.querySelectorAll(".station.lit").forEach((other) => other.classList.remove("lit"));
    el.classList.add("lit");
    zoom.around(station);
  }

  new ResizeObserver(look).observe(ground);
  return {
    // ready is called when the recording is on the stage.
    ready() {
      when(window, "hashchange", show);
      show();
    },
  };
}
