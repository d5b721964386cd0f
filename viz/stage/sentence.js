// The sentence below the stage describes the moving change or, when the viewer steps, the record at the cursor. Screen
// readers read it from a live region, which changes every two seconds at most, because otherwise they would never stop
// talking. A failure goes to a region that interrupts. During a story, readers read the story's own text instead.

import { $, mark, part, parts, put, say } from "../dom/dom.js";
import { isAlarm } from "../log/fold.js";
import { nearest } from "./ground.js";
import { changeOf } from "./hops.js";
import { guestOf } from "./places.js";

/**
 * @typedef {object} Stage
 * @property {page.Infos} infos
 * @property {page.Scene} scene
 * @property {page.Player} player
 * @property {page.Planner} planner
 * @property {page.Motion} motion
 * @property {() => boolean} drawn whether the screen shows the state at the cursor
 * @property {(r: probe.Record) => boolean} here
 * @property {(r: probe.Record) => string} says
 */

const read = 1000; // the minimum ms that a sentence stays while its change moves
const period = 2000; // the minimum ms while nothing moves, and between two spoken sentences
const looked = 200; // the number of records searched for the newest one of a change

export class SentenceBar {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.bar = $("#sentence");
    /** @type {probe.Record | null} */
    this.alarm = null; // a failure for the next sentence
    /** @type {probe.Record | null} */
    this.told = null; // the record of the current sentence
    this.toldAt = 0;
    this.reported = ""; // the station of that record
    this.spoken = ""; // the last spoken text; spokenAt is its time
    this.spokenAt = -Infinity;
  }

  get seq() { return this.told?.seq ?? 0; }

  /** @param {probe.Record} r */
  alarms(r) { return isAlarm(this.stage.infos.get(r.point), r); }

  /** @param {probe.Record[]} list */
  applied(list) { this.alarm ??= list.find((r) => this.stage.here(r) && this.alarms(r)) ?? null; }

  // newest returns the newest record of the moving change or, while nothing moves, of any change on stage.
  newest() {
    const { planner, player: { tape, cursor }, here } = this.stage;
    const change = planner.moves.at(-1)?.change;
    return tape.between(Math.max(1, cursor - looked), cursor + 1)
      .findLast((r) => here(r) && (!change || changeOf(r) === change));
  }

  // draw shows the caption's record or, after time to read or once another change moves, a failure or the newest one.
  /** @param {number} now */
  draw(now) {
    this.speak(now);
    const { told, stage: { drawn, motion: { caption }, planner: { moves }, player: { mode, tape, cursor } } } = this;
    if (mode === "frozen") return this.light();
    const alarms = this.alarm ?? (told && this.alarms(told));
    const change = moves.at(-1)?.change;
    const passed = change && !alarms && (!told || changeOf(told) !== change);
    const reads = !passed && now - this.toldAt < (alarms || change ? read : period);
    const beside = caption && !alarms && !passed && caption.move.seq <= cursor ? tape.get(caption.move.seq) : null;
    const r = beside ?? (reads ? null : this.alarm ?? this.newest());
    if (r && r !== told && drawn()) this.landed(r, now);
    else this.shine();
  }

  /** @param {number} now */
  speak(now) {
    if (now - this.spokenAt < period || document.body.dataset.story) return;
    const text = `${part(this.bar, ".where").textContent}${part(this.bar, ".words").textContent}`;
    if (text === this.spoken) return;
    [this.spoken, this.spokenAt] = [text, now];
    say($(this.bar.classList.contains("anomaly") ? "#alarm" : "#spoken"), text);
  }

  // begins writes the sentence for the moment before the first record.
  /** @param {number} seq */
  begins(seq) {
    this.jumped();
    const gone = "What led here is not in the log any more.";
    this.write(seq, "start", `The first moment there is${seq > 0 ? `. ${gone}` : ": nothing has happened yet."}`);
  }

  // write shows words about a record.
  /** @param {number} seq @param {string} where @param {string} words @param {boolean} [anomaly] */
  write(seq, where, words, anomaly = false) {
    const { bar, told, stage: { scene } } = this;
    put(bar, "data-told", seq);
    put(bar, "class", anomaly ? "sentence anomaly" : "sentence");
    const { subject = "" } = told ?? {};
    const guest = guestOf(scene.places, subject);
    const title = guest ? subject : scene.stations.get(where)?.querySelector(".title")?.textContent ?? where;
    const texts = { at: words && `record ${seq}`, where: title, words };
    for (const [name, text] of Object.entries(texts)) say(part(bar, `.${name}`), text);
    const elsewhere = /^(reflector|fifo|indexer)$/.test(where) && subject !== scene.informer; // not drawn
    this.reported = elsewhere ? "" : where;
    this.light();
  }

  // shine lights the station of the token or, without a token, of the record.
  shine() {
    const { told, reported, stage: { scene, motion, player } } = this;
    const spot = motion.at(told ? changeOf(told) : "", player.clock);
    const lit = spot ? nearest(scene.boxes, spot) : told && guestOf(scene.places, told.subject) ? "" : reported;
    for (const [name, el] of scene.stations) mark(el, "told", name === lit);
  }

  light() {
    this.shine();
    const { told, reported, stage: { scene } } = this;
    const guest = told && guestOf(scene.places, told.subject); // the client's box at the end of its lane
    // What the sentence names gets a frame. A client and a workqueue may share a name, so a lane's station counts, too.
    scene.named = told && !scene.story && !scene.plain ? changeOf(told) : "";
    const whose = [told?.subject, guest?.id];
    for (const lanes of Object.values(scene.lanes)) {
      for (const [id, el] of lanes) {
        const its = el.dataset.watcher || el.closest("[data-station]")?.dataset.station === reported;
        mark(el, "told", Boolean(scene.named && its) && whose.includes(id));
      }
    }
    for (const el of parts(scene.root, ".row, .held use")) {
      mark(el, "told", Boolean(el.object && changeOf(el.object) === scene.named));
    }
  }

  // landed shows the sentence about a record.
  /** @param {probe.Record} r @param {number} now */
  landed(r, now) {
    [this.alarm, this.told, this.toldAt] = [null, r, now];
    this.write(r.seq, this.stage.infos.get(r.point).station, this.stage.says(r), this.alarms(r));
  }

  jumped() {
    [this.alarm, this.told] = [null, null];
    this.write(0, "", "");
  }

  shown() {
    const { bar, told, stage: { player, says } } = this;
    put(bar, "data-seq", player.cursor);
    // the story may have named the record's client only now
    if (told && player.mode === "frozen") say(part(bar, ".words"), says(told));
  }
}
