// Actions: buttons and single keys that move through the log, set the speed, and follow an object.

import { $, below, copied, say, when } from "../dom/dom.js";
import { times } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Follow} follow
 * @property {page.Scene} scene
 * @property {{ flags: timeline.Flag[] }} timeline
 * @property {() => string} resource the resource on stage
 * @property {(words: string) => void} tell shows words for a moment
 * @property {() => boolean | void} escape closes what is open, and reports whether anything was open
 */

export class Actions {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.slider = $("#speed", HTMLInputElement);
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
    const hop = (/** @type {probe.Record} */ r) => follow.matches(r) && (r.resource ?? "") === resource();
    if (!(await player.stepTo(direction, follow.has() ? hop : () => true))) tell("no other hop is near");
  }

  // toggleFollow follows an object, or stops following it. Without a key, it stops, or starts with the newest object.
  toggleFollow(key = this.stage.follow.has() ? "" : objectKey(this.stage.scene.store.at(-1)?.key ?? "")) {
    const { follow, tell } = this.stage;
    follow.set(follow.key === key ? "" : key);
    if (follow.has()) tell(`following ${key}: F ends it`);
  }

  // setSpeed sets a replay's speed, as a power of ten. In live mode, a speed below 1 begins a replay at the cursor.
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

  draw() {
    const { speed } = this.stage.player;
    this.slider.value = Math.log10(speed).toFixed(1);
    say($("#speed-text"), times(speed));
  }

  escape() {
    const { follow } = this.stage;
    if (document.querySelector(".below:not([hidden])")) below(null);
    else if (follow.has()) follow.clear();
    else return false;
    return true;
  }

  bind() {
    const { player, follow, scene, tell } = this.stage;
    // By its target, a click seeks a record, copies data-copy or else the text before it, or opens or closes a panel.
    when(document, "click", ({ target }) => {
      const { seq } = target.closest("button[data-seq], #spacetime [data-seq]")?.dataset ?? {};
      if (seq) player.seek(Number(seq));
      const copies = target.closest("[data-copy]");
      const text = copies?.dataset.copy || copies?.previousElementSibling?.textContent;
      if (text) copied(text).then((done) => tell(done ? "copied" : text));
      const panel = document.getElementById(target.closest("[data-below]")?.getAttribute("aria-controls") ?? "");
      if (panel) below(panel.hidden ? panel : null);
      else if (target.closest('.below [id$="-close"]')) below(null);
    });
    when(this.slider, "input", () => this.setSpeed(Number(this.slider.value)));
    when(scene.root, "click", ({ target }) => {
      const { key } = target.closest("[data-key]")?.dataset ?? {};
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
    const faster = (/** @type {number} */ by) => () => this.setSpeed(Number(this.slider.value) + by);
    return {
      "+": faster(0.3), "=": faster(0.3), "-": faster(-0.3), " ": () => player.toggle(),
      ".": () => player.step(1), ",": () => player.step(-1), ">": () => this.toHop(1), "<": () => this.toHop(-1),
      n: () => this.toAnomaly(1), p: () => this.toAnomaly(-1),
      Home: () => player.seek(player.oldest), End: () => player.live(), f: () => this.toggleFollow(),
      Escape() {
        if (!escape() && document.activeElement instanceof HTMLElement) document.activeElement.blur();
      },
    };
  }
}
