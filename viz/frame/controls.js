// Controls: the buttons and the dialog with which a viewer changes the cluster.

import { $, parts, say, when } from "../dom/dom.js";
import { ask, get, refusal } from "../lib/api.js";
import { cut } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";

/**
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {page.Follow} follow
 * @property {() => string} resource the resource on stage
 * @property {() => boolean} held whether the world is held
 */

const colours = ["blue", "green", "amber", "rose"];
const apps = ["web", "db", "cache"];
const inDefault = "default/";
const pods = "/api/v1/namespaces/default/pods";
/** @param {string} key */
const nameOf = (key) => key.slice(inDefault.length);
/** @param {string} key */
const pathOf = (key) => `${pods}/${encodeURIComponent(nameOf(key))}`;

export class Controls {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.dialog = $("#watcher-dialog", HTMLDialogElement);
    this.quiet = 0;
    this.turn = 0;
    // by returns the action for a button and its key. The action does nothing while the button is not offered.
    const by = (/** @type {string} */ id, /** @type {() => Promise<void>} */ act) => () => {
      const button = $(id, HTMLButtonElement);
      if (!button.closest("[hidden], [data-laid] [data-acts]") && !button.disabled) this.attempt(button, act);
    };
    this.keys = {
      c: by("#create-pod", () => this.create()), m: by("#change-pod", () => this.change()),
      d: by("#delete-pod", () => this.remove()), w: by("#add-watcher", async () => this.dialog.showModal()),
    };
    when("#watcher-form", "submit", (event) => this.submitWatcher(event));
    when("#watcher-cancel", "click", () => this.dialog.close());
  }

  /** @param {string} text @param {boolean} [refused] */
  tell(text, refused = false) {
    const notice = $("#notice");
    notice.textContent = cut(text, 160);
    notice.classList.toggle("refused", refused);
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => (notice.textContent = ""), refused ? 8000 : 3000);
  }

  /** @param {HTMLButtonElement} button @param {() => Promise<void>} act */
  async attempt(button, act) {
    $(":popover-open")?.hidePopover(); // a disabled button would not close its list
    button.disabled = true;
    if (this.stage.held() && button.id !== "add-watcher") {
      this.tell("the world is held: the request is paused at its first point until you resume");
    }
    await act().catch((problem) => this.tell(refusal(problem).message, true));
    button.disabled = false;
  }

  async create() {
    const { follow, held } = this.stage;
    const labels = { app: apps[this.turn % apps.length], colour: colours[0] };
    // In a held world, the pod is followed from its request on, because the answer comes only after the commit.
    if (held()) follow.set(inDefault + letters(this.turn));
    const name = await this.post(labels);
    follow.set(inDefault + name);
    this.tell(`created ${name}`);
  }

  // post creates a pod with the next free name, and returns the name.
  /** @param {{ [name: string]: string }} labels @returns {Promise<string>} */
  post(labels) {
    const [name, spec] = [letters(this.turn++), { containers: [{ name: "main", image: "example.com/main:1" }] }];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec };
    return ask("POST", pods, pod).then(() => name, (problem) => {
      if (refusal(problem).status === 409) return this.post(labels);
      throw problem;
    });
  }

  // shown writes the followed pod's name on the buttons, which are enabled while the pod exists.
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
    const { labels } = (await get(pathOf(key))).metadata;
    const colour = colours[(colours.indexOf(labels?.colour ?? "") + 1) % colours.length];
    await ask("PATCH", pathOf(key), { metadata: { labels: { colour } } }, { type: "application/merge-patch+json" });
    this.tell(`${nameOf(key)}: colour=${colour}`);
  }

  async remove() {
    const { key } = this.stage.follow;
    await ask("DELETE", `${pathOf(key)}?gracePeriodSeconds=0`);
    this.tell(`deleted ${nameOf(key)}`);
  }

  /** @param {SubmitEvent} event */
  async submitWatcher(event) {
    event.preventDefault();
    const { bookmarks, watchList, ...texts } = Object.fromEntries(new FormData($("#watcher-form", HTMLFormElement)));
    const flags = { bookmarks: Boolean(bookmarks), watchList: Boolean(watchList) };
    const options = { ...texts, ...flags, resource: this.stage.resource() };
    const refused = await ask("POST", "/viz/watchers", options)
      .then(() => "", (problem) => cut(refusal(problem).message, 300));
    say($("#watcher-refused"), refused);
    if (refused) return;
    this.dialog.close();
    this.tell("added a watcher");
  }
}

/** @param {number} n @returns {string} */
function letters(n) {
  const last = String.fromCharCode(97 + (n % 26));
  return n < 26 ? last : letters(Math.floor(n / 26) - 1) + last;
}
