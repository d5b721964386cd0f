// @ts-nocheck
// Lens: who asks a server that is not ours through our port, and what is wrong with it. The program judges, and renders
// what it finds; the page asks how it stands once a second, and less often while the panel is closed.

import { ask } from "../lib/api.js";
import { $, say, when } from "../dom/dom.js";
import { newPanel } from "../dom/panel.js";

const period = 3000; // ms between two questions while the panel is closed

export function newLens(stage) {
  const form = $("#guest");

  function heed() {
    const { "": whole, [stage.resource]: own } = JSON.parse($("#lens-seen").dataset.metrics);
    const shown = { ...whole, ...own };
    for (const el of document.querySelectorAll("[data-theirs]")) say(el, shown[el.dataset.theirs] ?? "–");
  }

  when(form, "submit", (event) => {
    event.preventDefault();
    const { resources, ...choice } = Object.fromEntries(new FormData(form));
    const names = resources.split(/[\s,]+/).filter(Boolean);
    ask("POST", "/viz/guest", { ...choice, resources: names }).catch(stage.banner.trouble);
  });

  return newPanel(stage, "lens", ["j", "through the lens: clients of the server, and findings"], period, heed);
}
