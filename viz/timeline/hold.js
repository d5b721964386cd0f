// Holding the world: not the view of it but the program itself. The gate is closed and the world's clock is stopped;
// from here it is resumed hop by hop, station by station, or altogether. What is shown is what the program says, never
// what was asked for.

import { $, make, mark, part, parts, pool, put, say, when } from "../dom/dom.js";
import { ask, leave as lastWord, refusal } from "../lib/api.js";
import { cut, squeeze } from "../lib/texts.js";
import { times } from "../lib/times.js";
import { objectKey } from "../log/fold.js";
import { shortKey } from "../stage/tokens.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Follow} follow
 * @property {() => string} resource on stage
 * @property {(words: string) => void} tell in passing
 * @property {(words: string) => void} notice
 * @property {(w: probe.Waiting) => string} called
 * @typedef {hold.Status & { says?: string }} Answer
 * @typedef {probe.Query} Where
 */

const unattended = "15s"; // how long the world stays held when this page is gone without a word
const hidden = "10m"; // … and when it is only out of sight
const rows = 40; // of held goroutines that are shown
const settle = 80; // ms between two settings of the speed
const holdsAll = "Hold the world: every goroutine stops at its next point, and so does the clock (Shift+Space)";
const resumesAll = "Resume: the program runs, and the page shows what is live (Shift+Space)";
const nothingAtAGate = "No goroutine is paused at a gate: each waits for another one, or for the clock.";

