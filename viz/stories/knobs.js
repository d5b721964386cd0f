// Knobs: what can be done to the running pipeline. Each is one POST, and what it did stands in the log like everything
// else. The program renders the panel; any control of the page with data-knob turns one.

import { ask } from "../lib/api.js";
import { closeWatcher, turnKnob } from "../lib/cluster.js";
import { $, say, when } from "../dom/dom.js";
import { newPanel, renew } from "../dom/panel.js";

/**
 * @typedef {object} Stage
 * @property {(words: string) => void} tell in passing
 * @property {(news: string) => void} news
 * @property {(problem: unknown) => void} trouble
 */

/** @param {Stage} stage @returns {page.Part} */
export function newKnobs(stage) {
  const panel = $("#knobs");
  const part = newPanel(stage.news, "knobs", "x");
  const { keys } = part;
  if (!keys) return part;

  // command runs one, and says what came of it. In a held world it waits, and a record will say how it ends.
  /** @param {string} words @param {() => Promise<{ id?: number }>} act @param {string} [done] */
  async function command(words, act, done = "") {
    await act().then(({ id }) => stage.tell(id ? `${words}: command ${id} waits with the held world` : words + done),
      stage.trouble);
    // if the program does not answer, the banner says it
    if (!panel.hidden) await renew("/viz/panel/knobs", true).catch(() => {});
  }

  /** @param {string} [name] @param {string} [target] @param {string} [value] */
  const turn = (name = "", target = "", value = "") =>
    command([name, target, value].filter(Boolean).join(" "), () => turnKnob(name, target, value));

  const reset = () => command("reset", () => ask("POST", "/viz/reset"), ": done");

  /** @param {HTMLInputElement} control */
  const valueOf = ({ value, dataset }) => (dataset.values ? String(JSON.parse(dataset.values)[Number(value)]) : value);

  when(document, "click", ({ target }) => {
    const { knob, target: name, value, closes } = target.closest("button")?.dataset ?? {};
    if (knob) turn(knob, name, value);
    if (closes) command("closed", () => closeWatcher(closes));
  });
  when(panel, "change", ({ target }) => {
    const { knob, target: name } = target.dataset;
    if (knob === "switch") target.blur(); // what is shown from now on is how it is
    turn(knob, name, valueOf(/** @type {HTMLInputElement} */ (target)));
  });
  when(panel, "input", ({ target }) => {
    if (target.dataset.values) say($("#traffic-text"), `${valueOf(/** @type {HTMLInputElement} */ (target))}/s`);
  });

  return { ...part, keys: { ...keys, r: reset } };
}
