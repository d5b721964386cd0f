// Knobs change the running pipeline. Each sends one POST, and its effect appears in the log like everything else. Any
// button on the page with data-knob turns a knob, and so do the panel's lists and the hands on the stage (hands.js).

import { ask } from "../lib/api.js";
import { $, parts, say, when } from "../dom/dom.js";
import { newPanel, renew } from "../dom/panel.js";
import { Hands } from "./hands.js";

/**
 * @typedef {import("./hands.js").Control} Control
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {(words: string) => void} tell shows words for a moment
 * @property {(news: string) => void} news
 * @property {(problem: unknown) => void} trouble
 */

/** @param {Stage} stage @returns {page.Part} */
export function newKnobs(stage) {
  const panel = $("#knobs");
  const button = $("#undo", HTMLButtonElement);
  const look = () => { stage.scene.stale = true; }; // the list decides which hands are drawn
  const part = newPanel(stage.news, "knobs", "x", 2000, look);
  const { keys } = part;
  if (!keys) return part;
  /** @type {() => unknown} */
  let undo = () => {};

  // command runs a command and shows its result. In a held world the command waits, and a later record reports its end.
  /** @param {string} words @param {() => Promise<{ id?: number }>} act @param {string} [done] */
  async function command(words, act, done = "") {
    button.hidden = true;
    await act().then(({ id }) => stage.tell(id ? `${words}: command ${id} waits with the held world` : words + done),
      stage.trouble);
    // the banner reports a program that does not answer
    await renew("/viz/panel/knobs", true).then(look, () => {});
  }

  /** @param {string} [knob] @param {string} [target] */
  const control = (knob = "", target = "") => /** @type {Control | undefined} */ (
    parts(panel, `[data-knob="${knob}"]:enabled`).find(({ dataset }) => (dataset.target ?? "") === target));

  // turn turns the knob of a control to the value of a choice: the control itself, or one of its options.
  /** @param {Control} of @param {import("./hands.js").Choice} choice */
  async function turn({ dataset: { knob: name = "", target = "", who = name } }, choice) {
    const { value = choice.value, does = `${target} ${value}`.trim() } = choice.dataset;
    const state = () => control(name, target)?.getAttribute("aria-pressed")
      ?? control(name, target)?.querySelector("[selected]")?.getAttribute("value");
    const [words, was] = [`${who} ${does}`, state()];
    const to = (/** @type {unknown} */ wanted, done = "") =>
      command(words, () => ask("POST", "/viz/knobs", { name, target, value: wanted }), done);
    await to(value);
    undo = () => to(was, ": undone");
    button.hidden = was === state();
    say(button, `Undo: ${words}`);
  }

  when(document, "click", ({ target }) => {
    const of = target.closest("button");
    const { knob, closes } = of?.dataset ?? {};
    if (of && knob) turn(of, of);
    if (closes) command("closed", () => ask("DELETE", `/viz/watchers/${encodeURIComponent(closes)}`));
  });
  when(panel, "change", ({ target }) => {
    const of = /** @type {HTMLSelectElement} */ (target);
    if (of.dataset.knob === "switch") of.blur(); // lets the panel show the program's value again
    turn(of, of.selectedOptions[0]);
  });

  const reset = () => command("reset", () => ask("POST", "/viz/reset"), ": done");
  const hands = new Hands({ scene: stage.scene, control, turn });
  return { ...part, shown: () => hands.shown(), keys: { ...keys, r: reset, z: () => button.hidden || undo() } };
}
