// The space-time view: a line for each goroutine, a column for each record, an arrow for each hand-over (handovers.js).

import { $, asking, mark, part, put, say, svg, when } from "../dom/dom.js";
import { refusal } from "../lib/api.js";
import { counted, cut, milliseconds } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";
import { shapeOf } from "../stage/tokens.js";
import { trace } from "./handovers.js";

/**
 * @typedef {import("./handovers.js").Column} Column
 * @typedef {import("./handovers.js").Arrow} Arrow
 * @typedef {import("./handovers.js").Line} Line
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {import("../log/fold.js").Fold} fold
 * @property {page.Follow} follow
 * @property {(r: { resource?: string }) => boolean} here
 * @property {(r: probe.Record) => boolean} isFlag whether a record is an anomaly
 * @property {(r: probe.Record) => string} says
 */

const looked = 800; // records searched for those of the resource
const period = 300; // ms between two drawings while time runs
const room = 80; // the maximum number of columns
/** @type {{ left: number, right: number, top: number, bottom: number }} in units of the stage (layout.go) */
const area = JSON.parse($("#spacetime").dataset.area ?? "");
const pitches = [16, 30]; // the minimum and the maximum distance between two lines, in units

/** @param {Column} column */
const columnX = ({ index }) => area.left + ((index + 0.5) * (area.right - area.left)) / room;

