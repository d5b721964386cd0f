// The pace: how fast a replay runs, and which piece of it again and again.

import { put, say } from "../lib/dom.js";
import { milliseconds } from "../lib/times.js";

export function newPace(stage) {
  const { player } = stage;
  const $ = (selector) => document.querySelector(selector);
  let loopFrom = 0;

  function setLoop(range) {
    player.loop = range;
    put($("#loop"), "aria-pressed", String(Boolean(range)));
    if (range) player.seek(range.from, "playing");
  }

  function markLoop() {
    if (player.loop) {
      loopFrom = 0;
      return setLoop(null);
    }
    if (!loopFrom) {
      loopFrom = Math.max(1, player.cursor);
      return stage.tell(`loop from record ${loopFrom}: go to its end and press again`);
    }
    const range = { from: Math.min(loopFrom, player.cursor), to: Math.max(loopFrom, player.cursor) };
    loopFrom = 0;
    setLoop(range.to > range.from ? range : null);
  }

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
  $("#loop").addEventListener("click", markLoop);
  return {
    setLoop, draw,
    skipped: (ns) => stage.tell(`${milliseconds(ns)} without a record skipped`),
    keys: [
      [["+", "="], "faster", () => setSpeed(Number($("#speed").value) + 0.3)],
      [["-"], "slower", () => setSpeed(Number($("#speed").value) - 0.3)],
      [["o"], "loop: start, end, off", markLoop],
    ],
  };
}
