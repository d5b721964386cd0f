// @ts-nocheck
// The space-time view: the same records with a line for every goroutine, time from left to right, a column for each
// record, and an arrow for whatever one of them handed to another. It is drawn from the picture before its first
// record, as everything is; where the stage shows one moment, it shows the eighty that led there. All of it is made
// again for each run of records, as SVG, from what handovers.js has traced.

import { $, mark, put, say, svg, when } from "../dom/dom.js";
import { counted, cut } from "../lib/texts.js";
import { milliseconds } from "../lib/times.js";
import { objectKey } from "../log/fold.js";
import { shapeOf } from "../stage/tokens.js";
import { states } from "../stage/waits.js";
import { trace } from "./handovers.js";

const ahead = 20; // columns after the cursor, where time stands
const edge = 6; // columns that the cursor keeps from the ends before the view moves on
const looked = 4000; // records that are looked through for those of the resource
const period = 300; // ms between two drawings while time runs

const room = 80; // columns
const area = { left: 204, right: 1266, top: 46, bottom: 474 }; // of the stage's units
const pitches = [16, 30]; // units from line to line, at least and at most
const grace = 250e6; // ns of the log that a write to a client may last
const tick = 10; // columns from one time to the next

const columnX = (index) => area.left + ((index + 0.5) * (area.right - area.left)) / room;

// element is an SVG element that says what it is to who points at it.
const element = (name, attributes, title, ...content) => svg(name, attributes, ...content, svg("title", {}, title));

