// The space-time view: the same records with a line for every goroutine, time from left to right, a column for each
// record, and an arrow for whatever one of them handed to another. It is drawn from the picture before its first
// record, as everything is; where the stage shows one moment, it shows the eighty that led there. All of it is made
// again for each run of records, as SVG, from what handovers.js has traced.

import { $, mark, part, put, say, svg, when } from "../dom/dom.js";
import { refusal } from "../lib/api.js";
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
/** @type {{ left: number, right: number, top: number, bottom: number }} of the stage's units (layout.go) */
const area = JSON.parse($("#spacetime").dataset.area ?? "");
const pitches = [16, 30]; // units from line to line, at least and at most
const grace = 250e6; // ns of the log that a write to a client may last
const tick = 10; // columns from one time to the next

/** @param {number} index */
const columnX = (index) => area.left + ((index + 0.5) * (area.right - area.left)) / room;

/**
 * @typedef {import("./handovers.js").Column} Column
 * @typedef {import("./handovers.js").Arrow} Arrow
 * @typedef {import("./handovers.js").Span} Span
 * @typedef {import("./lines.js").Line} Line
 * @typedef {Line & { y: number, beyond: number }} Row a line as it is drawn
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {import("../log/fold.js").Fold} fold
 * @property {page.Scene} scene
 * @property {page.Follow} follow
 * @property {(r: { resource?: string }) => boolean} here
 * @property {(r: probe.Record) => boolean} isFlag must it not be overlooked?
 * @property {(r: probe.Record) => string} says
 */

// element is an SVG element that says what it is to who points at it.
/**
 * @param {string} name @param {import("../dom/dom.js").Attributes} attributes @param {string} title
 * @param {Element[]} content
 */
const element = (name, attributes, title, ...content) => svg(name, attributes, ...content, svg("title", {}, title));

