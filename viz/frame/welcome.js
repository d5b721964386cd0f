// The first view: the stage with five names, a question, and three ways on. It is a look of the same page, which ends
// with Escape and with everything that puts something else on the stage. A later visit says where the viewer was.

import { $, copied, part, parts, put, say, when } from "../dom/dom.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Scene} scene
 * @property {(r: { resource?: string }) => boolean} here
 * @property {(id: string, at: { beat: number }) => unknown} openStory
 * @typedef {{ words: string, story: string, beat: number }} Place where the viewer was
 */

const storage = { seen: "first", last: "last-time" };
const recent = 2000; // records
const patience = 60000; // ms without a watch, after which the page says what to check
const root = document.documentElement;

export class Welcome {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.commands = $("#first-commands");
    this.state = $("#first-state");
    this.back = $("#last-time");
    this.asked = 0; // when the commands were shown
    this.told = "";
    /** @type {Place | null} */
    this.last = JSON.parse(localStorage.getItem(storage.last) ?? "null");
    if (this.last) {
      say(this.back, `Last time: ${this.last.words}. Go on`);
      this.back.hidden = false;
    }
    this.bind();
    for (const el of parts(document, "[data-here]")) say(el, (el.dataset.here ?? "").replace("HERE", location.origin));
    $("#first").inert = false;
    if (this.on) this.show();
  }

  get on() { return Boolean(root.dataset.first); }

  show() {
    const { scene, player } = this.stage;
    root.dataset.first = "asks";
    scene.relay();
    player.single = true;
    $("#tour-start").focus({ preventScroll: true });
  }

  // again lets the newest change that began with a new object travel once more: a new viewer need not wait for the
  // next one.
  async again() {
    const { player, here } = this.stage;
    const from = Math.max(player.oldest + 1, player.head - recent);
    await player.tape.load(from, player.head + 1).catch(() => {});
    const begun = player.tape.between(from, player.head + 1)
      .findLast((r) => r.point === "TxnCommitted" && r.type === "ADDED" && here(r));
    if (begun && this.on) await player.seek(begun.seq - 1, "live");
  }

  leave() {
    if (!this.on) return false;
    const { scene, player } = this.stage;
    delete root.dataset.first;
    player.single = false;
    localStorage.setItem(storage.seen, "seen");
    scene.relay();
    scene.stale = true;
    return true;
  }

  escape() { return this.leave(); }

  wait() {
    const { commands } = this;
    root.dataset.first = commands.hidden ? "kubectl" : "asks";
    commands.hidden = !commands.hidden;
    $("#first-kubectl").ariaExpanded = String(!commands.hidden);
    this.asked = performance.now();
    if (!commands.hidden) part(commands, "button").focus({ preventScroll: true });
  }

  // greet looks for a watch of kubectl among the watchers on stage.
  /** @param {number} now */
  greet(now) {
    const lanes = [...this.stage.scene.places.watchers.lanes.values()];
    const theirs = lanes.some(({ subject }) => subject.texts.WireOpened?.agent?.startsWith("kubectl"));
    if (theirs || this.state.dataset.watch !== "here") {
      put(this.state, "data-watch", theirs ? "here" : now - this.asked > patience ? "late" : "waits");
    }
  }

  /** @param {number} now */
  draw(now) {
    if (root.dataset.first === "kubectl") this.greet(now);
    const place = where();
    if (!place || place.words === this.told) return;
    this.leave();
    this.back.hidden = true;
    this.told = place.words;
    localStorage.setItem(storage.last, JSON.stringify(place));
  }

  bind() {
    when("#first-kubectl", "click", () => this.wait());
    when("#first", "click", ({ target }) => {
      if ("copy" in target.dataset) copy(target);
    });
    when(this.back, "click", () => {
      this.back.hidden = true;
      if (this.last?.story) this.stage.openStory(this.last.story, { beat: this.last.beat });
    });
  }
}

/** @param {HTMLElement} button */
async function copy(button) {
  const code = button.previousElementSibling;
  const done = await copied(code?.textContent ?? "");
  if (!done && code) getSelection()?.selectAllChildren(code);
  say(button, done ? "Copied" : "Selected");
}

// where is what a later visit can go back to.
/** @returns {Place | null} */
function where() {
  const { story, beat } = document.body.dataset;
  return story ? { words: `the story ${story}, beat ${beat}`, story, beat: Number(beat) - 1 } : null;
}
