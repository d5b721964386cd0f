// Telling: the one sentence below the stage. It speaks of the change that is on its way; when the viewer steps, of the
// record at the cursor. For those who listen instead of look it is spoken: a live region that changed with every
// sentence would never stop talking, so it changes every two seconds at most, and an anomaly interrupts. While a story
// is told, the story speaks.

import { $, mark, part, parts, put, say } from "../dom/dom.js";
import { isAlarm } from "../log/fold.js";
import { stationsOf } from "./ground.js";
import { changeOf } from "./hops.js";

/**
 * @typedef {object} Stage
 * @property {page.Infos} infos
 * @property {page.Scene} scene
 * @property {page.Player} player
 * @property {page.Planner} planner
 * @property {page.Motion} motion
 * @property {() => boolean} drawn is what is on screen the picture of the cursor?
 * @property {(r: probe.Record) => boolean} here
 * @property {(r: probe.Record) => string} says
 */

const read = 1000; // ms that a sentence stays at least, if its change does
const period = 2000; // … where nothing travels, and from one that is spoken to the next
const looked = 1000; // records in which the newest one of a change is looked for

export class SentenceBar {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.bar = $("#sentence");
    this.change = ""; // that is on its way
    /** @type {probe.Record | null} */
    this.next = null; // the newest record that the sentence may turn to
    /** @type {probe.Record | null} */
    this.alarm = null; // one of which it has to speak
    /** @type {probe.Record | null} */
    this.told = null; // the record that it is about
    this.toldAt = 0;
    this.reported = ""; // the station where that was
    this.movedAt = 0;
    this.spoken = ""; // what was spoken, and when
    this.spokenAt = -Infinity;
  }

  get seq() { return this.told?.seq ?? 0; }

  /** @param {probe.Record} r */
  alarms(r) { return isAlarm(this.stage.infos.get(r.point), r); }

  // turnTo notes which change is on its way. Of another one there is nothing more to be said.
  /** @param {string} name */
  turnTo(name) {
    if (name === this.change) return;
    const { player, here } = this.stage;
    const led = player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1);
    [this.change, this.next] = [name, led.findLast((r) => changeOf(r) === name && here(r)) ?? null];
  }

  /** @param {probe.Record[]} list */
  applied(list) {
    for (const r of list.filter(this.stage.here)) {
      if (this.alarms(r)) this.alarm ??= r;
      if (!this.change || changeOf(r) === this.change) this.next = r;
    }
  }

  // passed reports whether the sentence is not about the change that is on its way.
  passed() { return !this.told || (changeOf(this.told) !== this.change && !this.alarms(this.told)); }

  // draw turns to another record when the sentence has been read, or when its change is not the one in the air any
  // more.
  /** @param {number} now */
  draw(now) {
    this.speak(now);
    if (this.stage.player.mode === "frozen") return this.light();
    if (!this.stage.drawn()) return;
    const moving = this.stage.planner.moves.at(-1)?.change;
    if (moving) {
      this.turnTo(moving);
      this.movedAt = now;
    } else if (now - this.movedAt > read) this.change = ""; // it has arrived
    const stays = now - this.toldAt < (moving || this.alarm ? read : period);
    if (stays && !(moving && this.next && this.passed())) return;
    const r = this.alarm ?? this.next;
    if (r) this.landed(r, now);
  }

  /** @param {number} now */
  speak(now) {
    if (now - this.spokenAt < period || document.body.dataset.story) return;
    const text = `${part(this.bar, ".where").textContent}${part(this.bar, ".words").textContent}`;
    if (text === this.spoken) return;
    [this.spoken, this.spokenAt] = [text, now];
    say($(this.bar.classList.contains("anomaly") ? "#alarm" : "#spoken"), text);
  }

  // begins is said where no record leads to: before the first one there is.
  /** @param {number} seq */
  begins(seq) {
    this.jumped();
    this.told = null;
    const gone = "What led here is not in the log any more.";
    this.write(seq, "start", `The first moment there is${seq > 0 ? `. ${gone}` : ": nothing has happened yet."}`);
  }

  // write says words about a record, and lights the station where its token is; without one, where it was reported.
  /** @param {number} seq @param {string} where @param {string} words @param {boolean} [anomaly] */
  write(seq, where, words, anomaly = false) {
    const { bar, told, stage: { scene } } = this;
    put(bar, "data-told", seq);
    put(bar, "class", anomaly ? "sentence anomaly" : "sentence");
    const title = scene.stations.get(where)?.querySelector(".title")?.textContent ?? where;
    const texts = { at: `record ${seq}`, where: title, words };
    for (const [name, text] of Object.entries(texts)) say(part(bar, `.${name}`), text);
    const elsewhere = /^(reflector|fifo|indexer)$/.test(where) && told?.subject !== scene.informer;
    this.reported = elsewhere ? "" : where; // that client is not drawn
    this.light();
  }

  light() {
    const { told, reported, stage: { scene, motion, player } } = this;
    const spot = motion.at(told ? changeOf(told) : "", player.clock);
    const lit = spot ? nearest(scene, spot) : reported;
    for (const [name, el] of scene.stations) mark(el, "told", name === lit);
    // What the sentence names has a frame: lanes, rows and tokens. A client may be called as a workqueue is.
    scene.named = told && !scene.story && !scene.plain ? changeOf(told) : "";
    for (const lanes of Object.values(scene.lanes)) {
      for (const [id, el] of lanes) {
        const its = el.dataset.watcher || el.closest("[data-station]")?.dataset.station === reported;
        mark(el, "told", Boolean(scene.named && its) && id === told?.subject);
      }
    }
    for (const el of parts(scene.root, ".row, .held use")) {
      mark(el, "told", Boolean(el.object && changeOf(el.object) === scene.named));
    }
  }

  // landed tells of a record.
  /** @param {probe.Record} r @param {number} now */
  landed(r, now) {
    [this.next, this.alarm, this.told, this.toldAt] = [null, null, r, now];
    this.write(r.seq, this.stage.infos.get(r.point).station, this.stage.says(r), this.alarms(r));
  }

  jumped() { [this.change, this.next, this.alarm] = ["", null, null]; }

  shown() {
    const { bar, told, stage: { player, says } } = this;
    put(bar, "data-seq", player.cursor);
    // with this picture its client may have got the name that it has in the story
    if (told && player.mode === "frozen") say(part(bar, ".words"), says(told));
  }
}

// nearest is the station whose box is nearest to a spot.
/** @param {page.Scene} scene @param {import("./ground.js").Spot} spot */
function nearest(scene, [x, y]) {
  const off = (/** @type {probe.Station} */ name) => {
    const { X, Y, W, H } = scene.boxOf(name);
    return Math.max(X - x, x - X - W, Y - y, y - Y - H);
  };
  return stationsOf(scene.geometry).reduce((a, b) => (off(b) < off(a) ? b : a));
}
