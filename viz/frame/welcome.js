// The first view is a mode of the page: the stage with five names, a question, and three ways to continue.

import { $, parts, say } from "../dom/dom.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Scene} scene
 * @property {(r: { resource?: string }) => boolean} here
 */

const recent = 2000; // records searched for the newest creation
const root = document.documentElement;

export class Welcome {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    for (const el of parts(document, "[data-here]")) say(el, (el.dataset.here ?? "").replace("HERE", location.origin));
    $("#first").inert = false;
    if (!this.on) return;
    stage.player.beat.single = true;
    $("#tour-start").focus({ preventScroll: true });
  }

  get on() { return Boolean(root.dataset.first); }

  // again replays, in the first view, the newest creation of an object: a new viewer need not wait for the next one.
  async again() {
    const { player, here } = this.stage;
    const from = Math.max(player.oldest + 1, player.head - recent);
    await player.tape.load(from, player.head + 1).catch(() => {});
    const begun = player.tape.between(from, player.head + 1)
      .findLast((r) => r.point === "TxnCommitted" && r.type === "ADDED" && here(r));
    if (begun && this.on && await player.seek(begun.seq - 1, "live")) player.awaitRest();
  }

  escape() {
    if (!this.on) return false;
    const { scene, player } = this.stage;
    delete root.dataset.first;
    player.beat.single = false;
    localStorage.setItem("first", "seen");
    scene.relay();
    return true;
  }

  draw() {
    if (document.body.dataset.story) this.escape();
  }
}
