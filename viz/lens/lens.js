// Lens: the clients that use a foreign server through our port, and their mistakes, which the program finds.

import { ask } from "../lib/api.js";
import { $, parts, say, when } from "../dom/dom.js";
import { newPanel } from "../dom/panel.js";

const period = 3000; // ms between two polls while the panel is closed

/**
 * @typedef {object} Stage
 * @property {() => string} resource the resource on stage
 * @property {(news: string) => void} news
 * @property {(problem: unknown) => void} trouble
 */

/** @param {Stage} stage @returns {page.Part} */
export function newLens(stage) {
  const form = $("#guest", HTMLFormElement);

  function heed() {
    const { "": whole, [stage.resource()]: own } = JSON.parse($("#lens-seen").dataset.metrics ?? "{}");
    const shown = { ...whole, ...own };
    for (const el of parts(document, "[data-theirs]")) say(el, shown[el.dataset.theirs ?? ""] ?? "–");
  }

  when(form, "submit", (event) => {
    event.preventDefault();
    const { resources, ...choice } = Object.fromEntries(new FormData(form));
    const names = String(resources).split(/[\s,]+/).filter(Boolean);
    ask("POST", "/viz/guest", { ...choice, resources: names }).catch(stage.trouble);
  });

  return newPanel(stage.news, "lens", "j", period, heed);
}
