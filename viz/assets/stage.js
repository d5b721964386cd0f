// The live stage. One log, many views: the feed brings records, the player says which moment is on stage, the fold makes
// its picture, the scene draws that, motion draws the records that led there, the table and the sentence say them. One
// clock, requestAnimationFrame, moves all.

import { newControls } from "./controls.js";
import { mark, put, say } from "./dom.js";
import { newFeed } from "./feed.js";
import { hash, isAnomaly, newFold, newState, objectKey, sentence } from "./fold.js";
import { milliseconds, newFollow } from "./follow.js";
import { newKeys } from "./keys.js";
import { newMotion } from "./motion.js";
import { newPlayer } from "./player.js";
import { linkTo, misfit, readLink, readRecording } from "./recording.js";
import { newScene } from "./scene.js";
import { newTable } from "./table.js";
import { newTape, serverSource } from "./tape.js";
import { newTelling } from "./telling.js";
import { clockText, newTimeline } from "./timeline.js";

const showPeriods = [0, 100, 125]; // ms between two drawings of the scene, by how much is going on
const settle = 900; // ms that tokens go on moving after a step
const tableRows = 40; // shown when somebody goes to another moment

const $ = (selector) => document.querySelector(selector);
const points = await (await fetch("/viz/points")).json();
const geometry = JSON.parse(document.body.dataset.geometry);
const fold = newFold(points);
const scene = newScene(geometry);
const isFlag = (r) => isAnomaly(fold.infos.get(r.point), r);

let source = null; // the server's log; null: a recording that was dropped here
let shown = { log: "", recording: "" }; // what is on stage, as links name it
let resource = document.body.dataset.resource;
let dirty = false;
let shownAt = 0;
let waiting = []; // records that came since the last frame
let history = []; // [time, events, records] of the last second
let motionTime = 0; // the clock of the tokens: it stands while the stage is frozen
let moving = 0; // until then tokens move although it is frozen
let frameAt = 0;
let connection = ["connecting", ""];

const player = newPlayer(fold, { applied, jumped, trouble, skipped });
const follow = newFollow(fold.infos, {
  changed: followChanged, trouble, seek: (seq) => player.seek(seq), local: () => !source,
  records: async (query, matches) => {
    if (source) return (await source.of(query)).records;
    return player.tape.between(1, player.head + 1).filter((r) => matches(r) && (r.resource ?? "") === resource);
  },
});
scene.followed = follow.token;
const motion = newMotion($("#tokens"), scene, fold.infos, follow);
const table = newTable(fold.infos, follow);
const telling = newTelling(fold.infos, scene);
const controls = newControls(scene);
const timeline = newTimeline(player, {
  seek: (seq) => player.seek(seq),
  loop: setLoop,
  flag: (r) => isFlag(r) && { seq: r.seq, t: r.t, point: r.point, says: sentence(fold.infos.get(r.point), r) },
});
player.reset(newTape(fold, null), newState(), false);

const feed = newFeed({
  snapshot: begin,
  records: (list) => waiting.push(...list),
  coalesced(message) {
    flush();
    timeline.skip(message);
    player.replaced(message.state);
  },
  state(word, title) {
    connection = [word, title];
    showBanner();
  },
});

// begin takes the list of the page's list-watch. A log that is known already is only continued.
function begin(answer) {
  waiting = [];
  timeline.expect();
  const recorded = document.body.dataset.replay === "true";
  if (answer.log === shown.log) {
    player.replaced(answer.state);
  } else {
    source = serverSource(answer.log);
    shown = { log: answer.log, recording: answer.recording ?? "" };
    follow.clear();
    player.reset(newTape(fold, source), answer.state, recorded);
  }
  const first = player.oldest === 0 && player.cursor === player.head;
  fetch("/viz/timeline").then((response) => response.json()).then((line) => {
    player.oldest = line.oldest;
    timeline.index(line);
    if (first) arrive(recorded);
  }).catch(trouble);
}

// arrive goes to where the address says, or to the beginning of a recording.
async function arrive(recorded) {
  if (player.moved) return; // somebody was faster
  const link = readLink(location.hash);
  if (link) return visit(link);
  if (!recorded) return;
  await player.seek(player.oldest);
  player.play();
}

async function visit(link) {
  const problem = misfit(link, { ...shown, oldest: player.oldest, head: player.head });
  if (problem) return notice(problem);
  await player.seek(link.at);
  if (link.key || link.rv) follow.set(link.key, link.rv);
}