export class Hold {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.panel = $("#world");
    this.list = $("#held", HTMLTableSectionElement);
    this.none = $("#hold").hidden; // the program cannot be held
    /** @type {Answer | null} */
    this.status = null; // as the program said last
    this.heard = 0; // when
    /** @type {boolean | undefined} */
    // a viewer wants the panel open though nothing is held, or away (false) although something is
    this.wish = undefined;
    this.turned = 0; // the speed is being set
    this.hops = Promise.resolve(); // of what is followed
    this.own = false; // the viewer held something from this page
    this.going = false; // the page goes away
    /** @type {page.Keys} */
    this.keys = {};
    if (this.none) return;
    this.keys = {
      "Shift+ ": () => this.toggle(), h: () => (stage.follow.has() ? this.hopFollowed() : this.hop()),
    };
    this.bindPanel();
    this.bindPage();
  }

  get held() { return this.status?.held ?? false; }
  get waiting() { return this.closed && this.status ? this.status.waiting : []; }
  get closed() { return Boolean(this.status && (this.status.held || this.status.gates.length > 0)); }

  // command returns how the world is then, null if the program refused.
  /** @param {string} url @param {unknown} body @returns {Promise<Answer | null>} */
  command(url, body) {
    return ask("POST", url, body).then((answer) => this.world(answer), (problem) => {
      this.stage.tell(refusal(problem).message);
      return null;
    });
  }

  /** @param {Where & { do: string, unattended?: string }} body */
  gate(body) { return this.command("/viz/hold", body); }
  /** @param {{ paused?: boolean, advance?: string, speed?: number }} body */
  clock(body) { return this.command("/viz/clock", body); }

  /** @param {Where} [where] */
  close(where) {
    this.own = true;
    return this.gate({ do: "hold", ...where, unattended });
  }

  // away reports whether the viewer has left what is live: the one button then leads back there. A story has its own
  // way out.
  get away() {
    const { player } = this.stage;
    return player.mode !== "live" && !player.recording && !document.body.dataset.story;
  }

  // toggle holds the world. If it is held, or the page shows another moment than the newest, it resumes both.
  toggle() {
    const elsewhere = this.away;
    if (elsewhere) this.stage.player.live();
    if (this.closed) return this.gate({ do: "release" });
    return elsewhere ? null : this.close();
  }

  // hop lets goroutines pass one point, those that are meant, or all; or it walks one object or version.
  /** @param {Where} [where] @param {string} [act] */
  async hop(where, act = "step") {
    if (!this.closed) return this.stage.tell("nothing is held: hold the world first");
    const { says } = (await this.gate({ do: act, ...where })) ?? {};
    if (says) this.stage.tell(says);
  }

  // hopFollowed moves what is followed to the next point at which a goroutine is held with it. If it waits in a queue,
  // the goroutine that is to take it is let go on, and nothing else. One hop is over before the next one begins.
  hopFollowed() {
    const { follow, tell } = this.stage;
    if (!follow.has()) return tell("follow an object first: click it, or press F");
    const { query } = follow;
    this.hops = this.hops.then(() => this.hop({ ...query, rv: query.rv || undefined }, "walk"));
  }

  // ---- what the program says

  /** @param {Answer} status */
  world(status) {
    if (this.none) return status;
    this.status = status;
    this.heard = performance.now();
    this.stage.player.worldPace = status.clock.paused ? 0 : status.clock.speed;
    if (status.letGo && !this.closed) this.stage.notice(`Watchdog: ${status.letGo}.`);
    const gates = status.gates.map((g) => [g.station, g.resource, g.subject].filter(Boolean).join(":"));
    put(document.body, "data-gates", gates.join(" "));
    put(document.body, "data-clock", status.clock.paused ? "paused" : String(status.clock.speed));
    if (!this.closed && this.wish === false) this.wish = undefined;
    this.showPanel();
    this.showClock(status);
    this.showGates(status);
    this.showHeld(status);
    return status;
  }

  showPanel() {
    this.panel.hidden = !(this.wish ?? this.closed);
    put($("#world-clock"), "aria-expanded", String(!this.panel.hidden));
  }

  // showBar writes what the one button does. It has the same place whatever is to be left.
  showBar() {
    const resumes = this.closed || this.away;
    say($("#hold"), resumes ? "Resume" : "Hold");
    put($("#hold"), "title", resumes ? resumesAll : holdsAll);
    put($("#hold"), "aria-pressed", String(this.closed));
    mark($("#hold"), "main", resumes);
  }

  /** @param {Answer} status */
  showClock(status) {
    const { paused, speed } = status.clock;
    say($("#world-clock"), paused ? "❄ 0×" : times(speed));
    put($("#world-clock"), "aria-label", `The world's clock ${paused ? "is stopped" : `runs at ${times(speed)}`}`);
    const words = status.held ? "held" : this.closed ? "gates closed" : paused ? "clock stopped" : "running";
    say($("#world-state"), words);
    put($("#clock-run"), "aria-pressed", String(!paused));
    say($("#clock-run"), paused ? "Run clock" : "Stop clock");
    const slider = $("#clock-speed", HTMLInputElement);
    if (document.activeElement !== slider) slider.value = String(Math.log10(speed));
    say($("#clock-speed-text"), times(speed));
  }

  /** @param {Answer} status */
  showGates(status) {
    const whole = (/** @type {probe.Query[]} */ gates, /** @type {string} */ station) => (
      gates.some((g) => g.station === station && !g.subject && !g.resource));
    const held = (/** @type {string} */ station) => status.held && !whole(status.opened, station);
    for (const button of parts(this.panel, "[data-gate]")) {
      const { gate = "" } = button.dataset;
      put(button, "aria-pressed", String(whole(status.gates, gate) || held(gate)));
    }
    for (const glyph of parts(document, "[data-gate-at]")) {
      const { gateAt = "" } = glyph.dataset;
      put(glyph, "data-closed", String(status.gates.some((g) => g.station === gateAt) || held(gateAt)));
      this.showAtGate(glyph, status.waiting.filter((w) => w.station === gateAt));
    }
  }

  // showAtGate writes what the goroutines at a gate hold: the name of the first object, and that there are more.
  /** @param {HTMLElement} glyph @param {probe.Waiting[]} waiting */
  showAtGate(glyph, waiting) {
    const { follow } = this.stage;
    const keys = [...new Set(waiting.map((w) => w.key ?? "").filter(Boolean))];
    put(part(glyph, ".count"), "visibility", waiting.length > 0 ? "visible" : "hidden");
    say(part(glyph, "text"), waiting.length);
    const name = keys[0] ? squeeze(shortKey(keys[0]), keys.length > 1 ? 4 : 6) : "";
    say(part(glyph, ".who"), keys.length > 1 ? `${name} +${keys.length - 1}` : name);
    put(glyph, "aria-label", `${glyph.dataset.gateAt}: ${keys.join(", ")}`);
    put(glyph, "data-keys", keys.map(objectKey).join(" "));
    mark(glyph, "followed", follow.key !== "" && keys.some((key) => objectKey(key) === follow.key));
  }

  /** @param {Answer} status */
  showHeld(status) {
    const { follow, called } = this.stage;
    const shown = status.waiting.slice(0, rows);
    pool(this.list, shown.length, row);
    shown.forEach((w, i) => {
      const tr = this.list.rows[i];
      tr.held = w;
      const [who, point, what, since] = tr.cells;
      say(who, `${w.goroutine}${w.subject ? ` · ${called(w)}` : ""}`);
      put(who, "title", `${w.function} ${w.line}`);
      say(point, `${w.station} · ${w.point}`);
      put(point, "title", w.says);
      say(what, cut([w.type, w.key, w.rv].filter(Boolean).join(" ") || w.says, 60));
      say(since, `${Math.max(0, w.seconds).toFixed(1)} s`);
      mark(tr, "followed", follow.key !== "" && follow.key === w.key);
    });
    const more = status.waiting.length - shown.length;
    $("#held-none").hidden = shown.length > 0 && more === 0;
    say($("#held-none"), more > 0 ? `and ${more} more` : status.held ? nothingAtAGate : "No goroutine is held.");
  }

  followed() {
    if (this.status) this.showHeld(this.status);
  }

  // draw lets the times go by between two words of the program.
  /** @param {number} now */
  draw(now) {
    if (this.none) return;
    this.showBar();
    const { status } = this;
    if (!status || this.panel.hidden) return;
    const passed = ((now - this.heard) / 1000) * (status.clock.paused ? 0 : status.clock.speed);
    const next = status.clock.next[0];
    const left = next ? Math.max(0, next.in - passed) : 0;
    const soon = next && `next timer: ${next.who}, in ${left.toFixed(left < 10 ? 2 : 0)} s`;
    say($("#world-next"), soon ?? "no timer is set");
    const since = (Date.now() - Date.parse(status.since ?? "")) / 1000;
    say($("#world-since"), status.held ? `for ${since.toFixed(0)} s` : "");
  }

  escape() {
    if (this.none || this.panel.hidden) return false;
    this.wish = false;
    this.showPanel();
    return true;
  }

  // ---- hands

  bindPanel() {
    when("#hold", "click", () => this.toggle());
    when("#hop", "click", () => this.hop());
    when("#hop-followed", "click", () => this.hopFollowed());
    when("#clock-run", "click", () => this.clock({ paused: !this.status?.clock.paused }));
    when("#clock-second", "click", () => this.clock({ advance: "1s" }));
    when("#clock-next", "click", async () => {
      const next = this.status?.clock.next[0];
      const moved = await this.clock({ advance: "next" });
      if (moved && next) this.stage.tell(`the clock has moved to the timer of ${next.who}`);
    });
    when("#world-clock", "click", () => {
      this.wish = Boolean(this.panel.hidden);
      this.showPanel();
    });
    when("#gates", "click", ({ target }) => {
      const button = target.closest("[data-gate]");
      const station = /** @type {probe.Station | undefined} */ (button?.dataset.gate);
      if (station && button?.getAttribute("aria-pressed") === "true") this.gate({ do: "release", station });
      else if (station) this.close({ station });
    });
    when(this.list, "click", ({ target }) => {
      const w = target.closest("tr")?.held;
      if (!w) return;
      const { station, resource = "", subject = "", key = "", rv = "0" } = w;
      if (target.closest("button")) this.hop({ station, resource, subject, key, rv });
      else if (key) this.stage.follow.set(key);
    });
    const slider = $("#clock-speed", HTMLInputElement);
    when(slider, "input", () => {
      clearTimeout(this.turned);
      const speed = 10 ** Number(slider.value);
      say($("#clock-speed-text"), times(speed));
      this.turned = setTimeout(() => this.clock({ speed }), settle);
    });
  }

  // bindPage lets a page that goes say how long to wait for another one to come.
  bindPage() {
    const leave = (/** @type {string} */ time) => (
      this.own && this.closed && lastWord("/viz/hold", { do: "leave", unattended: time }));
    when(window, "pagehide", () => {
      this.going = true;
      leave(unattended);
    });
    when(window, "pageshow", () => (this.going = false));
    when(document, "visibilitychange", () => !this.going && document.hidden && leave(hidden));
  }
}

function row() {
  const button = make("button", { type: "button", title: "Let it pass one point" }, "Hop");
  const cells = ["", "", "", "n", ""].map((className, i) => make("td", { className }, i === 4 ? button : ""));
  return make("tr", {}, ...cells);
}