export function newSpacetime(stage) {
  const { player, fold, infos, scene, follow } = stage;
  const root = $("#spacetime");
  const ground = $(".ground");
  const part = (name) => root.querySelector(`.${name}`);
  const fill = (name, list) => part(name).replaceChildren(...list);
  const followed = (r) => (follow.matches(r) ? " followed" : "");
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
    if (traced.columns.length > 0) paint(traced);
    else blank("no record of this resource is here");
  }

  function draw(now) {
    if (!open || busy || now - drawnAt < (player.mode === "frozen" ? 0 : period)) return;
    const stream = player.mode === "live" && player.beat.stream;
    if (stream) return blank("too much happens to be read: freeze (Space)");
    if (!stale) return;
    drawnAt = now;
    busy = true;
    build().catch((problem) => blank(problem.message)).finally(() => (busy = false));
  }

  // blank says why there is nothing to be drawn.
  function blank(why) {
    columns = [];
    stale = player.mode !== "frozen"; // while time runs there may soon be something; else another moment may be had
    mark(root, "blank", true);
    say(part("about"), why);
    put(root, "aria-label", `Space-time view: ${why}.`);
    put(root, "data-cursor", 0);
  }

  // moved keeps the view where it is as long as the cursor is well within it.
  function moved() {
    if (!open) return;
    const index = columns.findIndex((c) => c.r.seq >= player.cursor);
    if (busy || player.mode !== "frozen" || index < edge || index > columns.length - 1 - edge) stale = true;
    else showCursor();
  }

  function again() {
    stale = true;
    columns = [];
  }

  // ---- the drawing

  // paint draws what was traced, which has a column at least.
  function paint({ lines, arrows, spans, ...traced }) {
    columns = traced.columns;
    const pitch = Math.min(pitches[1], Math.max(pitches[0], (area.bottom - area.top) / lines.length));
    const rows = Math.floor((area.bottom - area.top) / pitch); // that there is room for; the last is for all beyond
    lines.forEach((l, i) => (l.y = area.top + (Math.min(i, rows - 1) + 0.5) * pitch));
    const beyond = lines.length > rows ? lines.length - rows + 1 : 0;
    const shown = lines.slice(0, rows).map((l, i) => (beyond && i === rows - 1 ? { ...l, beyond, place: true } : l));
    const [first, last] = [columns[0], columns.at(-1)];
    fill("lines", shown.map(({ place, y }) =>
      svg("path", { class: place ? "place" : "", d: `M${area.left} ${y}H${area.right}` })));
    fill("names", shown.map(nameOf));
    fill("spans", spans.map((span) => spanOf(span, last)));
    fill("arrows", arrows.map(arrowOf));
    fill("marks", columns.map(markOf));
    fill("times", columns.filter(({ index }) => index % tick === 0).map(({ r, index }) => {
      const after = index === 0 ? "0 ms" : `+${((r.t - first.r.t) / 1e6).toFixed(2)}`;
      return svg("text", { x: columnX(index), y: area.bottom + 22 }, after);
    }));
    const mine = follow.has() ? columns.filter((c) => follow.matches(c.r)) : []; // the thread joins what is followed
    put(part("thread"), "d", mine.map((c, i) => `${i ? "L" : "M"}${columnX(c.index)} ${c.line.y}`).join(""));
    mark(root, "blank", false);
    Object.assign(root.dataset, { from: first.r.seq, to: last.r.seq });
    const took = columns.length > 1 ? milliseconds(last.r.t - first.r.t) : "no time";
    const [records, on] = [counted(columns.length, "record"), counted(lines.length, "line")];
    say(part("about"), `${records} in ${took}, one column each, not to scale`);
    const words = `${records} on ${on} in ${took}, ${arrows.length} handed over`;
    put(root, "aria-label", `Space-time view: ${words}. The table below has the records in words.`);
    showNames();
    showCursor();
  }

  function nameOf({ title, place, beyond, y }) {
    const whose = place ? "any goroutine that reports there" : "the goroutine of that name";
    const words = beyond ? `${beyond} lines more, for which there is no room` : `${title}: ${whose}`;
    const name = svg("tspan", {}, beyond ? `+${beyond} more` : title);
    return element("text", { class: place ? "place" : "", x: area.left - 10, y: y + 4.5 }, words, name);
  }

  function spanOf({ kind, line, since, from, to }, last) {
    const x = from ? columnX(from.index) : area.left;
    const end = to ? columnX(to.index) : columnX(last.index) + 6;
    // A goroutine also works while it waits for code that it has called, and for a write that goes through.
    const runs = kind === "return" || (kind === "client" && (to ?? last).r.t - since < grace);
    const words = `${line.title} ${states[kind][1]}${to ? `, ${milliseconds(to.r.t - since)}` : ""}`;
    const box = { x, y: line.y - 4, width: Math.max(1, end - x), height: 8, rx: 2 };
    return element("rect", { class: runs ? "runs" : "waits", ...box }, words);
  }

  function arrowOf({ sent, taken, says, queue }) {
    const back = taken.index < sent.index;
    const d = wayOf(columnX(sent.index), sent.line.y, columnX(taken.index), taken.line.y);
    const late = back ? ": the receiver wrote its record before the sender wrote its own, so the arrow points back"
      : `, ${milliseconds(taken.r.t - sent.r.t)}`;
    const look = `arrow ${queue ? "transfer" : "passage"}${followed(sent.r)}${back ? " back" : ""}`;
    const words = `${sent.r.type ?? ""} ${objectKey(sent.r.key ?? "")} ${says}${late}`.trim();
    return element("path", { class: look, d, "data-sent": sent.r.seq, "data-taken": taken.r.seq }, words);
  }

  // markOf is a record: a token if it carries one, or must not be overlooked, else a dot.
  function markOf({ r, line, index }) {
    const flag = stage.isFlag(r);
    const carries = flag || (infos.get(r.point).queue && r.type);
    const token = { href: `#token-${flag ? "error" : shapeOf(r.type)}`, x: -6.5, y: -6.5, width: 13, height: 13 };
    const place = { transform: `translate(${columnX(index)} ${line.y})`, "data-seq": r.seq };
    return element("g", { class: `${flag ? "anomaly" : ""}${followed(r)}`, ...place },
      `${r.seq}: ${cut(stage.says(r), 200)}`, svg("rect", { x: -6.5, y: -8, width: 13, height: 16, class: "target" }),
      carries ? svg("use", token) : svg("circle", { r: 2.6 }));
  }

  // showNames keeps the names in sight where the view is drawn larger than its place and was moved.
  function showNames() {
    const shift = (ground.scrollLeft * scene.geometry.width) / (root.getBoundingClientRect().width || Infinity);
    put(part("margin"), "transform", `translate(${shift} 0)`);
    put(part("shade"), "x", shift > 0 ? 0 : 14); // at rest within the frame
  }

  // showCursor moves the cursor in what is drawn.
  function showCursor() {
    const at = columns.findLast((c) => c.r.seq <= player.cursor)?.index ?? -1;
    put(part("cursor"), "x", columnX(at) - 6.5);
    put(part("cursor"), "visibility", at < 0 ? "hidden" : "inherit");
    put(part("future"), "x", columnX(at) + 6.5);
    put(part("future"), "width", Math.max(0, area.right - columnX(at) - 6.5));
    put(root, "data-cursor", columns[at]?.r.seq ?? 0);
    // On a phone, and for the last row of a room, it is drawn larger than its place.
    if (at < 0 || player.mode !== "frozen" || ground.scrollWidth <= ground.clientWidth) return;
    part("marks").children[at].scrollIntoView({ block: "nearest", inline: "center" });
  }

  when("#view", "click", turn);
  when(ground, "scroll", showNames, { passive: true });
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

// wayOf is the way from one mark to the tip before another. On one line it would hide in it: there it leaps.
function wayOf(x1, y1, x2, y2) {
  const gap = 7;
  if (y1 === y2) return `M${x1} ${y1 - 5}Q${(x1 + x2) / 2} ${y1 - 15} ${x2 - Math.sign(x2 - x1) * 2} ${y2 - gap}`;
  const length = Math.hypot(x2 - x1, y2 - y1);
  return `M${x1} ${y1}L${x2 - ((x2 - x1) * gap) / length} ${y2 - ((y2 - y1) * gap) / length}`;
}
