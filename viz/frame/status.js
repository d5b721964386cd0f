// The status: how much is going on, how much of it is drawn, and where in the log the stage is.

import { $, put, say } from "../lib/dom.js";

const period = 250; // ms between two readings of the rate; of sums, each is read once

// meanings explain the modes that stop something.
const meanings = {
  frozen: "The picture is frozen at the cursor; the program runs on",
  held: "The program is held: every goroutine stops at its next point",
  replay: "The page shows records of the past", live: "",
};
const words = { connecting: "connecting", reconnecting: "reconnecting", silent: "process stopped" };

export function newStatus(stage) {
  const { player, motion } = stage;
  let history = []; // [time, events, records] of the last second
  let rated = 0;
  let counted = false; // since the last reading

  // count reads the fold's own counters, so that what was passed over on the way to the page is counted, too.
  function count(now) {
    const state = player.state;
    const events = Object.values(state.resources).reduce((n, res) => n + (res.points.RingAppend ?? 0), 0);
    if (history.length > 0 && state.seq < history.at(-1)[2]) history = [];
    history.push([now, events, state.seq]);
    counted = true;
  }

  // rates says how many events and records came in the last second.
  function rates(now) {
    while (history.length > 1 && now - history[1][0] > 1000) history.shift();
    if (history.length < 2 || now - history.at(-1)[0] > 1000) return { events: 0, records: 0 };
    const [first, last] = [history[0], history.at(-1)];
    const span = last[0] - first[0];
    // Sums come twice a second: what they say is of the time between two of them.
    const second = (n) => (n > 200 && span > 500 && span < 1500 ? Math.round((n * 1000) / span) : n);
    return { events: second(last[1] - first[1]), records: second(last[2] - first[2]) };
  }

  function showRate(now) {
    if (player.sweeping ? !counted : now - rated < period) return;
    [rated, counted] = [now, false];
    const { events, records } = rates(now);
    say($("#rate"), `${events} ${events === 1 ? "event" : "events"}/s`);
    put($("#rate"), "title", `${records} records/s`);
    say($("#level"), motion.level > 0 ? "as a stream" : "each change travels");
    put($("#level"), "data-level", motion.level);
    const late = lateness();
    const travels = motion.travelling().length > 0;
    const how = player.sweeping ? "summed up" : travels ? "slowed" : "";
    const share = travels && player.share > 1 && `1 of ${player.share}`;
    const words = [how, share, late >= 0.2 && `${late.toFixed(1)} s behind`];
    stage.scene.text("behind", words.filter(Boolean).join(" · "));
  }

  function showTime() {
    const mode = player.recording || player.mode === "playing" ? "replay" : player.mode === "live" && stage.hold.held
      ? "held" : player.mode;
    put(document.body, "data-mode", mode);
    put(document.body, "data-head", player.head);
    const frozen = player.mode === "frozen";
    const button = $("#freeze");
    const word = frozen ? "Play" : "Freeze";
    if (button.getAttribute("aria-label") !== word) {
      put(button, "aria-label", word);
      put(button, "title", `${word === "Freeze" ? "Freeze the picture; the program runs on" : word} (Space)`);
      put(button, "aria-pressed", String(frozen));
      put(button.querySelector("path"), "d", frozen ? "M4 2L14 8L4 14Z" : "M4 3H7V13H4ZM10 3H13V13H10Z");
    }
    put($("#live"), "data-live", String(player.mode === "live"));
    say($("#cursor"), `record ${player.target()}`);
    say($("#behind"), player.recording ? ` of ${player.head}` : ` · ${whereText()}`);
    showMode(mode, frozen);
  }

  // lateness is for how many seconds the newest record has been waiting, live.
  const lateness = () => (player.mode === "live" ? player.lag() / 1000 : 0);

  function whereText() {
    if (player.mode === "live") return "newest";
    return player.behind() > 0 ? `${player.behind()} behind` : "the end";
  }

  function showMode(mode, frozen) {
    const [state, title] = stage.connection;
    const broken = state !== "live" && !(player.recording && !stage.source);
    put($("#mode"), "data-state", broken ? state : mode);
    put($("#mode"), "title", broken ? title : meanings[mode]);
    const lost = player.state.lost > 0 ? `, ${player.state.lost} records lost` : "";
    const calm = mode === "replay" && frozen ? "paused" : mode;
    say($("#mode-text"), broken ? words[state] : calm + lost);
  }

  function draw(now) {
    showRate(now);
    showTime();
  }

  // turnLog opens or closes the table of records.
  function turnLog() {
    const open = document.body.dataset.log !== "open";
    put(document.body, "data-log", open ? "open" : "closed");
    put($("#open-records"), "aria-expanded", String(open));
  }

  return {
    count, draw,
    jumped: () => (player.mode === "live" ? count(performance.now()) : (history = [])),
    keys: [[["u"], "the log: everything that was reported, in words", turnLog]],
  };
}