function flush() {
  if (waiting.length === 0) return;
  const list = waiting;
  waiting = [];
  timeline.add(list);
  follow.add(list);
  player.arrived(list);
}

function frame(now) {
  requestAnimationFrame(frame);
  const ms = Math.min(100, now - frameAt);
  frameAt = now;
  flush();
  player.tick(ms);
  if (player.mode !== "frozen" || now < moving) motionTime += ms;
  if (scene.stale || (dirty && now - shownAt >= showPeriods[motion.level])) show(now);
  motion.draw(motionTime);
  table.draw(now);
  follow.draw(now, player.cursor);
  timeline.draw(now);
  if (player.mode !== "frozen") telling.draw(now);
  showRate(now);
  showTime();
}

function show(now) {
  dirty = scene.stale = false;
  shownAt = now;
  scene.show(player.state, resource);
}

// applied is told of records that were folded one after the other: they are drawn as they move.
function applied(list) {
  const now = performance.now();
  dirty = true;
  history.push([now, list.filter((r) => r.point === "RingAppend").length, list.length]);
  if (list.some((r) => ["open", "close"].includes(fold.infos.get(r.point).op))) show(now); // lanes first: tokens travel to where they are
  motion.records(list, resource, motionTime, rates(now).events);
  table.add(list);
  telling.consider(list, resource);
  if (player.mode === "frozen") landed(list.at(-1), now);
  pickResources();
}

// jumped is told that another picture is on stage. Only the record that led there is drawn.
function jumped() {
  const now = performance.now();
  motion.clear();
  telling.clear();
  pickResources();
  show(now);
  const list = player.tape.between(Math.max(1, player.cursor - tableRows), player.cursor + 1);
  table.show(list);
  const last = player.tape.get(player.cursor);
  if (player.mode !== "frozen" || !last) return;
  motion.records([last], resource, motionTime, 0);
  landed(last, now);
}

function landed(r, now) {
  moving = now + settle;
  telling.tell(r, now);
}

function rates(now) {
  while (history.length > 0 && now - history[0][0] > 1000) history.shift();
  let events = 0;
  let records = 0;
  for (const [, e, r] of history) {
    events += e;
    records += r;
  }
  return { events, records };
}

let rated = 0;
function showRate(now) {
  if (now - rated < 250) return;
  rated = now;
  const { events, records } = rates(now);
  say($("#rate"), `${events} ${events === 1 ? "event" : "events"}/s, ${records} records/s`);
  const words = motion.every > 1 ? `● = ${motion.every}` : motion.level === 1 ? "every event, no labels" : "every event";
  say($("#level"), words);
}

// ---- where we are

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
  const [state, title] = connection;
  const broken = state !== "live" && !(player.recording && !source);
  put($("#mode"), "data-state", broken ? state : mode);
  put($("#mode"), "title", broken ? title : "");
  const words = { connecting: "connecting", reconnecting: "reconnecting", silent: "process stopped" };
  const lost = player.state.lost > 0 ? `, ${player.state.lost} records lost` : "";
  const calm = mode === "frozen" ? `frozen, ${behind} behind` : mode === "replay" && frozen ? "replay, paused" : mode;
  say($("#mode-text"), broken ? words[state] : calm + lost);
}

// ---- banner

let message = ""; // of our own; the connection's comes first
const connections = {
  silent: "The process is stopped, perhaps by a debugger at a breakpoint. The stage shows the moment before; it goes on by itself, without a gap.",
};

function showBanner() {
  const text = connections[connection[0]] ?? message;
  const banner = $("#banner");
  if (banner.hidden !== (text === "")) banner.hidden = text === "";
  say(banner.querySelector("p"), text);
}

let quiet = 0;

// notice says what is wrong until somebody closes it; what is good to know goes away by itself.
function notice(text, calm = false) {
  message = text;
  mark($("#banner"), "calm", calm);
  clearTimeout(quiet);
  if (calm) quiet = setTimeout(() => notice(""), 8000);
  showBanner();
}

function trouble(problem) {
  notice(problem.message);
  if (!problem.gone || !source) return;
  fetch("/viz/timeline").then((response) => response.json()).then((line) => (player.oldest = line.oldest)).catch(() => {});
}

function skipped(ns) {
  controls.tell(`${milliseconds(ns)} without a record skipped`);
}

$("#banner button").addEventListener("click", () => notice(""));

// ---- following, looping, speed

function followChanged() {
  scene.stale = true;
  table.touch();
}

function toggleFollow(key) {
  if (!key || follow.key === key) follow.clear();
  else follow.set(key);
}

