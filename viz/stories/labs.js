// Labs: in a working copy, how the lab stood when it was last checked. The check runs in a terminal; the page asks.

import { mark, say } from "../frame/dom.js";

const period = 2000; // ms between two questions

export const labs = { name: "labs", needs: ["source"], join: newLabs };

function newLabs(stage) {
  const line = document.querySelector("#lab-checked");
  if (!line) return {};
  let asked = -Infinity;

  async function ask() {
    const response = await fetch("/viz/lab", { cache: "no-store" });
    if (!response.ok) return;
    const { says, broken } = await response.json();
    say(line, says);
    mark(line, "broken", broken);
  }

  return {
    draw(now) {
      if (now - asked < period || document.hidden || !stage.source) return;
      asked = now;
      ask().catch(() => {}); // the banner says already that the server does not answer
    },
  };
}
