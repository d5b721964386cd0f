// Lens: who asks a server that is not ours through our port, and what is wrong with it. The program judges, and renders
// what it finds; the page asks how it stands once a second, and less often while the panel is closed.

import { ask, asking } from "../lib/api.js";
import { $, mark, say, when } from "../lib/dom.js";
import { renew } from "../lib/panel.js";

const period = { open: 1000, closed: 3000 }; // ms between two questions

export function newLens(stage) {
  const button = $("#open-lens");
  const panel = $("#lens");
  const form = $("#guest");
  if (button.hidden) return {};
  let resource = document.body.dataset.resource;
  let [told, trouble] = [0, ""];

  const look = asking(async () => {
    await renew("/viz/panel/lens");
    const { news, stuck, metrics } = $("#lens-seen").dataset;
    const found = $("#lens-findings").childElementCount;
    mark(button, "broken", found > 0 || stuck !== "");
    if (stuck !== trouble) stage.banner.notice(stuck); // "" takes away what is healed
    if (found > told && panel.hidden) stage.banner.notice(news);
    [told, trouble] = [found, stuck];
    const { "": whole, [resource]: own } = JSON.parse(metrics);
    const shown = { ...whole, ...own };
    for (const el of document.querySelectorAll("[data-theirs]")) say(el, shown[el.dataset.theirs] ?? "–");
  });

  when(form, "submit", (event) => {
    event.preventDefault();
    const { resources, ...choice } = Object.fromEntries(new FormData(form));
    const names = resources.split(/[\s,]+/).filter(Boolean);
    ask("POST", "/viz/guest", { ...choice, resources: names }).catch(stage.banner.trouble);
  });

  return {
    draw: (now) => look(now, panel.hidden ? period.closed : period.open),
    resource: (name) => (resource = name),
    keys: [[["j"], "through the lens: clients of the server, and findings", () => button.click()]],
  };
}
