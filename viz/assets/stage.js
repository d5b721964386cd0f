// The live stage. One log, many views: the feed brings records, the player says which moment is on stage, the fold makes
// its picture, the scene draws that, motion draws the records that led there, the table and the sentence say them. One
// clock, requestAnimationFrame, moves all.
//
// How a module joins: it exports newX(stage) and is named in `modules` below. What newX returns may have any of these:
//
//	begin(answer)      the page's list was taken: answer.state, answer.log
//	switches(now)      what is on stage was made with these switches: { fifo: "real", … }
//	arrived(list)      records came from the feed, whatever moment is on stage
//	applied(list, now) records were folded one after the other; draw them as they move
//	summed(list, now)  so much happened that a picture came for it, and of the records these; if there is none, applied
//	jumped(now)        another picture is on stage
//	landed(r, now)     r is the record at the cursor: somebody froze the stage, stepped, or scrubbed
//	shown(res, state)  the scene was drawn from state; res is the resource on stage, undefined if nothing is known of it
//	draw(now)          once a frame
//	resource(name)     another resource is on stage
//	world(status)      the running world was held, let go, or its clock moved
//	restyle()          the colours are others
//	escape()           Escape was pressed: close what is open, and return true if something was
//	keys               rows of [keys, words, act] for keys.js
//
// It is given `stage`: infos, fold, scene, player, follow, motion, table, telling, timeline, controls and state, resource,
// source (null: a dropped recording); notice(text, calm) for the banner, tell(text) for a passing word, isFlag(r), here(r)
// (is r about the resource on stage), touch() when the scene has to be drawn anew. A module finds its own elements in the
// page and makes none that it could let templ write.

import { newAges } from "./ages.js";
import { newBanner } from "./banner.js";
import { newCast } from "./cast.js";
import { newBlocked } from "./blocked.js";
import { newControls } from "./controls.js";
import { newCrew } from "./crew.js";
import { put } from "./dom.js";
import { newFeed } from "./feed.js";
import { newFigure } from "./figure.js";
import { newFind } from "./find.js";
import { hash, isAnomaly, newFold, newState, sentence } from "./fold.js";
import { newFollow } from "./follow.js";
import { newHands } from "./hands.js";
import { newHistory } from "./history.js";
import { newInspector } from "./inspector.js";
import { newHold } from "./hold.js";
import { newKeys } from "./keys.js";
import { newKnobs } from "./knobs.js";
import { newLocks } from "./locks.js";
import { newLooks } from "./looks.js";
import { newMotion } from "./motion.js";
import { newPace } from "./pace.js";
import { newPlayer } from "./player.js";
import { newPresenter } from "./presenter.js";
import { newPromises } from "./promises.js";
import { newScenarios } from "./scenarios.js";
import { newScene } from "./scene.js";
import { newSpacetime } from "./spacetime.js";
import { newSpoken } from "./spoken.js";
import { newStatus } from "./status.js";
import { newTable } from "./table.js";
import { newTape, serverSource } from "./tape.js";
import { newTelling } from "./telling.js";
import { clockText, newTimeline } from "./timeline.js";
import { newVisit } from "./visit.js";
import { newZoom } from "./zoom.js";

const modules = [
  newAges,
  newBanner,
  newStatus,
  newPace,
  newVisit,
  newLooks,
  newHands,
  newFigure,
  newHold,
  newKnobs,
  newScenarios,
  newPromises,
  newFind,
  newPresenter,
  newSpoken,
  newCast,
  newHistory,
  newSpacetime, // after newHistory: the tape is one of its views
  newZoom, // before the inspector: a cell is not looked into, but at
  newInspector,
  newBlocked,
  newCrew,
  newLocks, // after newBlocked: what has lasted, it says
];

const showPeriods = [0, 100, 125]; // ms between two drawings of the scene, by how much is going on
const settle = 900; // ms that tokens go on moving after a step
const tableRows = 40; // shown when somebody goes to another moment

const points = await (await fetch("/viz/points")).json();
const fold = newFold(points);
const scene = newScene(JSON.parse(document.body.dataset.geometry));

