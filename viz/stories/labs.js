// Labs: in a working copy, how the lab stood when it was last checked. The check runs in a terminal; the page asks.

import { asking, get } from "../lib/api.js";
import { mark, say } from "../lib/dom.js";

const period = 2000; // ms between two questions

export function newLabs(stage) {
  const line = document.querySelector("#lab-checked");
  if (!line) return {};

  const ask = asking(async () => {
    const { says, broken } = await get("/viz/lab");
    say(line, says);
    mark(line, "broken", broken);
  });

  return { draw: (now) => stage.source && ask(now, period) };
}
