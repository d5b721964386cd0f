// Promises: how the ten of them stand. The server checks every record and renders how it went; a click on a breach goes
// to the record that broke a promise.

import { asking } from "../lib/api.js";
import { $, mark, when } from "../lib/dom.js";
import { renew } from "../lib/panel.js";

const period = 2000; // ms between two questions

export function newPromises(stage) {
  const button = $("#open-promises");
  let known = 0; // promises that are broken
  const ask = asking(async () => {
    await renew("/viz/panel/promises");
    const { text, ...state } = $("#promises-state").dataset;
    const broken = Number(state.broken);
    mark(button, "broken", broken > 0);
    if (broken > known) stage.banner.notice(`A promise is broken: ${text}`);
    known = broken;
  });

  when(document, "click", ({ target }) => {
    const { seq } = target.closest("#promises [data-seq]")?.dataset ?? {};
    if (seq) stage.player.seek(Number(seq));
  });

  return {
    draw(now) {
      if (stage.source && !button.hidden) ask(now, period);
    },
    keys: button.hidden ? [] : [[["g"], "what is guaranteed: the ten promises", () => button.click()]],
  };
}