const hop = (r) => (follow.has() ? follow.matches(r) && (r.resource ?? "") === resource : true);

function setLoop(range) {
  player.loop = range;
  put($("#loop"), "aria-pressed", String(Boolean(range)));
  if (!range) return;
  player.seek(range.from, "playing");
}

let loopFrom = 0;
function markLoop() {
  if (player.loop) {
    loopFrom = 0;
    return setLoop(null);
  }
  if (!loopFrom) {
    loopFrom = Math.max(1, player.cursor);
    return controls.tell(`loop from record ${loopFrom}: go to its end and press again`);
  }
  const range = { from: Math.min(loopFrom, player.cursor), to: Math.max(loopFrom, player.cursor) };
  loopFrom = 0;
  setLoop(range.to > range.from ? range : null);
}

function setSpeed(exponent) {
  const bounded = Math.min(1, Math.max(-3, Math.round(exponent * 10) / 10));
  $("#speed").value = bounded;
  player.speed = 10 ** bounded;
  const s = player.speed;
  say($("#speed-text"), s >= 1 ? `${Number(s.toPrecision(2))}×` : `1/${Number((1 / s).toPrecision(2))}×`);
}
$("#speed").addEventListener("input", (event) => setSpeed(Number(event.target.value)));

// ---- links and recordings

async function copyLink() {
  const href = linkTo({ ...shown, cursor: player.cursor, follow });
  if (!source && !shown.recording) return notice("This browser gives no name to a recording on a page that is neither local nor encrypted, so there is no link to it.");
  window.history.replaceState(null, "", href);
  try {
    await navigator.clipboard.writeText(location.href);
    controls.tell("link copied");
  } catch {
    controls.tell("the link stands in the address bar");
  }
}

async function openRecording(file) {
  try {
    const { header, records, hash: name } = await readRecording(file, fold.infos);
    feed.close();
    waiting = [];
    source = null;
    shown = { log: "", recording: name };
    connection = ["live", ""];
    $("#create-pod").parentElement.hidden = true;
    follow.clear();
    const tape = newTape(fold, null);
    const state = header.keyframe ?? newState();
    if (!header.keyframe && records[0].seq > 1) state.seq = records[0].seq - 1;
    player.oldest = state.seq;
    tape.put(records);
    tape.keep(state, true);
    for (let i = 0; i < records.length; i += 512) {
      fold.apply(state, records.slice(i, i + 512));
      tape.keep(state);
    }
    timeline.clear();
    timeline.add(records);
    player.reset(tape, state, true);
    say($("#live"), "End");
    const old = header.points && header.points !== document.body.dataset.points;
    if (old) notice("This recording was written by another version of the program; what has changed since may be shown wrongly.");
    else notice(`A recording of ${new Date(header.started).toLocaleString()}. ${header.reason ? `Why: ${header.reason} ` : ""}Reload the page to return to the program.`, true);
    const link = readLink(location.hash);
    if (link?.recording && link.recording === name) return visit(link);
    await player.seek(player.oldest);
    player.play();
  } catch (problem) {
    notice(`${file.name}: ${problem.message}`);
  }
}

let over = 0;
document.addEventListener("dragover", (event) => {
  if (![...event.dataTransfer.types].includes("Files")) return;
  event.preventDefault();
  $("#drop").hidden = false;
  clearTimeout(over);
  over = setTimeout(() => ($("#drop").hidden = true), 300);
});
document.addEventListener("drop", (event) => {
  if (event.dataTransfer.files.length === 0) return;
  event.preventDefault();
  $("#drop").hidden = true;
  openRecording(event.dataTransfer.files[0]);
});
window.addEventListener("hashchange", () => {
  const link = readLink(location.hash);
  if (link) visit(link);
});

// ---- resources, theme

function pickResources() {
  const select = $("#resource");
  const names = Object.keys(player.state.resources).filter((name) => name !== "").sort();
  if (!names.includes(resource)) names.unshift(resource);
  if ([...select.options].map((o) => o.value).join() === names.join()) return;
  select.replaceChildren(...names.map((name) => new Option(name, name, name === resource, name === resource)));
}

$("#resource").addEventListener("change", (event) => {
  resource = event.target.value;
  put(document.body, "data-resource", resource);
  follow.clear();
  motion.clear();
  dirty = true;
});