export class Spacetime {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.root = $("#spacetime");
    this.ground = $(".ground");
    /** @type {{ [name: string]: string }} */
    this.turned = {}; // the switches with which the program runs
    this.open = false;
    this.stale = false; // something happened that is not drawn
    this.busy = false;
    this.drawnAt = 0;
    /** @type {Column[]} */
    this.columns = []; // those that are drawn
    this.keys = { v: () => this.turn() };
    when("#view", "click", () => this.turn());
    when(this.ground, "scroll", () => this.showNames(), { passive: true });
    when(this.root, "click", ({ target }) => {
      const seq = Number(target.closest("[data-seq]")?.dataset.seq);
      if (seq) stage.player.seek(seq);
    });
    this.showView();
  }

  /** @param {string} name */
  part(name) { return part(this.root, `.${name}`); }
  /** @param {string} name @param {Element[]} list */
  fill(name, list) { this.part(name).replaceChildren(...list); }

  turn() {
    this.open = !this.open;
    this.root.toggleAttribute("hidden", !this.open);
    this.again();
    this.showView();
  }

  showView() {
    const name = this.open ? "space-time" : "loop";
    say($("#view"), `View: ${name}`);
    put(document.body, "data-view", name);
  }

  // range returns the first and the last record to be drawn: so many of the resource on stage around the cursor, as far
  // as no record is missing.
  range() {
    const { player: { tape, cursor, head, oldest, mode }, here } = this.stage;
    const last = mode === "frozen" ? Math.min(head, cursor + looked) : cursor;
    const known = tape.between(Math.max(oldest + 1, cursor - looked), last + 1);
    const at = known.findLastIndex((r) => r.seq <= cursor);
    const mine = known.filter((r, i) => r.seq - i === cursor - at && here(r)); // none is missing between
    const after = mine.filter((r) => r.seq > cursor).slice(0, ahead);
    const before = mine.filter((r) => r.seq <= cursor).slice(after.length - room);
    return [before[0]?.seq ?? cursor + 1, after.at(-1)?.seq ?? cursor];
  }

  async build() {
    const { player, fold, here } = this.stage;
    const { tape, cursor, oldest, head, mode } = player;
    this.stale = false;
    // What has left the log is not to be had: then there is less to be drawn.
    const [from, to] = [Math.max(oldest + 1, cursor - 10 * room), Math.min(head, cursor + 10 * ahead) + 1];
    if (mode === "frozen") await tape.load(from, to).catch(() => {});
    const [first, last] = this.range();
    const before = await tape.stateAt(Math.max(oldest, first - 1));
    if (!this.open) return;
    if (tape !== player.tape) return this.again();
    const traced = trace(fold, this.turned, before, tape.between(before.seq + 1, last + 1), here);
    if (traced.columns.length > 0) this.paint(traced);
    else this.blank("no record of this resource is here");
  }

  /** @param {number} now */
  draw(now) {
    const { player } = this.stage;
    const frozen = player.mode === "frozen";
    if (!this.open || this.busy || now - this.drawnAt < (frozen ? 0 : period)) return;
    const stream = player.mode === "live" && player.beat.stream;
    if (stream) return this.blank("too much happens to be read: freeze (Space)");
    if (!this.stale) return;
    this.drawnAt = now;
    this.busy = true;
    this.build().catch((problem) => this.blank(refusal(problem).message)).finally(() => (this.busy = false));
  }

  // blank says why there is nothing to be drawn.
  /** @param {string} why */
  blank(why) {
    this.columns = [];
    // while time runs there may soon be something; else another moment may be had
    this.stale = this.stage.player.mode !== "frozen";
    mark(this.root, "blank", true);
    say(this.part("about"), why);
    put(this.root, "aria-label", `Space-time view: ${why}.`);
    put(this.root, "data-cursor", 0);
  }

  // moved keeps the view where it is as long as the cursor is well within it.
  moved() {
    if (!this.open) return;
    const { columns, stage: { player } } = this;
    const index = columns.findIndex((c) => c.r.seq >= player.cursor);
    if (this.busy || player.mode !== "frozen" || index < edge || index > columns.length - 1 - edge) this.stale = true;
    else this.showCursor();
  }

  again() {
    this.stale = true;
    this.columns = [];
  }

  begin() { this.again(); }
  resource() { this.again(); }
  applied() { this.moved(); }
  jumped() { this.moved(); }
  landed() { this.moved(); }
  followed() { this.stale = true; }
  /** @param {page.Switches} now */
  switches(now) { this.turned = now ?? {}; }

  // ---- the drawing

  // paint draws what was traced, which has a column at least.
  /** @param {ReturnType<typeof trace>} traced */
  paint({ lines, arrows, spans, columns }) {
    const { root, stage: { follow } } = this;
    this.columns = columns;
    const [first, last] = [columns[0], columns[columns.length - 1]];
    const shown = rowsOf(lines);
    this.fill("lines", shown.map(({ place, y }) =>
      svg("path", { class: place ? "place" : "", d: `M${area.left} ${y}H${area.right}` })));
    this.fill("names", shown.map(nameOf));
    this.fill("spans", spans.map((span) => spanOf(span, last)));
    this.fill("arrows", arrows.map((arrow) => arrowOf(arrow, this.followedOf(arrow.sent.r))));
    this.fill("marks", columns.map((column) => this.markOf(column)));
    this.fill("times", columns.filter(({ index }) => index % tick === 0).map(({ r, index }) => {
      const after = index === 0 ? "0 ms" : `+${((r.t - first.r.t) / 1e6).toFixed(2)}`;
      return svg("text", { x: columnX(index), y: area.bottom + 22 }, after);
    }));
    const mine = follow.has() ? columns.filter((c) => follow.matches(c.r)) : []; // the thread joins what is followed
    const thread = mine.map((c, i) => `${i ? "L" : "M"}${columnX(c.index)} ${c.line.y}`).join("");
    put(this.part("thread"), "d", thread);
    mark(root, "blank", false);
    put(root, "data-from", first.r.seq);
    put(root, "data-to", last.r.seq);
    const took = columns.length > 1 ? milliseconds(last.r.t - first.r.t) : "no time";
    const [records, on] = [counted(columns.length, "record"), counted(lines.length, "line")];
    say(this.part("about"), `${records} in ${took}, one column each, not to scale`);
    const words = `${records} on ${on} in ${took}, ${arrows.length} handed over`;
    put(root, "aria-label", `Space-time view: ${words}. The table below has the records in words.`);
    this.showNames();
    this.showCursor();
  }

  /** @param {probe.Record} r */
  followedOf(r) { return this.stage.follow.matches(r) ? " followed" : ""; }

  // markOf is a record: a token if it carries one, or must not be overlooked, else a dot.
  /** @param {Column} column */
  markOf({ r, line, index }) {
    const { fold, isFlag, says } = this.stage;
    const flag = isFlag(r);
    const carries = flag || (fold.infos.get(r.point).queue && r.type);
    const token = { href: `#token-${flag ? "error" : shapeOf(r.type)}`, x: -6.5, y: -6.5, width: 13, height: 13 };
    const place = { transform: `translate(${columnX(index)} ${line.y})`, "data-seq": r.seq };
    return element("g", { class: `${flag ? "anomaly" : ""}${this.followedOf(r)}`, ...place },
      `${r.seq}: ${cut(says(r), 200)}`, svg("rect", { x: -6.5, y: -8, width: 13, height: 16, class: "target" }),
      carries ? svg("use", token) : svg("circle", { r: 2.6 }));
  }

  // showNames keeps the names in sight where the view is drawn larger than its place and was moved.
  showNames() {
    const wide = this.root.getBoundingClientRect().width || Infinity;
    const shift = (this.ground.scrollLeft * this.stage.scene.geometry.width) / wide;
    put(this.part("margin"), "transform", `translate(${shift} 0)`);
    put(this.part("shade"), "x", shift > 0 ? 0 : 14); // at rest within the frame
  }

  // showCursor moves the cursor in what is drawn.
  showCursor() {
    const { columns, ground, stage: { player } } = this;
    const at = columns.findLast((c) => c.r.seq <= player.cursor)?.index ?? -1;
    put(this.part("cursor"), "x", columnX(at) - 6.5);
    put(this.part("cursor"), "visibility", at < 0 ? "hidden" : "inherit");
    put(this.part("future"), "x", columnX(at) + 6.5);
    put(this.part("future"), "width", Math.max(0, area.right - columnX(at) - 6.5));
    put(this.root, "data-cursor", columns[at]?.r.seq ?? 0);
    // On a phone, and for the last row of a room, it is drawn larger than its place.
    if (at < 0 || player.mode !== "frozen" || ground.scrollWidth <= ground.clientWidth) return;
    this.part("marks").children[at].scrollIntoView({ block: "nearest", inline: "center" });
  }
}

