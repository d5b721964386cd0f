// @ts-nocheck
// Hands: what buttons and single keys do that move through the log, at which pace, follow, and act on the cluster.

import { $, below, say, when } from "../dom/dom.js";
import { milliseconds, times } from "../lib/times.js";
import { objectKey } from "../log/fold.js";

export function newHands(stage) {
  const { player, follow, scene, timeline } = stage;

  function toAnomaly(direction) {
    const from = player.target();
    const flags = timeline.flags.filter((f) => (direction > 0 ? f.seq > from : f.seq < from));
    const next = direction > 0 ? flags[0] : flags.at(-1);
    return next ? player.seek(next.seq) : stage.tell("no other anomaly");
  }

  const hop = (r) => (follow.has() ? follow.matches(r) && (r.resource ?? "") === stage.resource : true);
  const toHop = async (direction) => (await player.stepTo(direction, hop)) || stage.tell("no other hop in the log");

  // toggleFollow stops to follow what was chosen by hand; of what was only written it opens the biography.
  function toggleFollow(key) {
    if (!key || (follow.key === key && follow.by === "hand")) follow.clear();
    else follow.set(key);
  }

  const toggleNewest = () => toggleFollow(follow.has() ? "" : objectKey(scene.store.at(-1)?.key ?? ""));

  // setSpeed slows a replay down or lets it run. What is live has no other pace than the program's: slowed down, it
  // becomes a replay that begins here.
  function setSpeed(exponent) {
    player.speed = 10 ** Math.min(1, Math.max(-3, Math.round(exponent * 10) / 10));
    showSpeed();
    if (player.mode !== "live" || player.speed === 1) return;
    if (player.speed > 1) return stage.tell("live, nothing is faster than the program");
    player.play();
    stage.tell("slow motion from here; End returns to live");
  }

  let shown = 1; // the speed
  function showSpeed() {
    if (player.speed === shown) return;
    shown = player.speed;
    $("#speed").value = Math.log10(shown).toFixed(1);
    say($("#speed-text"), times(shown));
  }

  // A panel below the stage has a button that opens and closes it, and one of its own that closes it. A button that
  // names a record leads there.
  when(document, "click", ({ target }) => {
    const { seq } = target.closest("button[data-seq]")?.dataset ?? {};
    if (seq) player.seek(Number(seq));
    const panel = document.getElementById(target.closest("[data-below]")?.getAttribute("aria-controls"));
    if (panel) below(panel.hidden ? panel : null);
    else if (target.closest('.below [id$="-close"]')) below(null);
  });
  when("#speed", "input", (event) => setSpeed(Number(event.target.value)));
  when(scene.root, "click", (event) => {
    const token = stage.motion.keyAt(event.clientX, event.clientY, player.clock);
    if (token) event.stopPropagation(); // it is in front of the station
    const key = token || event.target.closest("[data-key]")?.dataset.key;
    if (key) toggleFollow(key);
  }, true);
  when("#records", "click", (event) => {
    const row = event.target.closest("tr");
    const cell = event.target.closest("td");
    if (cell?.cellIndex === 6 && cell.textContent) follow.set("", cell.textContent);
    else if (cell?.cellIndex === 0) player.seek(Number(row.dataset.seq));
    else if (row?.dataset.key) toggleFollow(row.dataset.key);
  });

  return {
    draw: showSpeed,
    skipped: (ns) => stage.tell(`${milliseconds(ns)} without a record skipped`),
    keys: [
      [["+", "="], "faster", () => setSpeed(Number($("#speed").value) + 0.3)],
      [["-"], "slower", () => setSpeed(Number($("#speed").value) - 0.3)],
      [[" "], "freeze the picture, resume; play from here", () => player.toggle()],
      [["."], "next record", () => player.step(1)],
      [[","], "previous record", () => player.step(-1)],
      [[">"], "next hop of what is followed", () => toHop(1)],
      [["<"], "previous hop", () => toHop(-1)],
      [["n"], "next anomaly", () => toAnomaly(1)],
      [["p"], "previous anomaly", () => toAnomaly(-1)],
      [["Home"], "to the start", () => player.seek(player.oldest)],
      [["End"], "to the end, live", () => player.live()],
      [["f"], "follow the newest object, or stop following", toggleNewest],
      [["Escape"], "close what is open, remove the focus", () => stage.escape() ?? document.activeElement?.blur?.()],
    ],
    escape() {
      const open = $(".below:not([hidden])");
      if (open) below(null);
      else if (follow.has()) follow.clear();
      else return false;
      return true;
    },
  };
}