export class Spacetime {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.root = $("#spacetime");
    this.delta = false; // set by -fifo=delta
    this.open = false;
    this.stale = false; // whether the drawing is out of date
    this.renew = asking(() => this.build().catch((problem) => this.blank(refusal(problem).message)));
    this.keys = { v: () => this.turn(!this.open) };
    when("#view", "click", this.keys.v);
    this.turn(false);
  }

  /** @param {boolean} open */
  turn(open) {
    this.open = this.stale = open;
    this.root.toggleAttribute("hidden", !open);
    const name = open ? "space-time" : "loop";
    say($("#view"), `View: ${name}`);
    put(document.body, "data-view", name);
  }

  /** @param {page.Switches} now */
  switches(now) { this.delta = now?.fifo === "delta"; }
  shown() { this.stale = this.open; }

  /** @param {number} now */
  draw(now) {
    const { player: { mode, beat } } = this.stage;
    if (!this.stale) return;
    if (mode === "live" && beat.stream) this.blank("too much happens to be read: freeze (Space)");
    else this.renew(now, mode === "frozen" ? 0 : period);
  }

  // build draws the last records of the resource on stage up to the cursor, without a gap, at most 80 (room).
  async build() {
    const { player, fold, here } = this.stage;
    const { tape, cursor, oldest, mode } = player;
    this.stale = false;
    const from = Math.max(oldest + 1, cursor - looked);
    if (mode === "frozen") await tape.load(from, cursor + 1).catch(() => {}); // some may have left the log
    const known = tape.between(from, cursor + 1);
    const whole = known.slice(known.findLastIndex((r, i) => r.seq !== cursor - known.length + 1 + i) + 1);
    const [first] = whole.filter(here).slice(-room);
    if (!first) return this.blank("no record of this resource is here");
    const before = await tape.stateAt(first.seq - 1);
    if (tape !== player.tape) this.stale = true;
    else if (this.open) this.paint(trace(fold, this.delta, before, tape.between(first.seq, cursor + 1), here));
  }

  /** @param {string} why */
  blank(why) {
    this.stale = false;
    mark(this.root, "blank", true);
    say(part(this.root, ".about"), why);
    put(this.root, "aria-label", `Space-time view: ${why}.`);
    put(this.root, "data-cursor", 0);
  }

  // paint draws a trace with at least one column.
  /** @param {ReturnType<typeof trace>} traced */
  paint({ lines, arrows, columns }) {
    const { root } = this;
    const rows = rowsOf(lines);
    const yOf = (/** @type {Column} */ { line }) => rows.find(({ ids }) => ids.has(line.id))?.y ?? 0;
    const parts = {
      lines: rows.map(({ place, y }) => svg("path", { class: place, d: `M${area.left} ${y}H${area.right}` })),
      names: rows.map(({ place, y, name }) => svg("text", { class: place, x: area.left - 10, y: y + 4.5 }, name)),
      arrows: arrows.map((arrow) => this.arrowOf(arrow, yOf)),
      marks: columns.map((column) => this.markOf(column, yOf(column))),
    };
    for (const [name, list] of Object.entries(parts)) part(root, `.${name}`).replaceChildren(...list);
    mark(root, "blank", false);
    put(root, "data-cursor", columns.at(-1)?.r.seq ?? 0);
    const took = milliseconds((columns.at(-1)?.r.t ?? 0) - columns[0].r.t);
    const records = counted(columns.length, "record");
    say(part(root, ".about"), `${records} in ${took}, one column each, not to scale`);
    const words = `${records} on ${counted(lines.length, "line")} in ${took}, ${arrows.length} handed over`;
    put(root, "aria-label", `Space-time view: ${words}. The table below has the records in words.`);
  }

  /** @param {probe.Record} r */
  lookOf(r) { return this.stage.follow.matches(r) ? " followed" : ""; }

  // markOf returns a record's mark: a token for an anomaly or if a typed item enters or leaves a queue, else a dot.
  /** @param {Column} column @param {number} y */
  markOf(column, y) {
    const { stage: { fold, isFlag, says } } = this;
    const { r } = column;
    const flag = isFlag(r);
    const token = { href: `#token-${flag ? "error" : shapeOf(r.type)}`, x: -6.5, y: -6.5, width: 13, height: 13 };
    const shape = flag || (fold.infos.get(r.point).queue && r.type) ? svg("use", token) : svg("circle", { r: 2.6 });
    return svg("g", { class: `${flag ? "anomaly" : ""}${this.lookOf(r)}`, "data-seq": r.seq,
      transform: `translate(${columnX(column)} ${y})` },
      svg("rect", { x: -6.5, y: -8, width: 13, height: 16, class: "target" }), shape,
      svg("title", {}, `${r.seq}: ${cut(says(r), 200)}`));
  }

  /** @param {Arrow} arrow @param {(column: Column) => number} yOf */
  arrowOf({ sent, taken, says, queue }, yOf) {
    const back = taken.index < sent.index;
    const [[x1, y1], [x2, y2]] = [sent, taken].map((column) => [columnX(column), yOf(column)]);
    const arc = y1 === y2 ? 12 : 0; // an arc above the line that both ends are on
    const late = back ? ": the receiver wrote its record before the sender wrote its own, so the arrow points back"
      : `, ${milliseconds(taken.r.t - sent.r.t)}`;
    return svg("path", {
      class: `arrow ${queue ? "transfer" : "passage"}${this.lookOf(sent.r)}${back ? " back" : ""}`,
      d: `M${x1} ${y1}Q${(x1 + x2) / 2} ${(y1 + y2) / 2 - arc} ${x2} ${y2}`,
      "data-sent": sent.r.seq, "data-taken": taken.r.seq,
    }, svg("title", {}, `${sent.r.type ?? ""} ${objectKey(sent.r.key ?? "")} ${says}${late}`.trim()));
  }
}

// rowsOf gives lines rows from top to bottom. If some do not fit, the last row is for all remaining lines.
/** @param {Line[]} lines */
function rowsOf(lines) {
  const pitch = Math.min(pitches[1], Math.max(pitches[0], (area.bottom - area.top) / lines.length));
  const n = Math.min(lines.length, Math.floor((area.bottom - area.top) / pitch));
  return lines.slice(0, n).map(({ id, title, place }, i) => {
    const all = i === n - 1 ? lines.slice(i) : [];
    return { y: area.top + (i + 0.5) * pitch, ids: new Set([id, ...all.map((line) => line.id)]),
      place: place || all.length > 1 ? "place" : "", name: all.length > 1 ? `+${all.length} more` : title };
  });
}
