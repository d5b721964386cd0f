// Actions: what buttons and single keys do that move through the log, at which pace, follow, and act on the cluster.

import { $, below, say, when } from "../dom/dom.js";
import { milliseconds, times } from "../lib/times.js";
import { objectKey } from "../log/fold.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Follow} follow
 * @property {page.Scene} scene
 * @property {page.Motion} motion
 * @property {{ flags: timeline.Flag[] }} timeline
 * @property {() => string} resource on stage
 * @property {(words: string) => void} tell in passing
 * @property {() => boolean | void} escape closes what is open, and returns whether something was
 */

export class Actions {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.speed = 1; // that is shown
    this.keys = this.strokes();
    this.bind();
  }

  /** @param {number} direction */
  toAnomaly(direction) {
    const { player, timeline, tell } = this.stage;
    const from = player.target();
    const flags = timeline.flags.filter((f) => (direction > 0 ? f.seq > from : f.seq < from));
    const next = direction > 0 ? flags[0] : flags.at(-1);
    return next ? player.seek(next.seq) : tell("no other anomaly");
  }

  /** @param {number} direction */
  async toHop(direction) {
    const { player, follow, resource, tell } = this.stage;
    const hop = (/** @type {probe.Record} */ r) => (
      follow.has() ? follow.matches(r) && (r.resource ?? "") === resource() : true);
    if (!(await player.stepTo(direction, hop))) tell("no other hop in the log");
  }

  // toggleFollow stops to follow what was chosen by hand; of what was only written it opens the biography.
  /** @param {string} key */
  toggleFollow(key) {
    const { follow } = this.stage;
    if (!key || (follow.key === key && follow.by === "hand")) follow.clear();
    else follow.set(key);
  }

  toggleNewest() {
    const { follow, scene } = this.stage;
    this.toggleFollow(follow.has() ? "" : objectKey(scene.store.at(-1)?.key ?? ""));
  }

  // setSpeed slows a replay down or lets it run. What is live has no other pace than the program's: slowed down, it
  // becomes a replay that begins here.
  /** @param {number} exponent */
  setSpeed(exponent) {
    const { player, tell } = this.stage;
    player.speed = 10 ** Math.min(1, Math.max(-3, Math.round(exponent * 10) / 10));
    this.draw();
    if (player.mode !== "live" || player.speed === 1) return;
    if (player.speed > 1) return tell("live, nothing is faster than the program");
    player.play();
    tell("slow motion from here; End returns to live");
  }

  // draw shows the speed.
  draw() {
    const { speed } = this.stage.player;
    if (speed === this.speed) return;
    this.speed = speed;
    $("#speed", HTMLInputElement).value = Math.log10(speed).toFixed(1);
    say($("#speed-text"), times(speed));
  }

  /** @param {number} ns */
  skipped(ns) { this.stage.tell(`${milliseconds(ns)} without a record skipped`); }

  escape() {
    const { follow } = this.stage;
    if (document.querySelector(".below:not([hidden])")) below(null);
    else if (follow.has()) follow.clear();
    else return false;
    return true;
  }

  bind() {
    const { player, follow, scene, motion } = this.stage;
    // A panel below the stage has a button that opens and closes it, and one of its own that closes it. A button that
    // names a record leads there.
    when(document, "click", ({ target }) => {
      const { seq } = target.closest("button[data-seq]")?.dataset ?? {};
      if (seq) player.seek(Number(seq));
      const panel = document.getElementById(target.closest("[data-below]")?.getAttribute("aria-controls") ?? "");
      if (panel) below(panel.hidden ? panel : null);
      else if (target.closest('.below [id$="-close"]')) below(null);
    });
    const slider = $("#speed", HTMLInputElement);
    when(slider, "input", () => this.setSpeed(Number(slider.value)));
    when(scene.root, "click", (event) => {
      const token = motion.keyAt(event.clientX, event.clientY, player.clock);
      if (token) event.stopPropagation(); // it is in front of the station
      const key = token || event.target.closest("[data-key]")?.dataset.key;
      if (key) this.toggleFollow(key);
    }, true);
    when("#records", "click", ({ target }) => {
      const { seq, key } = target.closest("tr")?.dataset ?? {};
      const cell = target.closest("td");
      if (cell?.cellIndex === 6 && cell.textContent) follow.set("", cell.textContent);
      else if (cell?.cellIndex === 0) player.seek(Number(seq));
      else if (key) this.toggleFollow(key);
    });
  }

  /** @returns {page.Keys} */
  strokes() {
    const { player, escape } = this.stage;
    const faster = (/** @type {number} */ by) => () => this.setSpeed(Number($("#speed", HTMLInputElement).value) + by);
    return {
      "+": faster(0.3), "=": faster(0.3), "-": faster(-0.3), " ": () => player.toggle(),
      ".": () => player.step(1), ",": () => player.step(-1), ">": () => this.toHop(1), "<": () => this.toHop(-1),
      n: () => this.toAnomaly(1), p: () => this.toAnomaly(-1),
      Home: () => player.seek(player.oldest), End: () => player.live(), f: () => this.toggleNewest(),
      Escape() {
        if (!escape() && document.activeElement instanceof HTMLElement) document.activeElement.blur();
      },
    };
  }
}
