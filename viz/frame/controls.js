// Controls: the buttons and the dialog by which a viewer acts on the cluster.

import { $, parts, say, when } from "../dom/dom.js";
import { refusal } from "../lib/api.js";
import { createPod, deletePod, getPod, openWatcher, patchPod } from "../lib/cluster.js";
import { cut } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";

/**
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {page.Follow} follow
 * @property {() => string} resource on stage
 * @property {() => boolean} held is the world held?
 */

const colours = ["blue", "green", "amber", "rose"];
const apps = ["web", "db", "cache"];
const inDefault = "default/";
/** @param {string} key */
const nameOf = (key) => key.slice(inDefault.length);

export class Controls {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.dialog = $("#watcher-dialog", HTMLDialogElement);
    this.quiet = 0;
    this.turn = 0;
    // by is what a button does, and its key: nothing where the button is not offered.
    const by = (/** @type {string} */ id, /** @type {() => Promise<void>} */ act) => () => {
      const button = $(id, HTMLButtonElement);
      if (!button.closest("[hidden], [data-laid] [data-acts]") && !button.disabled) this.attempt(button, act);
    };
    this.keys = {
      c: by("#create-pod", () => this.create()),
      m: by("#change-pod", () => this.change()),
      d: by("#delete-pod", () => this.remove()),
      w: by("#add-watcher", async () => this.dialog.showModal()),
    };
    when("#watcher-form", "submit", (event) => this.submitWatcher(event));
    when("#watcher-cancel", "click", () => this.dialog.close());
  }

  // tell says something in passing.
  /** @param {string} text @param {boolean} [refused] */
  tell(text, refused = false) {
    const notice = $("#notice");
    notice.textContent = cut(text, 160);
    notice.classList.toggle("refused", refused);
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => (notice.textContent = ""), refused ? 8000 : 3000);
  }

  // attempt acts once at a time.
  /** @param {HTMLButtonElement} button @param {() => Promise<void>} act */
  async attempt(button, act) {
    button.disabled = true;
    if (this.stage.held() && button.id !== "add-watcher") {
      this.tell("the world is held: the request is paused at its first point until you resume");
    }
    await act().catch((problem) => this.tell(refusal(problem).message, true));
    button.disabled = false;
  }

  async create() {
    const { follow, held } = this.stage;
    const from = this.turn;
    const labels = { app: apps[from % apps.length], colour: colours[0] };
    // In a held world it is followed from its request on: no answer comes before it has been moved to its commit.
    if (held()) follow.wrote(`default/${letters(from)}`);
    const key = await createPod((n) => letters((this.turn = from + n)), labels);
    this.turn++;
    follow.wrote(key);
    this.tell(`created ${nameOf(key)}`);
  }

  // shown names the pod that is followed on the buttons, which work while it is there.
  shown() {
    const { follow: { key }, scene, resource } = this.stage;
    const there = key.startsWith(inDefault) && resource() === "pods"
      && scene.store.some((row) => objectKey(row.key) === key);
    for (const place of parts(document, "[data-followed]")) {
      say(place, there ? key : "the followed pod");
      if (place.parentElement instanceof HTMLButtonElement) place.parentElement.disabled = !there;
    }
  }

  async change() {
    const { key } = this.stage.follow;
    const { labels } = (await getPod(key)).metadata;
    const colour = colours[(colours.indexOf(labels?.colour ?? "") + 1) % colours.length];
    await patchPod(key, { metadata: { labels: { colour } } });
    this.tell(`${nameOf(key)}: colour=${colour}`);
  }

  async remove() {
    const { key } = this.stage.follow;
    await deletePod(key);
    this.tell(`deleted ${nameOf(key)}`);
  }

  /** @param {SubmitEvent} event */
  async submitWatcher(event) {
    event.preventDefault();
    /** @type {{ [name: string]: string | boolean }} */
    const options = { resource: this.stage.resource() };
    for (const el of $("#watcher-form", HTMLFormElement).elements) {
      const { name, type, checked, value } = /** @type {HTMLInputElement} */ (el);
      if (name) options[name] = type === "checkbox" ? checked : value.trim();
    }
    const refused = await openWatcher(options).then(() => "", (problem) => cut(refusal(problem).message, 300));
    say($("#watcher-refused"), refused);
    if (refused) return;
    this.dialog.close();
    this.tell("added a watcher");
  }
}

// letters counts a, b, … z, aa, ab, …
/** @param {number} n @returns {string} */
function letters(n) {
  const last = String.fromCharCode(97 + (n % 26));
  return n < 26 ? last : letters(Math.floor(n / 26) - 1) + last;
}