const themes = ["", "light", "dark"];
const themeNames = { "": "as the system", light: "light", dark: "dark" };
function restyle() {
  motion.restyle();
  timeline.restyle();
}
$("#theme").addEventListener("click", () => {
  const root = document.documentElement;
  const theme = themes[(themes.indexOf(root.dataset.theme ?? "") + 1) % themes.length];
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  localStorage.setItem("theme", theme);
  put($("#theme"), "aria-label", `Theme: ${themeNames[theme]}`);
  put($("#theme"), "title", `Theme: ${themeNames[theme]} (T)`);
  restyle();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);

// ---- hands

const toAnomaly = async (direction) => {
  const from = player.target();
  if (!source) return (await player.stepTo(direction, isFlag)) || controls.tell("no other anomaly");
  const flags = timeline.flags.filter((f) => (direction > 0 ? f.seq > from : f.seq < from));
  const next = direction > 0 ? flags[0] : flags.at(-1);
  return next ? player.seek(next.seq) : controls.tell("no other anomaly");
};
const toHop = async (direction) => (await player.stepTo(direction, hop)) || controls.tell("no other hop in the log");
const toStation = async (direction) => {
  const station = document.activeElement?.closest?.("[data-station]")?.dataset.station ?? $(".station.told")?.dataset.station;
  if (!station) return controls.tell("choose a station first: Tab walks through them");
  const here = (r) => fold.infos.get(r.point).station === station && [resource, ""].includes(r.resource ?? "");
  return (await player.stepTo(direction, here)) || controls.tell(`nothing else at ${station} in the log`);
};
const press = (selector) => () => $(selector)?.closest("[hidden]") ?? $(selector)?.click();

const click = (selector, act) => $(selector).addEventListener("click", act);
click("#freeze", () => player.toggle());
click("#step-on", () => player.step(1));
click("#step-back", () => player.step(-1));
click("#to-start", () => player.seek(player.oldest));
click("#live", () => player.live());
click("#next-anomaly", () => toAnomaly(1));
click("#prev-anomaly", () => toAnomaly(-1));
click("#loop", markLoop);
click("#link", copyLink);
scene.root.addEventListener("click", (event) => {
  const key = event.target.closest("[data-key]")?.dataset.key;
  if (key) toggleFollow(key);
});
$("#records").addEventListener("click", (event) => {
  const key = event.target.closest("tr")?.dataset.key;
  const column = event.target.closest("td")?.cellIndex;
  const rv = event.target.closest("td")?.textContent;
  if (column === 6 && rv) follow.set("", rv);
  else if (column === 0) player.seek(Number(event.target.closest("tr").dataset.seq));
  else if (key) toggleFollow(key);
});

const keys = newKeys([
  [[" "], "freeze, resume; play from here", () => player.toggle()],
  [["."], "next record", () => player.step(1)],
  [[","], "previous record", () => player.step(-1)],
  [[">"], "next hop of what is followed", () => toHop(1)],
  [["<"], "previous hop", () => toHop(-1)],
  [["]"], "next record at the station that has the focus", () => toStation(1)],
  [["["], "previous record there", () => toStation(-1)],
  [["n"], "next anomaly", () => toAnomaly(1)],
  [["p"], "previous anomaly", () => toAnomaly(-1)],
  [["Home"], "to the start", () => player.seek(player.oldest)],
  [["End"], "to the end, live", () => player.live()],
  [["+", "="], "faster", () => setSpeed(Number($("#speed").value) + 0.3)],
  [["-"], "slower", () => setSpeed(Number($("#speed").value) - 0.3)],
  [["o"], "loop: start, end, off", markLoop],
  [["f"], "follow the marked object, or no longer", () => toggleFollow(follow.has() ? "" : scene.marked || objectKey(scene.store.at(-1)?.key ?? ""))],
  [["s"], "copy a link to this moment", copyLink],
  [["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"], "… 0: the first ten stations", (event) => scene.root.querySelectorAll(".station")[(Number(event.key) + 9) % 10]?.focus()],
  [["c"], "create a pod", press("#create-pod")],
  [["m"], "modify the marked pod", press("#change-pod")],
  [["d"], "delete it", press("#delete-pod")],
  [["w"], "add a watcher", press("#add-watcher")],
  [["t"], "theme", press("#theme")],
  [["Escape"], "close what is open, let go of the focus", () => (follow.has() ? follow.clear() : document.activeElement?.blur?.())],
  [["?"], "this list", () => keys.show()],
]);
click("#keys", () => keys.show());

// For tests, and for whoever opens the console.
window.listwatch = {
  get state() { return player.state; }, hash: () => hash(player.state), motion, player, timeline, follow, openRecording, clockText,
};

feed.begin();
requestAnimationFrame(frame);