// rowsOf gives lines their places, as many as there is room for; the last is for all beyond.
/** @param {Line[]} lines @returns {Row[]} */
function rowsOf(lines) {
  const pitch = Math.min(pitches[1], Math.max(pitches[0], (area.bottom - area.top) / lines.length));
  const rows = Math.floor((area.bottom - area.top) / pitch);
  const all = lines.map((l, i) => Object.assign(l, { y: area.top + (Math.min(i, rows - 1) + 0.5) * pitch, beyond: 0 }));
  const beyond = lines.length > rows ? lines.length - rows + 1 : 0;
  return all.slice(0, rows).map((l, i) => (beyond && i === rows - 1 ? { ...l, beyond, place: true } : l));
}

/** @param {Row} row */
function nameOf({ title, place, beyond, y }) {
  const whose = place ? "any goroutine that reports there" : "the goroutine of that name";
  const words = beyond ? `${beyond} lines more, for which there is no room` : `${title}: ${whose}`;
  const name = svg("tspan", {}, beyond ? `+${beyond} more` : title);
  return element("text", { class: place ? "place" : "", x: area.left - 10, y: y + 4.5 }, words, name);
}

/** @param {Span} span @param {Column} last */
function spanOf({ kind, line: { title, y = 0 }, since, from, to }, last) {
  const x = from ? columnX(from.index) : area.left;
  const end = to ? columnX(to.index) : columnX(last.index) + 6;
  // A goroutine also works while it waits for code that it has called, and for a write that goes through.
  const runs = kind === "return" || (kind === "client" && (to ?? last).r.t - since < grace);
  const words = `${title} ${states[kind][1]}${to ? `, ${milliseconds(to.r.t - since)}` : ""}`;
  const box = { x, y: y - 4, width: Math.max(1, end - x), height: 8, rx: 2 };
  return element("rect", { class: runs ? "runs" : "waits", ...box }, words);
}

/** @param {Arrow} arrow @param {string} followed */
function arrowOf({ sent, taken, says, queue }, followed) {
  const back = taken.index < sent.index;
  const d = wayOf(columnX(sent.index), sent.line.y ?? 0, columnX(taken.index), taken.line.y ?? 0);
  const late = back ? ": the receiver wrote its record before the sender wrote its own, so the arrow points back"
    : `, ${milliseconds(taken.r.t - sent.r.t)}`;
  const look = `arrow ${queue ? "transfer" : "passage"}${followed}${back ? " back" : ""}`;
  const words = `${sent.r.type ?? ""} ${objectKey(sent.r.key ?? "")} ${says}${late}`.trim();
  return element("path", { class: look, d, "data-sent": sent.r.seq, "data-taken": taken.r.seq }, words);
}

// wayOf is the way from one mark to the tip before another. On one line it would hide in it: there it leaps.
/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
function wayOf(x1, y1, x2, y2) {
  const gap = 7;
  if (y1 === y2) return `M${x1} ${y1 - 5}Q${(x1 + x2) / 2} ${y1 - 15} ${x2 - Math.sign(x2 - x1) * 2} ${y2 - gap}`;
  const length = Math.hypot(x2 - x1, y2 - y1);
  return `M${x1} ${y1}L${x2 - ((x2 - x1) * gap) / length} ${y2 - ((y2 - y1) * gap) / length}`;
}
