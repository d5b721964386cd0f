// Promises: how the ten of them stand. The server checks every record and renders how it went; a click on a breach goes
// to the record that broke a promise.

import { $, mark } from "../lib/dom.js";
import { newPanel } from "../lib/panel.js";

const period = 2000; // ms between two questions while the panel is closed

export function newPromises(stage) {
  let known = 0; // promises that are broken

  function heed() {
    const { text, ...state } = $("#promises-state").dataset;
    const broken = Number(state.broken);
    mark($("#open-promises"), "broken", broken > 0);
    if (broken > known && stage.source) stage.banner.notice(`A promise is broken: ${text}`);
    known = broken;
  }

  return newPanel("promises", ["g", "what is guaranteed: the ten promises"], period, heed);
}
