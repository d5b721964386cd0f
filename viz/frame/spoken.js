// Spoken: the sentence below the stage for those who listen instead of look. A live region that changed with every
// sentence would never stop talking: it changes every two seconds at most, and an anomaly interrupts. While a story is
// told, the story speaks.

import { say } from "../lib/dom.js";

const period = 2000; // ms

export function newSpoken() {
  const bar = document.querySelector("#sentence");
  const calm = document.querySelector("#spoken");
  const alarm = document.querySelector("#alarm");
  let spoken = "";
  let at = -Infinity;

  function draw(now) {
    if (now - at < period || document.body.dataset.story || Number(document.body.dataset.tour)) return;
    const text = bar.querySelector(".where").textContent + bar.querySelector(".words").textContent;
    if (text === spoken) return;
    [spoken, at] = [text, now];
    say(bar.classList.contains("anomaly") ? alarm : calm, text);
  }

  return { draw };
}
