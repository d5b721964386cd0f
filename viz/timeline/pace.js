// The pace: how fast a replay runs.

import { say } from "../lib/dom.js";
import { milliseconds } from "../lib/times.js";

export function newPace(stage) {
  const { player } = stage;
  const $ = (selector) => document.querySelector(selector);

  // setSpeed slows a replay down or lets it run. What is live has no other pace than the program's: slowed down, it
  // becomes a replay that begins here.
  function setSpeed(exponent) {
    const bounded = Math.min(1, Math.max(-3, Math.round(exponent * 10) / 10));
    player.speed = 10 ** bounded;
    draw();
    if (player.mode !== "live" || player.speed === 1) return;
    if (player.speed > 1) return stage.tell("live, nothing is faster than the program");
    player.play();
    stage.tell("slow motion from here; End returns to live");
  }

  let drawn = 1;
  function draw() {
    const s = player.speed;
    if (s === drawn) return;
    drawn = s;
    $("#speed").value = Math.log10(s).toFixed(1);
    say($("#speed-text"), s >= 1 ? `${Number(s.toPrecision(2))}×` : `1/${Number((1 / s).toPrecision(2))}×`);
  }

  $("#speed").addEventListener("input", (event) => setSpeed(Number(event.target.value)));
  return {
    draw,
    skipped: (ns) => stage.tell(`${milliseconds(ns)} without a record skipped`),
    keys: [
      [["+", "="], "faster", () => setSpeed(Number($("#speed").value) + 0.3)],
      [["-"], "slower", () => setSpeed(Number($("#speed").value) - 0.3)],
    ],
  };
}
