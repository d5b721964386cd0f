// Knobs change the running pipeline. Each sends one POST, and its effect appears in the log like everything else. The
// program renders the panel; any control on the page with data-knob turns a knob.

import { ask } from "../lib/api.js";
import { $, when } from "../dom/dom.js";
import { newPanel, renew } from "../dom/panel.js";

/**
 * @typedef {object} Stage
 * @property {(words: string) => void} tell shows words for a moment
 * @property {(news: string) => void} news
 * @property {(problem: unknown) => void} trouble
 */

/** @param {Stage} stage @returns {page.Part} */
export function newKnobs(stage) {
  const panel = $("#knobs");
  const part = newPanel(stage.news, "knobs", "x");
  const { keys } = part;
  if (!keys) return part;

  // command runs a command and shows its result. In a held world the command waits, and a later record reports its end.
  /** @param {string} words @param {() => Promise<{ id?: number }>} act @param {string} [done] */
  async function command(words, act, done = "") {
    await act().then(({ id }) => stage.tell(id ? `${words}: command ${id} waits with the held world` : words + done),
      stage.trouble);
    // the banner reports a program that does not answer
    if (!panel.hidden) await renew("/viz/panel/knobs", true).catch(() => {});
  }

  /** @param {string} [name] @param {string} [target] @param {string} [value] */
  const turn = (name = "", target = "", value = "") =>
    command([name, target, value].filter(Boolean).join(" "), () => ask("POST", "/viz/knobs", { name, target, value }));

  when(document, "click", ({ target }) => {
    const { knob, target: name, value, closes } = target.closest("button")?.dataset ?? {};
    if (knob) turn(knob, name, value);
    if (closes) command("closed", () => ask("DELETE", `/viz/watchers/${encodeURIComponent(closes)}`));
  });
  when(panel, "change", ({ target }) => {
    const { value, dataset: { knob, target: name } } = /** @type {HTMLSelectElement} */ (target);
    if (knob === "switch") target.blur(); // lets the panel show the program's value again
    turn(knob, name, value);
  });

  return { ...part, keys: { ...keys, r: () => command("reset", () => ask("POST", "/viz/reset"), ": done") } };
}
