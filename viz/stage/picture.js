// The picture: the frame on screen as plain data, for tests and for the browser's console. It is read from what is
// drawn, not from the fold, so that a test finds a wrong drawing. Browser tests read each field by its name.

import { $, part, parts } from "../dom/dom.js";
import { objectKey } from "../log/fold.js";
import { heldIn } from "./pipe.js";

/**
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {page.Motion} motion
 * @property {page.Planner} planner
 * @property {page.Player} player
 * @property {() => probe.Waiting[]} waiting the goroutines that are held
 * @typedef {{ key: string, rv: string }} Token
 * @typedef {Token & { owner: string, in: string, x: number, y: number, alpha: number }} Drawn in: its queue or
 *   station, "" while it moves
 * @typedef {{ text: string, x: number, y: number, w: number, h: number, moves?: boolean }} Text in CSS pixels
 * @typedef {object} Picture
 * @property {number} cursor
 * @property {number} newest
 * @property {string | undefined} mode
 * @property {number} pace
 * @property {number} behind the player's lag, in ms
 * @property {{ key: string, rv: string, state: string, ms: number, hops: number } | null} own the viewer's change
 *   on its way, or the last one
 * @property {{ seq: number, text: string }} banner the sentence below the stage
 * @property {{ words: string, row: string }} said the sentence, and its row in the table, or ""
 * @property {{ seq: number }} table
 * @property {{ name: string, owner: string, len: number, cap: number, slotted: boolean, tokens: Token[] }[]} queues
 * @property {{ station: string, owner: string, n: number, rows: Token[], more: number }[]} shelves
 * @property {ReturnType<page.Planner["travelling"]>} moving
 * @property {(Token & { owner: string, point: string, in: string })[]} ahead the next places of tokens
 * @property {Drawn[]} drawn
 * @property {number} pile the number of changes that begin after the cursor
 * @property {number} level 3 for a stream, otherwise 0
 * @property {{ start: number, end: number, capacity: number }} ring
 * @property {(Token & { at: string, station: string, goroutine: string })[]} held
 * @property {{ n: number, full: number, closed: number, waiting: number }} crowd
 * @property {Text[]} texts
 */

/** @param {{ key?: string, rv?: string }} t @returns {Token} */
const token = (t) => ({ key: objectKey(t.key ?? ""), rv: t.rv ?? "0" });
/** @param {Element} el @param {string} name */
const number = (el, name) => Number(el.getAttribute(name) ?? 0);

// readPicture returns the picture; without texts it is cheap enough for every frame.
/** @param {Stage} stage @param {{ texts?: boolean }} [how] @returns {Picture} */
export function readPicture(stage, { texts: wanted = true } = {}) {
  const { scene, planner, player, motion } = stage;
  const { mode, seq } = document.body.dataset;
  const { start, end, capacity } = scene.station("ring").dataset;
  const { n, full, closed, waiting } = scene.crowd;
  const star = player.own.star ?? player.own.elsewhere;
  // the table is empty at the beginning of a recording
  const top = document.querySelector("#records tr");
  const said = saidNow();
  return {
    cursor: Number(seq), newest: player.head, mode, pace: player.beat.times, behind: player.lag(),
    own: star && { key: star.key, rv: star.rv, state: star.state, ms: star.ms, hops: star.came.size - 1 },
    banner: { seq: number($("#sentence"), "data-told"), text: said.words }, said,
    table: { seq: top ? number(top, "data-seq") : Number(seq) },
    queues: queues(scene), shelves: shelves(scene), moving: planner.travelling(), texts: wanted ? texts(stage) : [],
    ahead: motion.nexts.map(({ key, rv, owner, point, of }) => (
      { key, rv, owner, point, in: of ? of.queue || of.in : "" }
    )),
    drawn: drawn(stage), pile: player.beat.after(player.cursor), level: player.beat.stream ? 3 : 0,
    crowd: { n, full, closed, waiting }, ring: { start: Number(start), end: Number(end), capacity: Number(capacity) },
    held: stage.waiting().map(({ key = "", rv, point, station, goroutine }) => (
      { key, rv: String(rv || "0"), at: point, station, goroutine }
    )),
  };
}

/** @param {page.Scene} scene */
function queues(scene) {
  return parts(scene.root, "[data-queue]").map((el) => {
    const slots = el.querySelector(".slots")?.childElementCount ?? 0;
    return {
      name: el.dataset.queue ?? "", owner: el.closest(".lane")?.lane?.id ?? "",
      len: number(el, "data-len"), cap: number(el, "data-cap"),
      slotted: slots > 0, tokens: (el.tokens ?? []).map(token),
    };
  });
}

/** @param {page.Scene} scene */
function shelves(scene) {
  return ["store", "indexer"].map((station) => {
    const rows = parts(scene.station(station), ".row").flatMap((row) => (row.object ? [token(row.object)] : []));
    const n = Number(scene.texts.get(`${station}.n`)?.textContent ?? 0);
    const owner = station === "store" ? "cacher" : scene.informer;
    return { station, owner, n, rows, more: Math.max(0, n - rows.length) };
  });
}

// drawn returns the tokens that move, rest or wait in queues, each with its place in the window, in CSS pixels.
/** @param {Stage} stage @returns {Drawn[]} */
function drawn({ scene, planner, motion, player }) {
  const { view } = scene;
  const ground = $("#stage").getBoundingClientRect();
  const scale = ground.width / view.w;
  /**
   * @param {{ key: string, rv: string, owner: string }} t @param {string} where
   * @param {import("./ground.js").Spot} at
   */
  const told = ({ key, rv, owner }, where, [x, y]) => (
    { key, rv, owner, in: where, x: ground.x + (x - view.x) * scale, y: ground.y + (y - view.y) * scale, alpha: 1 }
  );
  return [
    ...heldIn(scene).map((t) => told(t, t.in, [t.x, t.y])),
    ...[...planner.standing, ...motion.concealed()].map((t) => told(t, t.in, [t.x, t.y])),
    ...motion.flying(player.clock).map((t) => told(t, "", t.now)),
  ];
}

// saidNow returns the sentence below the stage, and the table's words about the same record.
function saidNow() {
  const bar = $("#sentence");
  const seq = part(bar, ".at").textContent?.replace(/\D/g, "");
  const row = [...$("#records", HTMLTableSectionElement).rows].find((tr) => tr.dataset.seq === seq);
  return { words: part(bar, ".words").textContent ?? "", row: row?.lastElementChild?.textContent ?? "" };
}

/** @param {Stage} stage @returns {Text[]} */
function texts({ scene: { view }, motion }) {
  const frame = $("#stage");
  const ground = frame.getBoundingClientRect();
  const scale = ground.width / view.w;
  const seen = (/** @type {Element} */ el) => el.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const fixed = parts(frame, "text, button, .written").filter(seen).map((el) => {
    const { x, y, width: w, height: h } = el.getBoundingClientRect();
    return { text: el.textContent?.trim() ?? "", x, y, w, h };
  });
  const moving = motion.brush.labels.map(([, y, text, left, w]) => ({
    text, x: ground.x + (left - view.x) * scale, y: ground.y + (y - 12 - view.y) * scale, w: w * scale,
    h: 15 * scale, moves: true,
  }));
  return [...fixed.filter(({ text, w, h }) => text && w > 0 && h > 0), ...moving];
}
