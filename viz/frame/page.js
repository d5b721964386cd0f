// The live stage: the feed brings records, the player chooses the moment on stage, the fold computes its picture, and
// the other parts show it, once in each animation frame. A part implements the hooks that it needs (page.Part).

import { newFigure } from "../book/figure.js";
import { Console } from "../console/console.js";
import { $, limits, put, when } from "../dom/dom.js";
import { newPanel } from "../dom/panel.js";
import { Inspector } from "../inspector/inspector.js";
import { newLens } from "../lens/lens.js";
import { get, program, queryOf, refusal, text } from "../lib/api.js";
import { Feed } from "../log/feed.js";
import { clause, isAnomaly, newFold, newState, sentence } from "../log/fold.js";
import { Tape, serverSource } from "../log/tape.js";
import { Spacetime } from "../spacetime/spacetime.js";
import { newCrowd } from "../stage/crowd.js";
import { Motion } from "../stage/motion.js";
import { readPicture } from "../stage/picture.js";
import { named } from "../stage/places.js";
import { Planner } from "../stage/plan.js";
import { Scene } from "../stage/scene.js";
import { SentenceBar } from "../stage/sentence.js";
import { Waits } from "../stage/waits.js";
import { Zoom } from "../stage/zoom.js";
import { newKnobs } from "../stories/knobs.js";
import { newPresenter } from "../stories/presenter.js";
import { Scenarios } from "../stories/scenarios.js";
import { Follow } from "../timeline/follow.js";
import { Hold } from "../timeline/hold.js";
import { Own, yours } from "../timeline/own.js";
import { OwnBar } from "../timeline/ownbar.js";
import { Player, sweep } from "../timeline/player.js";
import { newTable } from "../timeline/table.js";
import { Timeline } from "../timeline/timeline.js";
import { newBanner } from "./banner.js";
import { Controls } from "./controls.js";
import { Welcome } from "./welcome.js";
import { Actions } from "./actions.js";
import { bindKeys } from "./keys.js";
import { newAppearance } from "./appearance.js";
import { Status } from "./status.js";
import { Visit } from "./visit.js";

const soon = 600; // records after the cursor, searched for the ways that the tokens take next
const recently = 40; // records loaded for the table when the page begins
const ledHere = 200; // records searched for tokens at rest, before the cursor

const { dataset } = document.body;
const fold = newFold(JSON.parse(dataset.table ?? "[]"));
const { infos } = fold;
const scene = new Scene(JSON.parse(dataset.geometry ?? "{}"));

const on = {
  /** @type {ReturnType<typeof serverSource> | null} */
  source: null, // the server's log; null for a recording that the page reads
  shown: { log: "", recording: "" }, // the names of the log and the recording in links
  resource: dataset.resource ?? "", connection: "connecting",
};
const frames = {
  dirty: false, // whether some folded records are not yet drawn
  at: 0, // the time of the last frame, in ms
  shownAt: 0,
  summing: false, // whether a sum, a picture that replaces records, was read since the last frame
  postponed: 0, // ms of the last frame if it drew nothing
};
/** @type {probe.Record[]} */
const waiting = []; // records since the last frame

/** @type {page.Part[]} */
const parts = [];
const resource = () => on.resource;
const shown = () => on.shown;
const running = () => on.source !== null; // whether a program is on stage
const drawn = () => !frames.dirty; // whether the screen shows the state at the cursor
/** @param {{ resource?: string }} r */
const here = (r) => (r.resource ?? "") === on.resource || (r.resource ?? "") === "";
// called returns the stage's name for a record's subject. says returns the record's sentence, with that name.
/** @param {{ resource?: string, subject?: string }} r */
const called = (r) => {
  const name = player.tape.called(r);
  if (!scene.story) return r.subject && named(scene, name) ? "your controller" : name;
  return scene.story.members.find(({ subject }) => r.subject && subject === r.subject)?.name ?? name;
};
/** @param {probe.Record} r */
const says = (r) => sentence(infos.get(r.point), r, called(r)).replace(/^your/, "Your");
// said returns a record's short sentence, with the stage's name for its subject, or "" if the record is not loaded.
const said = (/** @type {number} */ seq) => {
  const r = player.tape.get(seq);
  const info = infos.get(r?.point ?? "");
  const words = r ? sentence(clause(info, !scene.whole(info.station)), r, called(r)) : "";
  return words.slice(0, 1).toUpperCase() + words.slice(1);
};
/** @param {probe.Record} r */
const isFlag = (r) => isAnomaly(infos.get(r.point), r); // whether r is an anomaly

