// @ts-nocheck
// The status: how much is going on, how much of it is drawn, and where in the log the stage is.

import { $, put, say } from "../dom/dom.js";
import { counted } from "../lib/texts.js";

const second = 1000; // ms: so often the rate is read

// meanings explain the modes that stop something.
const meanings = {
  frozen: "The picture is frozen at the cursor; the program runs on",
  held: "The program is held: every goroutine stops at its next point",
  replay: "The page shows records of the past", live: "",
};
const words = { connecting: "connecting", reconnecting: "reconnecting", silent: "process stopped" };

export function newStatus(stage) {
  const { player, motion } = stage;
  let [rated, latest] = [{ at: 0, events: 0, records: 0 }, null]; // counted when the rate was read, and since
  let readAt = 0;

  // count reads the fold's own counters, so that what was passed over on the way to the page is counted, too.
  function count(now) {
    const { seq, resources } = player.state;
    if (latest?.records === seq) return;
    const events = Object.values(resources).reduce((n, res) => n + (res.points.RingAppend ?? 0), 0);
    latest = { at: now, events, records: seq };
    if (seq < rated.records) rated = latest;
  }

  function showRate(now) {
    if (now - readAt < second || !latest) return;
    const span = latest.at - rated.at;
    // Sums come twice a second: what they say is of the time between two of them.
    const rate = (n) => (n > 200 && span > second / 2 && span < 1.5 * second ? Math.round((n * second) / span) : n);
    say($("#rate"), `${counted(rate(latest.events - rated.events), "event")}/s`);
    put($("#rate"), "title", `${rate(latest.records - rated.records)} records/s`);
    [rated, readAt] = [latest, now];
  }

  // showPace says how much of what comes is drawn, and how late.
  function showPace() {
    say($("#level"), motion.level > 0 ? "as a stream" : "each change travels");
    put($("#level"), "data-level", motion.level);
    const late = player.mode === "live" ? player.lag() / 1000 : 0; // s that the newest record has been waiting
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
    put(button, "aria-label", frozen ? "Play" : "Freeze");
    put(button, "title", frozen ? "Play (Space)" : "Freeze the picture; the program runs on (Space)");
    put(button, "aria-pressed", frozen);
    put(button.querySelector("path"), "d", frozen ? "M4 2L14 8L4 14Z" : "M4 3H7V13H4ZM10 3H13V13H10Z");
    put($("#live"), "data-live", player.mode === "live");
    say($("#cursor"), `record ${player.target()}`);
    say($("#behind"), player.recording ? ` of ${player.head}` : ` · ${whereText()}`);
    showMode(mode, frozen);
  }

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
    count(now);
    showRate(now);
    showPace();
    showTime();
  }

  // turnLog opens or closes the table of records.
  function turnLog() {
    const open = document.body.dataset.log !== "open";
    put(document.body, "data-log", open ? "open" : "closed");
    put($("#open-records"), "aria-expanded", String(open));
  }

  function jumped() {
    count(performance.now());
    if (player.mode !== "live") rated = latest;
  }

  return {
    draw, jumped,
    keys: [[["u"], "the log: everything that was reported, in words", turnLog]],
  };
}
