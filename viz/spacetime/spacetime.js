// The space-time view: the same records with a line for every goroutine, time from left to right, a column for each
// record, and an arrow for whatever one of them handed to another. It is drawn from the picture before its first
// record, as everything is; where the stage shows one moment, it shows the eighty that led there.

import { $, put, say, when } from "../lib/dom.js";
import { newDrawing, room } from "./drawing.js";
import { trace } from "./handovers.js";

const ahead = 20; // columns after the cursor, where time stands
const edge = 6; // columns that the cursor keeps from the ends before the view moves on
const looked = 4000; // records that are looked through for those of the resource
const period = 300; // ms between two drawings while time runs

export function newSpacetime(stage) {
  const { player, fold } = stage;
  const root = $("#spacetime");
  const drawing = newDrawing(stage);
  let modes = {}; // the switches with which the program runs
  let open = false;
  let stale = false; // something happened that is not drawn
  let busy = false;
  let drawnAt = 0;
  let columns = []; // those that are drawn

  function turn() {
    open = !open;
    root.toggleAttribute("hidden", !open);
    again();
    showView();
  }

  function showView() {
    const name = open ? "space-time" : "loop";
    say($("#view"), `View: ${name}`);
    put(document.body, "data-view", name);
  }

  // range returns the first and the last record to be drawn: so many of the resource on stage around the cursor, as far
  // as no record is missing.
  function range() {
    const { tape, cursor, head, oldest } = player;
    const last = player.mode === "frozen" ? Math.min(head, cursor + looked) : cursor;
    const known = tape.between(Math.max(oldest + 1, cursor - looked), last + 1);
    const at = known.findLastIndex((r) => r.seq <= cursor);
    const mine = known.filter((r, i) => r.seq - i === cursor - at && stage.here(r)); // none is missing between
    const after = mine.filter((r) => r.seq > cursor).slice(0, ahead);
    const before = mine.filter((r) => r.seq <= cursor).slice(after.length - room);
    return [before[0]?.seq ?? cursor + 1, after.at(-1)?.seq ?? cursor];
  }

  async function build() {
    const { tape, cursor, oldest, head, mode } = player;
    stale = false;
    // What has left the log is not to be had: then there is less to be drawn.
    const [from, to] = [Math.max(oldest + 1, cursor - 10 * room), Math.min(head, cursor + 10 * ahead) + 1];
    if (mode === "frozen") await tape.load(from, to).catch(() => {});
    const [first, last] = range();
    const before = await tape.stateAt(Math.max(oldest, first - 1));
    if (!open) return;
    if (tape !== player.tape) return again();
    const traced = trace(fold, modes, before, tape.between(before.seq + 1, last + 1), stage.here);
    if (traced.columns.length === 0) return blank("no record of this resource is here");
    columns = traced.columns;
    drawing.paint(traced);
  }

  function draw(now) {
    if (!open || busy || now - drawnAt < (player.mode === "frozen" ? 0 : period)) return;
    const stream = player.mode === "live" && stage.motion.level > 0;
    if (stream) return blank("too much happens to be read: freeze (Space)");
    if (!stale) return;
    drawnAt = now;
    busy = true;
    build().catch((problem) => blank(problem.message)).finally(() => (busy = false));
  }

  function blank(why) {
    columns = [];
    stale = player.mode !== "frozen"; // while time runs there may soon be something; else another moment may be had
    drawing.blank(why);
  }

  // moved keeps the view where it is as long as the cursor is well within it.
  function moved() {
    if (!open) return;
    const index = columns.findIndex((c) => c.r.seq >= player.cursor);
    if (busy || player.mode !== "frozen" || index < edge || index > columns.length - 1 - edge) stale = true;
    else drawing.showCursor();
  }

  function again() {
    stale = true;
    columns = [];
  }

  when("#view", "click", turn);
  when(root, "click", (event) => {
    const seq = Number(event.target.closest("[data-seq]")?.dataset.seq);
    if (seq) player.seek(seq);
  });
  showView();
  return {
    draw, begin: again, resource: again, applied: moved, jumped: moved, landed: moved,
    switches: (now = {}) => (modes = now),
    followed: () => (stale = true),
    keys: [[["v"], "view: the loop, or space-time", turn]],
  };
}