const follow = new Follow(resource, () => {
  scene.stale = true;
  for (const part of parts) part.followed?.();
});
scene.followed = follow.matches;
const planner = new Planner(scene, { infos, here, matches: follow.matches, writes: limits.writes });
// etcd has at least the revision of a token past it: the watch may deliver a change before its writer reports it
scene.leaving = () => planner.moves.find(({ station }) => station !== "etcd" && station !== "http")?.rv ?? "0";
const motion = new Motion($("#tokens", HTMLCanvasElement), scene, planner);
const pictured = () => player.state.resources[on.resource]; // the picture of the resource on stage
const stationOf = (/** @type {probe.Record} */ r) => infos.get(r.point).station;
const own = new Own({ ...limits, here, station: stationOf,
  yours: (r) => yours(scene.places, stationOf(r), r.subject ?? "") });
const player = new Player(fold, { own, motion: planner, resource, applied, jumped, grounded: stand, froze, trouble },
  new Tape(fold, null), newState());

// ---- the parts; the array parts has them in the order in which they are called

/** @type {(words: string) => void} */
const tell = (words) => controls.tell(words);
const banner = newBanner({ connection: () => on.connection, says });
const { notice, trouble: complain } = banner;
/** @type {(news: string) => void} */
const news = (words) => running() && notice(words);
/** @type {(now: page.Switches) => void} */
const switched = (now) => parts.forEach((part) => part.switches?.(now));
const held = () => hold.held;
const escape = () => Boolean(parts.findLast((part) => part.escape?.()));

const timeline = new Timeline({ player, scene, here, isFlag });
const sentenceBar = new SentenceBar({ infos, scene, player, planner, motion, drawn, here, says });
const table = newTable({ infos, follow, player, drawn, told: () => sentenceBar.seq, called, says });
const controls = new Controls({ scene, follow, resource, held });
const status = new Status({ player, connection: () => on.connection, program: running, held });
const visit = new Visit({
  player, follow, timeline, fold, shown, program: running, figure: () => figure.ready, again: () => first.again(),
  notice, tell, trouble: complain, leave, reopen: () => feed.begin(), switched,
});
const appearance = newAppearance({ player, scene, resource, setResource, restyle });
const actions = new Actions({ player, follow, scene, timeline, resource, tell, escape });
const hold = new Hold({ player, follow, tell, notice });
const knobs = newKnobs({ scene, tell, news, trouble: complain });
const zoom = new Zoom({ scene, motion });
const figure = newFigure({ player, scene, zoom });
const scenarios = new Scenarios({ player, scene, zoom, visit, resource, setResource, shown, notice,
  trouble: complain });
const promises = newPanel(news, "promises", "g", 2000);
const lens = newLens({ resource, news, trouble: complain });
const version = () => pictured()?.stations.etcd?.rv ?? "0";
new Console({ version, trouble: complain });
const presenter = newPresenter({ scene, zoom, restyle });
const spacetime = new Spacetime({ player, fold, follow, here, isFlag, says });
const inspector = new Inspector({ player, infos, scene, follow, resource, shown, tell });
const waits = new Waits({ scene, infos, player, here });
const crowd = newCrowd(scene, {
  player, here, open: (subject) => inspector.inspect({ station: "watcher", queue: "", subject }),
  look(subject) {
    const where = queryOf({ resource: on.resource, subject, log: on.shown.log });
    if (running() && player.mode === "live") text(`/viz/part/watcher/what?${where}`).catch(() => {}); // may be closed
  },
});
const ownBar = new OwnBar({ player, follow, scene, planner, infos, setResource, begins: () => first.escape() });
const first = new Welcome({ player, scene, here });
parts.push(crowd, timeline, sentenceBar, table, banner, controls, status, visit, appearance, actions, figure, hold,
  knobs, scenarios, promises, lens, presenter, spacetime, zoom, inspector, waits, first, ownBar);

