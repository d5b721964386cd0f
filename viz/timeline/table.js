// The table: the last 40 records up to the cursor, in words, newest first. While records play and the pointer or the
// focus is in the table, its rows stay, until the viewer jumps or chooses another resource or object.

import { $, make, mark, pool, say } from "../dom/dom.js";
import { cut } from "../lib/texts.js";
import { isAlarm, objectKey } from "../log/fold.js";

/**
 * @typedef {object} Stage
 * @property {page.Infos} infos
 * @property {page.Follow} follow
 * @property {page.Player} player
 * @property {() => boolean} drawn whether the screen shows the state at the cursor
 * @property {() => number} told the seq of the sentence's record
 * @property {(r: probe.Record) => string} called
 * @property {(r: probe.Record) => string} says
 */

const rows = 40;

/** @param {Stage} stage */
export function newTable(stage) {
  const { infos, follow, player } = stage;
  const body = $("#records", HTMLTableSectionElement);
  const section = /** @type {HTMLElement} */ (body.closest("section"));
  let written = ""; // the cursor and the marked record at the last write
  const force = () => (written = "");

  // draw writes the rows, and marks the row of the sentence's record or, while frozen, of the cursor.
  function draw() {
    const { cursor, mode, tape } = player;
    const marked = mode === "frozen" ? cursor : stage.told();
    const read = written && mode !== "frozen" && section.matches(":hover, :focus-within, :focus");
    if (!stage.drawn() || read || written === `${cursor} ${marked}`) return;
    const list = tape.between(Math.max(1, cursor - rows + 1), cursor + 1).reverse();
    pool(body, list.length, row);
    list.forEach((r, i) => fill(body.rows[i], r, marked));
    written = `${cursor} ${marked}`;
  }

  /** @param {HTMLElement} tr @param {probe.Record} r @param {number} marked */
  function fill(tr, r, marked) {
    const info = infos.get(r.point);
    const key = objectKey(r.key ?? "");
    const who = [info.station, cut(stage.called(r), 24), cut(r.type ?? "", 12), cut(key, 40), r.rv ?? ""];
    const texts = [String(r.seq), (r.t / 1e6).toFixed(1), ...who, cut(stage.says(r), 240)];
    texts.forEach((text, i) => say(tr.children[i], text));
    mark(tr, "anomaly", isAlarm(info, r));
    mark(tr, "followed", follow.matches(r));
    tr.ariaCurrent = r.seq === marked ? "true" : null;
    tr.dataset.seq = String(r.seq);
    tr.dataset.key = key;
  }

  return { draw, begin: force, jumped: force, resource: force, followed: force };
}

const row = () => make("tr", {}, ...["n", "n", "", "", "", "", "n", ""].map((className) => make("td", { className })));
