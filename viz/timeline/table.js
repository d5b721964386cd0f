// The table: everything that was reported up to the cursor, in words, newest first. Its rows are made once; the oldest
// row is written again for the newest record. While the pointer or the keyboard is on it, it holds still.

import { $, cut, make, mark, say } from "../lib/dom.js";
import { isAlarm, objectKey } from "../log/fold.js";

const rows = 40;

export function newTable(stage) {
  const { infos, follow, player } = stage;
  const body = $("#records");
  const section = body.closest("section");
  let newest = [];
  let dirty = false;
  let forced = false; // every row is to be written
  let fresh = 0; // records since the last writing

  function add(list) {
    fresh += list.length;
    newest.push(...list.slice(-rows));
    if (newest.length > rows) newest.splice(0, newest.length - rows);
    dirty = true;
  }

  // show replaces everything: another moment is on stage.
  function show(list) {
    newest = [];
    while (body.childElementCount > list.length) body.lastElementChild.remove();
    add(list);
    forced = true;
  }

  // draw writes what is new, and marks the row of which the sentence speaks, or, frozen, the cursor's.
  function draw() {
    if (!stage.drawn) return;
    write();
    point(player.mode === "frozen" ? player.cursor : stage.telling.told());
  }

  function write() {
    const read = player.mode !== "frozen" && section.matches(":hover, :focus-within, :focus");
    if (!dirty || (!forced && read)) return;
    while (body.childElementCount < newest.length) body.prepend(row());
    const n = forced ? newest.length : Math.min(fresh, newest.length);
    if (!forced) for (let i = 0; i < n; i++) body.prepend(body.lastElementChild);
    for (let i = 0; i < n; i++) fill(body.children[i], newest[newest.length - 1 - i]);
    forced = dirty = false;
    fresh = 0;
  }

  let pointed; // a row
  function point(cursor) {
    const seq = String(cursor); // in no selector: the browser would keep each that it has read
    const row = [...body.rows].find((tr) => tr.dataset.seq === seq);
    if (row === pointed) return;
    pointed?.removeAttribute("aria-current");
    pointed = row;
    row?.setAttribute("aria-current", "true");
  }

  function fill(tr, r) {
    const info = infos.get(r.point);
    const key = objectKey(r.key ?? "");
    const who = [info.station, cut(stage.called(r), 24), cut(r.type ?? "", 12), cut(key, 40), r.rv ?? ""];
    const texts = [String(r.seq), (r.t / 1e6).toFixed(1), ...who, cut(stage.says(r), 240)];
    texts.forEach((text, i) => say(tr.children[i], text));
    mark(tr, "anomaly", isAlarm(info, r));
    mark(tr, "followed", follow.matches(r));
    tr.dataset.seq = r.seq;
    tr.dataset.key = key;
  }

  return { applied: add, show, draw, followed: () => (dirty = forced = true) };
}

const row = () => make("tr", {}, ...["n", "n", "", "", "", "", "n", ""].map((className) => make("td", { className })));
