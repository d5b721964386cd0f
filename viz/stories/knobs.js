// @ts-nocheck
// Knobs: what can be done to the running pipeline. Each is one POST, and what it did stands in the log like everything
// else. The program renders the panel; any control of the page with data-knob turns one.

import { ask } from "../lib/api.js";
import { closeWatcher, turnKnob } from "../lib/cluster.js";
import { $, say, when } from "../dom/dom.js";
import { newPanel, renew } from "../dom/panel.js";

export function newKnobs(stage) {
  const panel = $("#knobs");
  const part = newPanel(stage, "knobs", ["x", "knobs: slow it, stall it, cut it, load it"]);
  if (!part.keys) return part;

  // command runs one, and says what came of it. In a held world it waits, and a record will say how it ends.
  async function command(words, act, done = "") {
    const told = ({ id }) => stage.tell(id ? `${words}: command ${id} waits with the held world` : words + done);
    await act().then(told, stage.banner.trouble);
    // if the program does not answer, the banner says it
    if (!panel.hidden) await renew("/viz/panel/knobs", true).catch(() => {});
  }

  const turn = (name, target = "", value = "") =>
    command([name, target, value].filter(Boolean).join(" "), () => turnKnob(name, target, value));

  const reset = () => command("reset", () => ask("POST", "/viz/reset"), ": done");

  const valueOf = ({ value, dataset }) => (dataset.values ? String(JSON.parse(dataset.values)[value]) : value);

  when(document, "click", ({ target }) => {
    const { knob, target: name, value, closes } = target.closest("button")?.dataset ?? {};
    if (knob) turn(knob, name, value);
    if (closes) command("closed", () => closeWatcher(closes));
  });
  when(panel, "change", ({ target }) => {
    const { knob, target: name } = target.dataset;
    if (knob === "switch") target.blur(); // what is shown from now on is how it is
    turn(knob, name, valueOf(target));
  });
  when(panel, "input", ({ target }) => target.dataset.values && say($("#traffic-text"), `${valueOf(target)}/s`));

  return { ...part, keys: [...part.keys, [["r"], "reset the sandbox", reset]] };
}
