// Figure: the stage as a chapter's mini-stage. The chapter writes the moment into this page's address.

import { $, mark, parts, when } from "../dom/dom.js";

/** @typedef {{ player: page.Player, scene: page.Scene, zoom: page.Zoom }} Stage */

const nearby = 200; // the maximum number of records to play rather than skip
const lasts = 2400; // the ms that playing them takes

/** @param {Stage} stage @returns {page.Part & { ready?: () => void }} */
export function newFigure({ player, scene, zoom }) {
  if (!document.body.classList.contains("figure")) return {};
  const ground = $(".ground");
  let [shown, station, named] = ["", "", ""]; // the values last read from the address

  // show moves to the moment in the address, and lights the part that the reader points at. It sends the chapter a
  // message with the shown moment, because a page opened from disk may not access another one.
  async function show() {
    const { at = "", part = "", kind, ...place } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (part !== named) name((named = part), kind);
    if (at === shown) return;
    [shown, station] = [at, place.station ?? ""];
    const [seq, on] = [Number(at), Number(at) - player.cursor];
    const near = on > 0 && on <= nearby && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!(await (near ? player.playTo(seq, { within: lasts }) : player.seek(seq)))) return; // the reader has moved on
    look();
    parent.postMessage({ shows: at }, "*");
  }

  // name lights the part that the reader points at, or none. The camera moves to the station of a part out of sight.
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
    for (const each of parts(scene.root, ".station")) mark(each, "lit", each === el);
    zoom.around(station);
  }

  new ResizeObserver(look).observe(ground);
  return { ready: () => { when(window, "hashchange", show); show(); } };
}
