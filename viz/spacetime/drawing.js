// The drawing of the space-time view: lines, marks, arrows and spans as SVG, from what handovers.js has traced. All of
// it is made again for each run of records. Nothing here knows how a handover came about.

import { $, counted, cut, mark, put, say, svg, when } from "../lib/dom.js";
import { milliseconds } from "../lib/times.js";
import { objectKey } from "../log/fold.js";
import { shapeOf } from "../stage/tokens.js";

export const room = 80; // columns
const area = { left: 204, right: 1266, top: 46, bottom: 474 }; // of the stage's units
const pitches = [16, 30]; // units from line to line, at least and at most
const grace = 250e6; // ns of the log that a write to a client may last
const tick = 10; // columns from one time to the next

// deeds say what the line does on which a span is, by the kind of the wait.
const deeds = {
  room: "waits for room", taker: "waits for a receiver", lock: "waits for a lock", version: "waits for a version",
  client: "writes to its client", return: "runs what it calls",
};

const columnX = (index) => area.left + ((index + 0.5) * (area.right - area.left)) / room;

// element is an SVG element that says what it is to who points at it.
const element = (name, attributes, title, ...content) => svg(name, attributes, ...content, svg("title", {}, title));

// newDrawing returns {paint(traced), showCursor(), blank(why)}: paint draws what was traced, which has a column at
// least, showCursor moves the cursor in it, and blank says why there is nothing to be drawn.
export function newDrawing(stage) {
  const { player, infos, scene, follow } = stage;
  const root = $("#spacetime");
  const ground = $(".ground");
  const part = (name) => root.querySelector(`.${name}`);
  const fill = (name, list) => part(name).replaceChildren(...list);
  const followed = (r) => (follow.matches(r) ? " followed" : "");
  let columns = []; // those that are painted

  function blank(why) {
    columns = [];
    mark(root, "blank", true);
    say(part("about"), why);
    put(root, "aria-label", `Space-time view: ${why}.`);
    put(root, "data-cursor", 0);
  }

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
    const words = `${line.title} ${deeds[kind]}${to ? `, ${milliseconds(to.r.t - since)}` : ""}`;
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

  when(ground, "scroll", showNames, { passive: true });
  return { paint, showCursor, blank };
}

// wayOf is the way from one mark to the tip before another. On one line it would hide in it: there it leaps.
function wayOf(x1, y1, x2, y2) {
  const gap = 7;
  if (y1 === y2) return `M${x1} ${y1 - 5}Q${(x1 + x2) / 2} ${y1 - 15} ${x2 - Math.sign(x2 - x1) * 2} ${y2 - gap}`;
  const length = Math.hypot(x2 - x1, y2 - y1);
  return `M${x1} ${y1}L${x2 - ((x2 - x1) * gap) / length} ${y2 - ((y2 - y1) * gap) / length}`;
}