let dirty = false;
let shownAt = 0;
let waiting = []; // records that came since the last frame
let motionTime = 0; // the clock of the tokens: it stands while the stage is frozen
let moving = 0; // until then tokens move although it is frozen
let frameAt = 0;

const stage = {
  fold, infos: fold.infos, scene,
  source: null, // the server's log; null: a recording that was dropped here
  shown: { log: "", recording: "" }, // what is on stage, as links name it
  resource: document.body.dataset.resource,
  connection: ["connecting", ""],
  get state() { return stage.player.state; },
  isFlag: (r) => isAnomaly(fold.infos.get(r.point), r),
  here: (r) => (r.resource ?? "") === stage.resource || (r.resource ?? "") === "",
  touch: () => (scene.stale = true),
  tell: (text) => stage.controls.tell(text),
  notice: () => {}, // by banner.js
  reset: (tape, state, recorded) => stage.player.reset(tape, state, recorded),
  forget: () => (waiting = []),
  switched: (now) => all("switches", now),
};
const joined = []; // what the modules returned
const all = (name, ...args) => joined.forEach((module) => module[name]?.(...args));
stage.escape = () => joined.findLast((module) => module.escape?.());

stage.player = newPlayer(fold, { applied, summed, jumped, froze, trouble, skipped: (ns) => all("skipped", ns) });
stage.follow = newFollow(fold.infos, {
  changed: followChanged, trouble, seek: (seq) => stage.player.seek(seq), local: () => !stage.source,
  records: async (query, matches) => {
    if (stage.source) return (await stage.source.of(query)).records;
    return stage.player.tape.between(1, stage.player.head + 1).filter((r) => matches(r) && (r.resource ?? "") === stage.resource);
  },
});
scene.followed = stage.follow.token;
stage.motion = newMotion(document.querySelector("#tokens"), scene, fold.infos, stage.follow);
stage.table = newTable(fold.infos, stage.follow);
stage.telling = newTelling(fold.infos, scene);
stage.controls = newControls(scene);
stage.timeline = newTimeline(stage.player, {
  seek: (seq) => stage.player.seek(seq),
  loop: (range) => stage.setLoop(range),
  flag: (r) => stage.isFlag(r) && { seq: r.seq, t: r.t, point: r.point, says: sentence(fold.infos.get(r.point), r) },
});
const { player, follow, motion, table, telling, timeline } = stage;
for (const join of modules) joined.push(join(stage) ?? {});
stage.keys = newKeys([...joined.flatMap((module) => module.keys ?? []), [["?"], "this list", () => stage.keys.show()]]);
document.querySelector("#keys").addEventListener("click", () => stage.keys.show());
stage.reset(newTape(fold, null), newState(), false);

stage.feed = newFeed({
  snapshot: begin,
  records: (list) => waiting.push(...list),
  coalesced(message) {
    flush();
    timeline.skip(message);
    follow.add(message.kept);
    player.replaced(message.state, message.kept);
  },
  follows: () => follow.query(),
  world: (status) => all("world", status),
  state(word, title) {
    stage.connection = [word, title];
    all("connected");
  },
});

// begin takes the list of the page's list-watch. A log that is known already is only continued.
function begin(answer) {
  waiting = [];
  timeline.expect(answer.state);
  const recorded = document.body.dataset.replay === "true";
  if (answer.log === stage.shown.log) {
    player.replaced(answer.state, null);
  } else {
    stage.source = serverSource(answer.log);
    stage.shown = { log: answer.log, recording: answer.recording ?? "" };
    follow.clear();
    stage.reset(newTape(fold, stage.source), answer.state, recorded);
  }
  all("begin", answer);
  all("switches", answer.switches);
  const first = player.oldest === 0 && player.cursor === player.head;
  fetch("/viz/timeline").then((response) => response.json()).then((line) => {
    player.oldest = line.oldest;
    timeline.index(line);
    return recent();
  }).then(() => {
    if (first) stage.arrive(recorded);
  }).catch(trouble);
}

