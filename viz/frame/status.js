// The status: how much is going on, how much of it is drawn, and where in the log the stage is.

import { $, part, put, say } from "../dom/dom.js";
import { counted } from "../lib/texts.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Planner} planner
 * @property {page.Scene} scene
 * @property {() => [word: string, title: string]} connection
 * @property {() => boolean} program is there one, and is it on stage?
 * @property {() => boolean} held is the world held?
 * @typedef {{ at: number, events: number, records: number }} Count
 */

const second = 1000; // ms: so often the rate is read

// meanings explain the modes that stop something.
/** @type {{ [mode: string]: string }} */
const meanings = {
  frozen: "The picture is frozen at the cursor; the program runs on",
  held: "The program is held: every goroutine stops at its next point",
  replay: "The page shows records of the past", live: "",
};
/** @type {{ [state: string]: string }} */
const words = { connecting: "connecting", reconnecting: "reconnecting", silent: "process stopped" };

export class Status {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {Count} */
    this.rated = { at: 0, events: 0, records: 0 }; // counted when the rate was read
    /** @type {Count | null} */
    this.latest = null; // … and since
    this.readAt = 0;
    this.keys = { u: turnLog };
  }

  // count reads the fold's own counters, so that what was passed over on the way to the page is counted, too.
  /** @param {number} now */
  count(now) {
    const { seq, resources } = this.stage.player.state;
    if (this.latest?.records === seq) return;
    const events = Object.values(resources).reduce((n, res) => n + (res.points.RingAppend ?? 0), 0);
    this.latest = { at: now, events, records: seq };
    if (seq < this.rated.records) this.rated = this.latest;
  }

  /** @param {number} now */
  showRate(now) {
    const { latest, rated } = this;
    if (now - this.readAt < second || !latest) return;
    const span = latest.at - rated.at;
    // Sums come twice a second: what they say is of the time between two of them.
    const timely = span > second / 2 && span < 1.5 * second;
    const rate = (/** @type {number} */ n) => (n > 200 && timely ? Math.round((n * second) / span) : n);
    say($("#rate"), `${counted(rate(latest.events - rated.events), "event")}/s`);
    put($("#rate"), "title", `${rate(latest.records - rated.records)} records/s`);
    [this.rated, this.readAt] = [latest, now];
  }

  // showPace says how much of what comes is drawn, and how late.
  showPace() {
    const { player, planner, scene } = this.stage;
    const { stream } = player.beat;
    say($("#level"), stream ? "as a stream" : "each change travels");
    put($("#level"), "data-level", stream ? 3 : 0);
    const late = player.mode === "live" ? player.lag() / 1000 : 0; // s that the newest record has been waiting
    const travels = planner.moves.length > 0;
    const how = player.sweeping ? "summed up" : travels ? "slowed" : "";
    const share = travels && player.share > 1 && `1 of ${player.share}`;
    const words = [how, share, late >= 0.2 && `${late.toFixed(1)} s behind`];
    scene.text("behind", words.filter(Boolean).join(" · "));
  }

  showTime() {
    const { player, held } = this.stage;
    const mode = player.recording || player.mode === "playing" ? "replay" : player.mode === "live" && held()
      ? "held" : player.mode;
    put(document.body, "data-mode", mode);
    put(document.body, "data-head", player.head);
    const frozen = player.mode === "frozen";
    const button = $("#freeze");
    put(button, "aria-label", frozen ? "Play" : "Freeze");
    put(button, "title", frozen ? "Play (Space)" : "Freeze the picture; the program runs on (Space)");
    put(button, "aria-pressed", frozen);
    put(part(button, "path"), "d", frozen ? "M4 2L14 8L4 14Z" : "M4 3H7V13H4ZM10 3H13V13H10Z");
    put($("#live"), "data-live", player.mode === "live");
    say($("#cursor"), `record ${player.target()}`);
    say($("#behind"), player.recording ? ` of ${player.head}` : ` · ${this.where()}`);
    this.showMode(mode, frozen);
  }

  where() {
    const { player } = this.stage;
    if (player.mode === "live") return "newest";
    return player.behind() > 0 ? `${player.behind()} behind` : "the end";
  }

  /** @param {string} mode @param {boolean} frozen */
  showMode(mode, frozen) {
    const { player, connection, program } = this.stage;
    const [state, title] = connection();
    const broken = state !== "live" && !(player.recording && !program());
    put($("#mode"), "data-state", broken ? state : mode);
    put($("#mode"), "title", broken ? title : meanings[mode] ?? "");
    const lost = player.state.lost > 0 ? `, ${player.state.lost} records lost` : "";
    const calm = mode === "replay" && frozen ? "paused" : mode;
    say($("#mode-text"), broken ? words[state] : calm + lost);
  }

  /** @param {number} now */
  draw(now) {
    this.count(now);
    this.showRate(now);
    this.showPace();
    this.showTime();
  }

  jumped() {
    this.count(performance.now());
    if (this.stage.player.mode !== "live" && this.latest) this.rated = this.latest;
  }
}

// turnLog opens or closes the table of records.
function turnLog() {
  const open = document.body.dataset.log !== "open";
  put(document.body, "data-log", open ? "open" : "closed");
  put($("#open-records"), "aria-expanded", String(open));
}
