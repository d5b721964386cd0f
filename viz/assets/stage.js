// The live stage. One log, many views: the feed brings records, the fold turns them into a state, the scene draws the
// state, motion draws the records, the table and the sentence say them. One clock, requestAnimationFrame, moves all.

import { newControls } from "./controls.js";
import { put, say } from "./dom.js";
import { newFeed } from "./feed.js";
import { hash, newFold, newState, sentence } from "./fold.js";
import { newMotion } from "./motion.js";
import { newScene } from "./scene.js";
import { newTable } from "./table.js";

const showPeriods = [0, 100, 125]; // ms between two drawings of the scene, by how much is going on
const sentencePeriod = 2000; // ms that a sentence stays at least

const points = await (await fetch("/viz/points")).json();
const geometry = JSON.parse(document.body.dataset.geometry);
const fold = newFold(points);
const scene = newScene(geometry);
const motion = newMotion(document.querySelector("#tokens"), scene, fold.infos);
const table = newTable(fold.infos);
newControls(scene);

let state = newState();
let resource = document.body.dataset.resource;
let dirty = false;
let shownAt = 0;
let waiting = []; // records that came since the last frame
let history = []; // [time, events, records] of the last second
let toldAt = 0;
const lastTold = new Map(); // by point: when there was a sentence about it
const candidates = new Map(); // by point: the newest record since the last sentence

const feed = newFeed({
  snapshot(answer) {
    state = answer.state;
    waiting = [];
    candidates.clear();
    dirty = true;
    motion.clear();
    pickResources();
  },
  records(list) {
    waiting.push(...list);
  },
  state: showMode,
});

function frame(now) {
  requestAnimationFrame(frame);
  if (waiting.length > 0) {
    const list = waiting;
    waiting = [];
    take(list, now);
  }
  if (scene.stale || (dirty && now - shownAt >= showPeriods[motion.level])) show(now);
  motion.draw(now);
  table.draw(now);
  tellSentence(now);
  showRate(now);
}

function show(now) {
  dirty = scene.stale = false;
  shownAt = now;
  scene.show(state, resource);
}

function take(list, now) {
  const known = Object.keys(state.resources).length;
  fold.apply(state, list);
  dirty = true;
  const events = list.filter((r) => r.point === "RingAppend").length;
  history.push([now, events, list.length]);
  const comesOrGoes = list.some((r) => ["open", "close"].includes(fold.infos.get(r.point).op));
  if (comesOrGoes) show(now); // lanes first: tokens travel to where they are
  motion.records(list, resource, now, rates(now).events);
  table.add(list);
  consider(list);
  if (Object.keys(state.resources).length !== known) pickResources();
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
  say(document.querySelector("#rate"), `${events} ${events === 1 ? "event" : "events"}/s, ${records} records/s`);
  const words = motion.every > 1 ? `● = ${motion.every}` : motion.level === 1 ? "every event, no labels" : "every event";
  say(document.querySelector("#level"), words);
}

function consider(list) {
  for (const r of list) {
    if ((r.resource ?? "") === resource || (r.resource ?? "") === "") candidates.set(r.point, r);
  }
}

// choose picks, of what has happened, what is worth a sentence: an anomaly before anything else, then what has not been
// told for the longest time, so that whoever keeps reading is led through every station.
function choose() {
  let best = null;
  let rank = Infinity;
  for (const point of fold.infos.keys()) {
    const r = candidates.get(point);
    if (!r) continue;
    const age = fold.infos.get(point).anomaly ? -Infinity : (lastTold.get(point) ?? -1);
    if (best === null || age < rank) [best, rank] = [r, age];
  }
  return best;
}

function tellSentence(now) {
  if (candidates.size === 0 || now - toldAt < sentencePeriod) return;
  const told = choose();
  candidates.clear();
  lastTold.set(told.point, now);
  toldAt = now;
  const info = fold.infos.get(told.point);
  const bar = document.querySelector("#sentence");
  say(bar.querySelector(".where"), info.station);
  say(bar.querySelector(".words"), sentence(info, told));
  put(bar, "class", info.anomaly ? "sentence anomaly" : "sentence");
  document.querySelectorAll(".station.told").forEach((el) => el.classList.remove("told"));
  scene.stations.get(info.station)?.classList.add("told");
}

function showMode(word, title) {
  const mode = document.querySelector("#mode");
  put(mode, "data-state", word);
  put(mode, "title", title);
  const words = { live: document.body.dataset.mode, reconnecting: "reconnecting", silent: "process stopped?" };
  const lost = state.lost > 0 ? `, ${state.lost} records lost` : "";
  say(document.querySelector("#mode-text"), (words[word] ?? word) + lost);
}

function pickResources() {
  const select = document.querySelector("#resource");
  const names = Object.keys(state.resources).filter((name) => name !== "").sort();
  if (!names.includes(resource)) names.unshift(resource);
  if ([...select.options].map((o) => o.value).join() === names.join()) return;
  select.replaceChildren(...names.map((name) => new Option(name, name, name === resource, name === resource)));
}

document.querySelector("#resource").addEventListener("change", (event) => {
  resource = event.target.value;
  put(document.body, "data-resource", resource);
  motion.clear();
  dirty = true;
});

const themes = ["", "light", "dark"];
const themeNames = { "": "as the system", light: "light", dark: "dark" };
document.querySelector("#theme").addEventListener("click", (event) => {
  const root = document.documentElement;
  const theme = themes[(themes.indexOf(root.dataset.theme ?? "") + 1) % themes.length];
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  localStorage.setItem("theme", theme);
  put(event.currentTarget, "aria-label", `Theme: ${themeNames[theme]}`);
  put(event.currentTarget, "title", `Theme: ${themeNames[theme]}`);
  motion.restyle();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", motion.restyle);

// For tests, and for whoever opens the console.
window.listwatch = { get state() { return state; }, hash: () => hash(state), motion };

feed.begin();
requestAnimationFrame(frame);