const guide = () => parts.map((part) => part.guide?.()).findLast(Boolean);
const keys = bindKeys(parts.map((part) => part.keys ?? {}), guide);
player.reset(player.tape, player.state, false);

const feed = new Feed({
  snapshot: begin,
  records: (list) => document.hidden || waiting.push(...list), // a hidden page lists again when shown
  coalesced(message) {
    flush();
    timeline.skip(message);
    player.replaced(message.state, message.kept);
  },
  follows: () => follow.follows(), state: (word) => (on.connection = word),
  world(status) {
    for (const part of parts) part.world?.(status);
    look();
  },
});

// begin shows the list of the page's list-watch: a newer state of the log on stage, or another log instead of it.
/** @param {import("../log/feed.js").Snapshot} answer */
async function begin(answer) {
  waiting.length = 0;
  timeline.clear();
  const recorded = dataset.replay === "true";
  if (answer.log === on.shown.log) {
    player.replaced(answer.state, null);
  } else {
    on.source = serverSource(answer.log, answer.size);
    if (on.shown.log) follow.clear(); // an object that was followed before the first list stays followed
    on.shown = { log: answer.log, recording: answer.recording ?? "" };
    player.reset(new Tape(fold, on.source), answer.state, recorded);
  }
  for (const part of parts) part.begin?.(answer);
  switched(answer.switches);
  const arrives = player.oldest === 0 && player.cursor === player.head;
  const line = await get("/viz/timeline").catch(trouble);
  if (!line) return;
  player.oldest = line.oldest;
  timeline.index(line);
  // The table begins with the records up to the first picture, because the next record may come much later.
  const [from, to] = [Math.max(player.oldest + 1, player.cursor - recently), player.cursor + 1];
  await player.tape.load(from, to).catch(() => {});
  if (!player.moved) table.jumped();
  if (arrives) visit.arrive(recorded);
}

function flush() {
  if (waiting.length === 0) return;
  const list = waiting.splice(0);
  for (const part of parts) part.arrived?.(list);
  player.arrived(list);
}

/** @param {number} now */
function frame(now) {
  requestAnimationFrame(frame);
  const ms = Math.min(100, now - frames.at);
  const passed = ms + frames.postponed;
  // A frame that has read a sum draws nothing, because one frame has no time both to read a sum and to draw it.
  const waits = frames.summing && frames.postponed === 0 && ms < sweep && frames.shownAt <= frames.at;
  Object.assign(frames, { postponed: waits ? ms : 0, at: now, summing: false });
  if (!waits) turn(now, passed);
}

/** @param {number} now @param {number} ms */
function turn(now, ms) {
  flush();
  player.tick(player.mode === "frozen" ? 0 : ms);
  if (scene.stale || (frames.dirty && (!player.sweeping || now - frames.shownAt >= sweep))) show(now);
  motion.draw(player.clock, { own, stream: player.beat.stream, coming, said });
  for (const part of parts) part.draw?.(now, ms);
}

// coming returns the loaded records soon after the cursor, and the picture of the resource on stage.
/** @returns {[probe.Record[], fold.Resource | undefined]} */
const coming = () => [player.tape.between(player.cursor + 1, player.cursor + soon), pictured()];

/** @param {number} now */
function show(now) {
  frames.shownAt = now;
  frames.dirty = scene.stale = false;
  scene.streaming = player.beat.stream;
  scene.show(player.state, on.resource);
  for (const part of parts) part.shown?.(pictured(), player.state);
}

