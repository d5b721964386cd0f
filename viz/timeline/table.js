// The table: everything that was reported up to the cursor, in words, newest first. Its rows are made once; the oldest
// row is written again for the newest record. While the pointer or the keyboard is on it, it holds still.

import { $, make, mark, pool, say } from "../dom/dom.js";
import { cut } from "../lib/texts.js";
import { isAlarm, objectKey } from "../log/fold.js";

/**
 * @typedef {object} Stage
 * @property {page.Infos} infos
 * @property {page.Follow} follow
 * @property {page.Player} player
 * @property {() => boolean} drawn is what is on screen the picture of the cursor?
 * @property {() => number} told the record of which the sentence speaks
 * @property {(r: probe.Record) => string} called
 * @property {(r: probe.Record) => string} says
 */

const rows = 40;

/** @param {Stage} stage */
export function newTable(stage) {
  const { infos, follow, player } = stage;
  const body = $("#records", HTMLTableSectionElement);
  const section = /** @type {HTMLElement} */ (body.closest("section"));
  let written = -1; // the cursor for which it is written
  let forced = false; // every row is to be written, although it is read
  const force = () => (forced = true);

  // draw writes what is new, and marks the row of which the sentence speaks, or, frozen, the cursor's.
  function draw() {
    if (!stage.drawn()) return;
    const read = player.mode !== "frozen" && section.matches(":hover, :focus-within, :focus");
    if (forced || (!read && written !== player.cursor)) write();
    point(player.mode === "frozen" ? player.cursor : stage.told());
  }

  function write() {
    const list = player.tape.between(Math.max(1, player.cursor - rows + 1), player.cursor + 1).reverse();
    const top = list.findIndex((r) => String(r.seq) === body.firstElementChild?.dataset.seq);
    const n = forced || top < 0 ? list.length : top; // so many rows are new
    pool(body, list.length, row);
    for (let i = 0; i < n; i++) body.prepend(...[...body.children].slice(-1));
    for (let i = 0; i < n; i++) fill(body.children[i], list[i]);
    [written, forced] = [player.cursor, false];
  }

  // point goes through the rows: the browser would keep each selector with a number in it.
  /** @param {number} cursor */
  function point(cursor) {
    for (const tr of body.rows) {
      const current = tr.dataset.seq === String(cursor) ? "true" : null;
      if (tr.ariaCurrent !== current) tr.ariaCurrent = current;
    }
  }

  /** @param {Element} tr @param {probe.Record} r */
  function fill(tr, r) {
    const info = infos.get(r.point);
    const key = objectKey(r.key ?? "");
    const who = [info.station, cut(stage.called(r), 24), cut(r.type ?? "", 12), cut(key, 40), r.rv ?? ""];
    const texts = [String(r.seq), (r.t / 1e6).toFixed(1), ...who, cut(stage.says(r), 240)];
    texts.forEach((text, i) => say(tr.children[i], text));
    mark(tr, "anomaly", isAlarm(info, r));
    mark(tr, "followed", follow.matches(r));
    tr.dataset.seq = String(r.seq);
    tr.dataset.key = key;
  }

  return { draw, begin: force, jumped: force, resource: force, followed: force };
}

const row = () => make("tr", {}, ...["n", "n", "", "", "", "", "n", ""].map((className) => make("td", { className })));
