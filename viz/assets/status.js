// The status: how much is going on, how much of it is drawn, and where in the log the stage is.

import { put, say } from "./dom.js";

const period = 250; // ms between two readings of the rate

export function newStatus(stage) {
  const { player, motion } = stage;
  const $ = (selector) => document.querySelector(selector);
  let history = []; // [time, events, records] of the last second
  let rated = 0;

  stage.count = (list, now) => history.push([now, list.filter((r) => r.point === "RingAppend").length, list.length]);

  stage.rates = (now) => {
    while (history.length > 0 && now - history[0][0] > 1000) history.shift();
    let events = 0;
    let records = 0;
    for (const [, e, r] of history) {
      events += e;
      records += r;
    }
    return { events, records };
  };

  function showRate(now) {
    if (now - rated < period) return;
    rated = now;
    const { events, records } = stage.rates(now);
    say($("#rate"), `${events} ${events === 1 ? "event" : "events"}/s, ${records} records/s`);
    const words = motion.every > 1 ? `● = ${motion.every}` : motion.level === 1 ? "every event, no labels" : "every event";
    say($("#level"), words);
  }

  function showTime() {
    const mode = player.recording || player.mode === "playing" ? "replay" : player.mode;
    put(document.body, "data-mode", mode);
    put(document.body, "data-head", player.head);
    const frozen = player.mode === "frozen";
    const button = $("#freeze");
    const word = frozen ? (player.moved || player.recording || player.speed !== 1 ? "Play" : "Resume") : "Freeze";
    if (button.getAttribute("aria-label") !== word) {
      put(button, "aria-label", word);
      put(button, "title", `${word} (Space)`);
      put(button, "aria-pressed", String(frozen));
      put(button.querySelector("path"), "d", frozen ? "M4 2L14 8L4 14Z" : "M4 3H7V13H4ZM10 3H13V13H10Z");
    }
    put($("#live"), "data-live", String(player.mode === "live"));
    say($("#live"), player.recording ? "End" : "Live");
    const behind = player.behind();
    say($("#cursor"), `${player.target()}`);
    say($("#behind"), behind > 0 ? ` · ${behind} behind` : player.mode === "live" ? " · newest" : " · the end");
    showMode(mode, frozen, behind);
  }

  function showMode(mode, frozen, behind) {
    const [state, title] = stage.connection;
    const broken = state !== "live" && !(player.recording && !stage.source);
    put($("#mode"), "data-state", broken ? state : mode);
    put($("#mode"), "title", broken ? title : "");
    const words = { connecting: "connecting", reconnecting: "reconnecting", silent: "process stopped" };
    const lost = player.state.lost > 0 ? `, ${player.state.lost} records lost` : "";
    const calm = mode === "frozen" ? `frozen, ${behind} behind` : mode === "replay" && frozen ? "replay, paused" : mode;
    say($("#mode-text"), broken ? words[state] : calm + lost);
  }

  function draw(now) {
    showRate(now);
    showTime();
  }

  return { draw };
}