// recent fetches what led to the picture the page begins with: it may be long until something happens again.
async function recent() {
  const [from, to] = [Math.max(player.oldest + 1, player.cursor - tableRows), player.cursor + 1];
  await player.tape.load(from, to).catch(() => {}); // gone already: then the table begins with what comes
  if (player.moved) return;
  const list = player.tape.between(from, player.cursor + 1);
  table.show(list);
  telling.consider(list, stage.resource);
}

function flush() {
  if (waiting.length === 0) return;
  const list = waiting;
  waiting = [];
  timeline.add(list);
  follow.add(list);
  all("arrived", list);
  player.arrived(list);
}

function frame(now) {
  requestAnimationFrame(frame);
  const ms = Math.min(100, now - frameAt);
  frameAt = now;
  flush();
  player.tick(ms);
  if (player.mode !== "frozen" || now < moving) motionTime += ms;
  if (scene.stale || (dirty && now - shownAt >= showPeriods[Math.min(2, motion.level)])) show(now);
  motion.draw(motionTime);
  table.draw(now, player);
  follow.draw(now, player.cursor);
  timeline.draw(now);
  if (player.mode !== "frozen") telling.draw(now);
  all("draw", now);
}

function show(now) {
  dirty = scene.stale = false;
  shownAt = now;
  scene.show(player.state, stage.resource);
  all("shown", player.state.resources[stage.resource], player.state);
}

// applied is told of records that were folded one after the other: they are drawn as they move.
function applied(list) {
  const now = performance.now();
  dirty = true;
  stage.count(now);
  if (list.some((r) => ["open", "close"].includes(fold.infos.get(r.point).op))) show(now); // lanes first: tokens travel to where they are
  motion.records(list, stage.resource, motionTime, stage.rates(now).events);
  table.add(list);
  telling.consider(list, stage.resource);
  all("applied", list, now);
  if (player.mode === "frozen") landed(list.at(-1), now);
}

// summed is told that a newer picture came for more records than anybody can look at, of which list matter one by one.
function summed(before, list) {
  const now = performance.now();
  dirty = true;
  stage.count(now);
  motion.sums(before, player.state, stage.resource, motionTime);
  motion.records(list, stage.resource, motionTime, stage.rates(now).events, true);
  table.add(list);
  telling.consider(list, stage.resource);
  for (const module of joined) (module.summed ?? module.applied)?.(list, now);
}

// jumped is told that another picture is on stage. Only the record that led there is drawn.
function jumped() {
  const now = performance.now();
  motion.clear();
  telling.clear();
  all("jumped", now);
  show(now);
  const list = player.tape.between(Math.max(1, player.cursor - tableRows), player.cursor + 1);
  table.show(list);
  const last = player.tape.get(player.cursor);
  if (player.mode !== "frozen") return;
  if (!last) return telling.begins(player.cursor);
  motion.records([last], stage.resource, motionTime, 0);
  landed(last, now);
}

// froze is told that the stage stands: from now on the sentence is about the record at the cursor.
function froze() {
  const r = player.tape.get(player.cursor);
  if (!r) return;
  const now = performance.now();
  telling.tell(r, now);
  all("landed", r, now);
}

function landed(r, now) {
  moving = now + settle;
  telling.tell(r, now);
  all("landed", r, now);
}

function trouble(problem) {
  stage.notice(problem.message);
  if (!problem.gone || !stage.source) return;
  fetch("/viz/timeline").then((response) => response.json()).then((line) => (player.oldest = line.oldest)).catch(() => {});
}

function followChanged() {
  scene.stale = true;
  table.touch();
  all("followed");
}

// Another resource on stage: nothing of the one before stays.
stage.setResource = (name) => {
  stage.resource = name;
  put(document.body, "data-resource", name);
  follow.clear();
  motion.clear();
  dirty = true;
  all("resource", name);
};

stage.restyle = () => {
  motion.restyle();
  timeline.restyle();
  all("restyle");
};

// For tests, and for whoever opens the console.
window.listwatch = {
  get state() { return player.state; },
  hash: () => hash(player.state), motion, player, timeline, follow, openRecording: (file) => stage.openRecording(file), clockText, stage,
};

if (document.body.dataset.take) stage.openTake(document.body.dataset.take);
else stage.feed.begin();
requestAnimationFrame(frame);