// applied handles records that were folded singly. With sum, a newer picture has replaced more records than a viewer
// can follow, and list has only those to show singly.
/** @param {probe.Record[]} list @param {boolean} [sum] */
function applied(list, sum = false) {
  const now = performance.now();
  frames.dirty = true;
  frames.summing ||= sum;
  if (list.some((r) => ["open", "close"].includes(infos.get(r.point).op))) scene.changed(player.state, on.resource);
  planner.closed(list);
  if (player.sweeping || sum) motion.records(list, player.clock, { own, stream: player.beat.stream }, pictured());
  for (const part of parts) part.applied?.(list, now);
  const last = list.at(-1);
  if (player.mode === "frozen" && last) landed(last, now);
}

/** @param {probe.Record} r @param {number} now */
function landed(r, now) {
  for (const part of parts) part.landed?.(r, now);
}

// stand puts only the resting tokens on the stage, from the last records up to the cursor.
function stand() {
  motion.clear();
  planner.stand(player.tape.between(Math.max(1, player.cursor - ledHere), player.cursor + 1));
}

function jumped() {
  const now = performance.now();
  motion.clear();
  for (const part of parts) part.jumped?.(now);
  show(now);
  table.draw(); // show has drawn the picture, and a frame must not have a table of another cursor
  stand();
  if (player.mode === "frozen" && !froze()) sentenceBar.begins(player.cursor);
}

// froze shows a record as the last one that landed, and reports whether that record is loaded. While a change of the
// viewer's is on its way, it is the change's last record, otherwise the record at the cursor.
function froze() {
  const { tape, cursor } = player;
  const r = (own.first && tape.between(cursor - soon, cursor + 1).findLast((e) => own.its(e))) ?? tape.get(cursor);
  if (r) landed(r, performance.now());
  return Boolean(r);
}

/** @param {unknown} problem */
function trouble(problem) {
  const { message, gone } = refusal(problem);
  notice(message, true);
  if (gone && on.source) get("/viz/timeline").then((line) => (player.oldest = line.oldest)).catch(() => {});
}

/** @param {string} recording */
function leave(recording) {
  feed.end();
  waiting.length = 0;
  Object.assign(on, { source: null, shown: { log: "", recording }, connection: "live" });
}

/** @param {string} name */
function setResource(name) {
  on.resource = name;
  put(document.body, "data-resource", name);
  follow.clear();
  motion.clear();
  player.turned();
  frames.dirty = true;
  for (const part of parts) part.resource?.(name);
}

function restyle() {
  motion.restyle();
  for (const part of parts) part.restyle?.();
}

/** @param {{ texts?: boolean }} [how] */
const picture = (how) => readPicture({ scene, motion, planner, player, waiting: () => hold.waiting }, how);

// For tests, and for the browser's console.
Object.assign(window, {
  listwatch: {
    get state() { return player.state; },
    motion, player, follow, picture, keys, openRecording: (/** @type {File} */ file) => visit.openRecording(file),
    stage: {
      fold, scene, planner, player, here, says, setResource, restyle, zoom, banner, inspector, scenarios,
      get source() { return on.source; }, get shown() { return on.shown; },
    },
  },
});

// look ends the stream of a hidden page, which has no viewer, unless the page holds the world.
function look() {
  if (document.hidden && !hold.keeps) feed.end();
}

when(document, "visibilitychange", () => (document.hidden ? look() : dataset.laid || feed.begin()));
when(window, "pagehide", () => feed.end());
setInterval(() => feed.check(), 1000);
if (!dataset.take && !document.hidden) feed.begin();
else if (dataset.take && (program || !scenarios.begin())) visit.openTake(dataset.take);
// The first frame waits for the text face, with which canvases measure texts. If it does not load, they use another.
document.fonts.load("15px Inter").catch(() => {}).then(() => requestAnimationFrame(frame));
