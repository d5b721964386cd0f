// @ts-nocheck
// Telling: the one sentence below the stage. It speaks of the change that is on its way; when the viewer steps, of the
// record at the cursor. For those who listen instead of look it is spoken: a live region that changed with every
// sentence would never stop talking, so it changes every two seconds at most, and an anomaly interrupts. While a story
// is told, the story speaks.

import { $, mark, put, say } from "../dom/dom.js";
import { isAlarm } from "../log/fold.js";
import { changeOf } from "./steps.js";

const read = 1000; // ms that a sentence stays at least, if its change does
const period = 2000; // … where nothing travels, and from one that is spoken to the next
const looked = 1000; // records in which the newest one of a change is looked for

export function newTelling(stage) {
  const { infos, scene, player } = stage;
  const bar = $("#sentence");
  let change = ""; // that is on its way
  let next = null; // the newest record that the sentence may turn to
  let alarm = null; // one of which it has to speak
  let told = null; // the record that it is about
  let toldAt = 0;
  let reported = ""; // the station where that was
  let movedAt = 0;
  let spoken = ["", -Infinity]; // what, and when

  // turnTo notes which change is on its way. Of another one there is nothing more to be said.
  function turnTo(name) {
    if (name === change) return;
    const led = player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1);
    [change, next] = [name, led.findLast((r) => changeOf(r) === name && stage.here(r)) ?? null];
  }

  function consider(list) {
    for (const r of list.filter(stage.here)) {
      if (isAlarm(infos.get(r.point), r)) alarm ??= r;
      if (!change || changeOf(r) === change) next = r;
    }
  }

  // passed reports whether the sentence is not about the change that is on its way.
  const passed = () => !told || (changeOf(told) !== change && !isAlarm(infos.get(told.point), told));

  // draw turns to another record when the sentence has been read, or when its change is not the one in the air any
  // more.
  function draw(now) {
    speak(now);
    if (player.mode === "frozen") return light();
    if (!stage.drawn) return;
    const moving = stage.motion.change;
    if (moving) {
      turnTo(moving);
      movedAt = now;
    } else if (now - movedAt > read) change = ""; // it has arrived
    const stays = now - toldAt < (moving || alarm ? read : period);
    if (stays && !(moving && next && passed())) return;
    if (alarm ?? next) tell(alarm ?? next, now);
  }

  function speak(now) {
    if (now - spoken[1] < period || document.body.dataset.story || Number(document.body.dataset.tour)) return;
    const text = bar.querySelector(".where").textContent + bar.querySelector(".words").textContent;
    if (text === spoken[0]) return;
    spoken = [text, now];
    say($(bar.classList.contains("anomaly") ? "#alarm" : "#spoken"), text);
  }

  // begins is said where no record leads to: before the first one there is.
  function begins(seq) {
    clear();
    told = null;
    const gone = "What led here is not in the log any more.";
    write(seq, "start", `The first moment there is${seq > 0 ? `. ${gone}` : ": nothing has happened yet."}`);
  }

  // write says words about a record, and lights the station where its token is; without one, where it was reported.
  function write(seq, where, words, anomaly = false) {
    put(bar, "data-told", seq);
    put(bar, "class", anomaly ? "sentence anomaly" : "sentence");
    const title = scene.stations.get(where)?.querySelector(".title")?.textContent ?? where;
    const texts = { at: `record ${seq}`, where: title, words };
    for (const [name, text] of Object.entries(texts)) say(bar.querySelector(`.${name}`), text);
    const elsewhere = /^(reflector|fifo|indexer)$/.test(where) && told.subject !== scene.informer;
    reported = elsewhere ? "" : where; // that client is not drawn
    light();
  }

  function light() {
    const [x, y] = stage.motion.at(told ? changeOf(told) : "", player.clock) ?? [];
    const off = ({ X, Y, W, H }) => Math.max(X - x, x - X - W, Y - y, y - Y - H);
    const near = Object.keys(scene.geometry.boxes).map((name) => [off(scene.boxOf(name)), name]);
    const lit = x === undefined ? reported : near.reduce((a, b) => (b[0] < a[0] ? b : a))[1];
    for (const [name, el] of scene.stations) mark(el, "told", name === lit);
    // What the sentence names has a frame: lanes, rows and tokens. A client may be called as a workqueue is.
    scene.named = told && !scene.told && !scene.plain ? changeOf(told) : "";
    for (const lanes of Object.values(scene.lanes)) {
      for (const [id, el] of lanes) {
        const its = el.dataset.watcher || el.closest(".station").dataset.station === reported;
        mark(el, "told", Boolean(scene.named && its) && id === told.subject);
      }
    }
    for (const el of scene.root.querySelectorAll(".row, .held use")) {
      mark(el, "told", Boolean(el.object) && changeOf(el.object) === scene.named);
    }
  }

  function tell(r, now) {
    [next, alarm, told, toldAt] = [null, null, r, now];
    const info = infos.get(r.point);
    write(r.seq, info.station, stage.says(r), isAlarm(info, r));
  }

  const clear = () => ([change, next, alarm] = ["", null, null]);

  return {
    told: () => told?.seq ?? 0, begins, draw,
    applied: consider, jumped: clear, landed: tell, shown: () => put(bar, "data-seq", player.cursor),
  };
}
