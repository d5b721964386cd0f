// Holding the world stops the program itself, not only the view: its gates close and its clock stops. The page shows
// only what the program reports, never what the viewer requested.

import { $, asking, mark, part, parts, put, say, when } from "../dom/dom.js";
import { renew } from "../dom/panel.js";
import { ask, refusal } from "../lib/api.js";
import { squeeze, times } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";
import { shortKey } from "../stage/tokens.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Follow} follow
 * @property {(words: string) => void} tell shows words for a moment
 * @property {(words: string) => void} notice
 * @typedef {hold.Status & { says?: string }} Answer
 * @typedef {probe.Query & { do: string, unattended?: string }} Command a command to the gates
 */

const unattended = "15s"; // the time the world stays held after this page vanishes
const period = 1000; // ms between two readings of the panel while nothing changes

export class Hold {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.panel = $("#world");
    /** @type {Answer | null} */
    this.status = null; // the newest status that the program has sent
    this.stale = true; // whether the panel is older than the status
    this.renew = asking(() => renew("/viz/panel/world", true));
    this.hops = Promise.resolve(); // the last hop of the followed object
    this.own = false; // whether the viewer held something from this page
    /** @type {page.Keys} */
    this.keys = {};
    if ($("#hold").hidden) return; // the program cannot be held
    this.keys = {
      "Shift+ ": () => this.toggle(),
      h: () => (stage.follow.has() ? this.hopFollowed() : this.gate({ do: "step" })),
    };
    this.bind();
  }

  // keeps reports whether this page holds something. The page must then stay connected, or the watchdog resumes all.
  get keeps() { return this.own && this.closed; }
  get held() { return this.status?.held ?? false; }
  get waiting() { return this.closed && this.status ? this.status.waiting : []; }
  get closed() { return Boolean(this.status && (this.status.held || this.status.gates.length > 0)); }

  /** @param {string} url @param {unknown} body */
  command(url, body) {
    return ask("POST", url, body).then((/** @type {Answer} */ answer) => {
      if (answer.says) this.stage.tell(answer.says);
      this.world(answer);
    }, (problem) => this.stage.tell(refusal(problem).message));
  }

  /** @param {Command} command */
  gate(command) {
    this.own ||= command.do === "hold";
    return this.command("/viz/hold", command);
  }

  toggle() { return this.gate(this.closed ? { do: "release" } : { do: "hold", unattended }); }

  // hopFollowed moves the followed object to the next point at which a goroutine is held with it. If the object is in a
  // queue, only the goroutine that takes it moves. Hops run one after the other.
  hopFollowed() {
    const { follow, tell } = this.stage;
    if (!follow.has()) return tell("follow an object first: click it, or press F");
    const { query } = follow;
    this.hops = this.hops.then(() => this.gate({ ...query, rv: query.rv || undefined, do: "walk" }));
  }

  /** @param {Answer} status */
  world(status) {
    const { clock: { paused, speed } } = status;
    const { closed } = this;
    [this.status, this.stale] = [status, true];
    if (this.closed !== closed) this.open(this.closed);
    if (status.letGo && !this.closed) this.stage.notice(`Watchdog: ${status.letGo}.`);
    const gates = status.gates.map((g) => [g.station, g.resource, g.subject].filter(Boolean).join(":"));
    put(document.body, "data-gates", gates.join(" "));
    say($("#world-clock"), paused ? "‖ 0×" : times(speed));
    put($("#world-clock"), "aria-label", `The world's clock ${paused ? "is stopped" : `runs at ${times(speed)}`}`);
    say($("#clock-speed-text"), times(speed));
    for (const glyph of parts(document, "[data-gate-at]")) this.showGate(glyph, status);
  }

  // open opens or closes the panel. The page does so by itself when the program is held or resumed.
  /** @param {boolean} on */
  open(on) {
    this.panel.hidden = !on;
    put($("#world-clock"), "aria-expanded", String(on));
  }

  /** @param {HTMLElement} glyph @param {Answer} status */
  showGate(glyph, { held, gates, opened, waiting }) {
    const { follow } = this.stage;
    const { gateAt = "" } = glyph.dataset;
    const open = opened.some((g) => g.station === gateAt && !g.subject && !g.resource);
    const here = waiting.filter((w) => w.station === gateAt);
    const keys = [...new Set(here.map((w) => w.key ?? "").filter(Boolean))];
    put(glyph, "data-closed", String(gates.some((g) => g.station === gateAt) || (held && !open)));
    put(part(glyph, ".count"), "visibility", here.length > 0 ? "visible" : "hidden");
    say(part(glyph, "text"), here.length);
    say(part(glyph, ".who"), keys[0] ? squeeze(shortKey(keys[0]), 6) : ""); // the first of the held objects
    put(glyph, "aria-label", `${gateAt}: ${keys.join(", ")}`);
    put(glyph, "data-keys", keys.map(objectKey).join(" "));
    mark(glyph, "followed", follow.key !== "" && keys.some((key) => objectKey(key) === follow.key));
  }

  // draw keeps the Hold button's label and the open panel up to date.
  /** @param {number} now */
  draw(now) {
    const [button, { closed }] = [$("#hold"), this];
    say(button, closed ? "Resume" : "Hold");
    put(button, "aria-pressed", String(closed));
    if (this.panel.hidden) return;
    if (this.renew(now, this.stale ? 0 : period)) this.stale = false;
  }

  escape() {
    if (this.panel.hidden) return false;
    this.open(false);
    return true;
  }

  bind() {
    when("#hold", "click", () => this.toggle());
    when("#world-clock", "click", () => this.open(Boolean(this.panel.hidden)));
    when(this.panel, "click", ({ target }) => {
      const { hold, clock } = target.closest("button")?.dataset ?? {};
      const key = target.closest("tr")?.dataset.key;
      if (target.id === "hop-followed") this.hopFollowed();
      else if (hold) this.gate(JSON.parse(hold));
      else if (clock) this.command("/viz/clock", JSON.parse(clock));
      else if (key) this.stage.follow.set(key);
    });
    when(this.panel, "change", ({ target }) => this.command("/viz/clock",
      { speed: 10 ** Number(/** @type {HTMLInputElement} */ (target).value) }));
  }
}
