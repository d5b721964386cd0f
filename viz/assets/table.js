// The table: everything that was reported, in words. Its rows are made once and written anew, newest first; while the
// pointer or the keyboard is on it, it holds still.

import { cut, mark, say } from "./dom.js";
import { isAnomaly, objectKey, sentence } from "./fold.js";

const rows = 80;
const period = 150; // ms
const calmPeriod = 1000; // ms, when every row is another one each time: nobody reads so fast

export function newTable(infos, follow) {
  const body = document.querySelector("#records");
  const section = body.closest("section");
  let newest = [];
  let dirty = false;
  let written = 0;
  let forced = false;
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
    written = -Infinity;
    while (body.childElementCount > list.length) body.lastElementChild.remove();
    add(list);
    forced = true;
  }

  // draw writes what is new; player says which row is the cursor's.
  function draw(now, player) {
    point(player.mode === "live" ? 0 : player.cursor);
    const read = player.mode !== "frozen" && section.matches(":hover, :focus-within, :focus");
    if (!dirty || (!forced && (now - written < (fresh > rows ? calmPeriod : period) || read))) return;
    forced = false;
    fresh = 0;
    written = now;
    dirty = false;
    while (body.childElementCount < newest.length) body.append(row());
    for (let i = 0; i < newest.length; i++) fill(body.children[i], newest[newest.length - 1 - i]);
  }

  let pointed = null;
  function point(cursor) {
    const row = cursor > 0 ? body.querySelector(`tr[data-seq="${cursor}"]`) : null;
    if (row === pointed) return;
    pointed?.removeAttribute("aria-current");
    pointed = row;
    row?.setAttribute("aria-current", "true");
  }

  function fill(tr, r) {
    const info = infos.get(r.point);
    const cells = tr.children;
    say(cells[0], String(r.seq));
    say(cells[1], (r.t / 1e6).toFixed(1));
    say(cells[2], info.station);
    say(cells[3], cut(r.subject ?? "", 24));
    say(cells[4], cut(r.type ?? "", 12));
    say(cells[5], cut(objectKey(r.key ?? ""), 40));
    say(cells[6], r.rv ?? "");
    say(cells[7], cut(sentence(info, r), 240));
    mark(tr, "anomaly", isAnomaly(info, r));
    mark(tr, "followed", follow.matches(r));
    tr.dataset.seq = r.seq;
    tr.dataset.key = objectKey(r.key ?? "");
  }

  return { add, show, draw, touch: () => (dirty = forced = true) };
}

function row() {
  const tr = document.createElement("tr");
  for (let i = 0; i < 8; i++) {
    const td = document.createElement("td");
    if (i === 0 || i === 1 || i === 6) td.className = "n";
    tr.append(td);
  }
  return tr;
}
