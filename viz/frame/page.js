// The live stage. One log, many views: the feed brings records, the player says which moment is on stage, the fold
// makes its picture, the scene draws that, motion draws the records that led there, the table and the sentence say
// them. One clock, requestAnimationFrame, moves all.
//
// This module makes the parts of the page, and gives each what it needs. A part finds its own elements in the page, and
// defines those of these hooks that it needs. Times called now are in ms, as requestAnimationFrame has them.
//
//	begin(answer)       the page has taken its list: the state, and the name of its log
//	switches(now)       what is on stage was made with these switches, as { fifo: "real" }
//	arrived(list)       records came from the feed, whatever moment is on stage
//	applied(list, now)  records were folded; of a sum, list are those that matter
//	jumped(now)         another moment is on stage
//	landed(r, now)      the viewer froze the stage, stepped, or scrubbed: r is at the cursor
//	skipped(ns)         a replay left out a time without records
//	shown(res, state)   the scene was drawn; without res nothing is known of the resource
//	draw(now, ms)       once a frame; so much time is to pass
//	resource(name)      another resource is on stage
//	world(status)       how the running world is: at first, and when it is held or resumed, or its clock moves
//	connected()         the connection to the program changed
//	followed()          another object or revision is followed, or none
//	restyle()           the colours changed
//	escape()            Escape was pressed: close what is open, and return true if something was
//	keys                what keys do, as {key: act} (keys.js)
//	guide()             what keys do while this part guides the viewer, as {key: act} (keys.js); nothing: it does not

import { newFigure } from "../book/figure.js";
import { Console } from "../console/console.js";
import { $, put, when } from "../dom/dom.js";
import { newPanel } from "../dom/panel.js";
import { Inspector } from "../inspector/inspector.js";
import { newLens } from "../lens/lens.js";
import { get, program, queryOf, refusal } from "../lib/api.js";
import { limits } from "../dom/limits.js";
import { clockText } from "../lib/times.js";
import { Feed } from "../log/feed.js";
import { isAnomaly, newFold, newState, sentence } from "../log/fold.js";
import { Tape, serverSource } from "../log/tape.js";
import { Spacetime } from "../spacetime/spacetime.js";
import { Motion } from "../stage/motion.js";
import { readPicture } from "../stage/picture.js";
import { Planner } from "../stage/plan.js";
import { Scene } from "../stage/scene.js";
import { SentenceBar } from "../stage/sentence.js";
import { Waits } from "../stage/waits.js";
import { Zoom } from "../stage/zoom.js";
import { newKnobs } from "../stories/knobs.js";
import { newPresenter } from "../stories/presenter.js";
import { Scenarios } from "../stories/scenarios.js";
import { matches, parametersOf } from "../log/query.js";
import { Follow } from "../timeline/follow.js";
import { Hold } from "../timeline/hold.js";
import { Player, sweep } from "../timeline/player.js";
import { newTable } from "../timeline/table.js";
import { Timeline } from "../timeline/timeline.js";
import { newBanner } from "./banner.js";
import { Controls } from "./controls.js";
import { newCost } from "./cost.js";
import { Welcome } from "./welcome.js";
import { Actions } from "./actions.js";
import { bindKeys } from "./keys.js";
import { newAppearance } from "./appearance.js";
import { Status } from "./status.js";
import { Visit } from "./visit.js";

const soon = 600; // records in which what stands is looked for
const recently = 40; // records that led to the first picture
const ledHere = 200; // records that are looked at for what stands where then

const { dataset } = document.body;
const fold = newFold(JSON.parse(dataset.table ?? "[]"));
const { infos } = fold;
const scene = new Scene(JSON.parse(dataset.geometry ?? "{}"));
const cost = newCost();

// on says what is on stage.
const on = {
  /** @type {ReturnType<typeof serverSource> | null} */
  source: null, // the server's log; null: a recording that was dropped here
  shown: { log: "", recording: "" }, // as links name it
  resource: dataset.resource ?? "",
  /** @type {[word: string, title: string]} */
  connection: ["connecting", ""],
};
// frames says what was done in the last ones.
const frames = {
  dirty: false, // records were folded that are not drawn
  at: 0, // ms
  shownAt: 0,
  summing: false, // a sum was read since the last frame
  postponed: 0, // ms of the last frame, if it did nothing
  heard: 0, // ms that the feed's messages took since the last frame
};
/** @type {probe.Record[]} */
const waiting = []; // records that came since the last frame

/** @type {page.Part[]} */
const parts = [];
const resource = () => on.resource;
const shown = () => on.shown;
const running = () => on.source !== null; // is there a program, and is it on stage?
const drawn = () => !frames.dirty; // is what is on screen the picture of the cursor?
// here reports whether a record is about the resource on stage.
/** @param {{ resource?: string }} r */
const here = (r) => (r.resource ?? "") === on.resource || (r.resource ?? "") === "";
// called is what the subject of a record is called on stage, and says the record's sentence.
/** @param {{ resource?: string, subject?: string }} r */
const called = (r) => scene.story?.members.find(({ subject }) => r.subject && subject === r.subject)?.name
  ?? player.tape.called(r);
/** @param {probe.Record} r */
const says = (r) => sentence(infos.get(r.point), r, called(r));
/** @param {probe.Record} r */
const isFlag = (r) => isAnomaly(infos.get(r.point), r); // must r not be overlooked?

const follow = new Follow(infos, {
  trouble, resource, seek: (seq) => player.seek(seq), cursor: () => player.cursor,
  changed() {
    scene.stale = true;
    for (const part of parts) part.followed?.();
  },
  async records(query) {
    if (on.source) return (await on.source.of(String(queryOf(parametersOf(query))))).records;
    return player.tape.between(1, player.head + 1).filter((r) => matches(query, r));
  },
});
scene.followed = follow.matches;
const planner = new Planner(scene, { infos, here, matches: follow.matches, writes: limits.writes });
// etcd's watch may tell of a change before its writer does: what has left etcd has its number
scene.leaving = () => planner.moves.find(({ station }) => station !== "etcd" && station !== "http")?.rv ?? "0";
const motion = new Motion($("#tokens", HTMLCanvasElement), scene, planner);
const pictured = () => player.state.resources[on.resource]; // of the resource on stage
const player = new Player(fold, {
  motion: {
    travels: (r) => planner.travels(r), matches: follow.matches, under: (change) => planner.under(change),
    plan: (list) => planner.plan(list, pictured()),
    launch(plan, t0, t1, folded) {
      planner.launch(plan, t0, t1, folded);
      scene.stale = true; // etcd has its number
    },
    land: (plan) => motion.land(plan),
    pass: (list) => planner.pass(list),
  },
  resource, applied, jumped, grounded: stand, froze, trouble,
  skipped: (ns) => parts.forEach((part) => part.skipped?.(ns)),
}, new Tape(fold, null), newState());

// ---- the parts, in the order in which they are called

/** @type {(words: string) => void} */
const tell = (words) => controls.tell(words);
/** @type {(text: string, calm?: boolean) => void} */
const notice = (text, calm) => banner.notice(text, calm);
/** @type {(problem: unknown) => void} */
const complain = (problem) => banner.trouble(problem);
/** @type {(news: string) => void} */
const news = (words) => running() && notice(words);
/** @type {(now: page.Switches) => void} */
const switched = (now) => parts.forEach((part) => part.switches?.(now));
const held = () => hold.held;
const escape = () => Boolean(parts.findLast((part) => part.escape?.()));

const timeline = new Timeline({ player, scene, here, isFlag, says });
const sentenceBar = new SentenceBar({ infos, scene, player, planner, motion, drawn, here, says });
const table = newTable({ infos, follow, player, drawn, told: () => sentenceBar.seq, called, says });
const banner = newBanner({ connection: () => on.connection[0], says });
const controls = new Controls({ scene, follow, resource, held });
const status = new Status({ player, planner, scene, connection: () => on.connection, program: running, held });
const visit = new Visit({
  player, follow, timeline, fold, shown, program: running, figure: () => figure.ready, again: () => first.again(),
  notice, tell, trouble: complain, leave, reopen: () => feed.reopen(), switched,
});
const appearance = newAppearance({ player, scene, resource, setResource, restyle });
const actions = new Actions({ player, follow, scene, motion, timeline, resource, tell, escape });
const hold = new Hold({ player, follow, resource, tell, notice, called });
const knobs = newKnobs({ tell, news, trouble: complain });
const zoom = new Zoom({ scene, motion });
const figure = newFigure({ player, scene, zoom });
const scenarios = new Scenarios({
  player, scene, zoom, visit, resource, setResource, shown, notice, trouble: complain,
});
const promises = newPanel(news, "promises", "g", 2000);
const lens = newLens({ resource, news, trouble: complain });
const version = () => pictured()?.stations.etcd?.rv ?? "0";
const wire = new Console({ version, trouble: complain });
const presenter = newPresenter({ scene, zoom, restyle });
const spacetime = new Spacetime({ player, fold, scene, follow, here, isFlag, says });
const inspector = new Inspector({ player, infos, scene, follow, resource, shown, program: running, here, tell });
const waits = new Waits({ scene, infos, player, here });
const first = new Welcome({ player, scene, here, openStory: (id, at) => scenarios.openStory(id, at) });
parts.push(follow, timeline, sentenceBar, table, banner, controls, status, visit, appearance, actions, figure, hold,
  knobs, scenarios, promises, lens, presenter, spacetime, zoom, inspector, waits, first);

const guide = () => parts.map((part) => part.guide?.()).findLast(Boolean);
const keys = bindKeys(parts.map((part) => part.keys ?? {}), guide);
player.reset(player.tape, player.state, false);

const feed = new Feed({
  snapshot: begin,
  records: (list) => waiting.push(...list),
  coalesced(message) {
    flush();
    timeline.skip(message);
    follow.add(message.kept);
    player.replaced(message.state, message.kept);
  },
  follows: () => follow.follows(),
  world: (status) => parts.forEach((part) => part.world?.(status)),
  took: (ms) => (frames.heard += ms),
  state: (word, title) => (on.connection = [word, title]),
});

// begin takes the list of the page's list-watch. A log that is known already is only continued.
/** @param {import("../log/feed.js").Snapshot} answer */
async function begin(answer) {
  waiting.length = 0;
  timeline.clear();
  const recorded = dataset.replay === "true";
  if (answer.log === on.shown.log) {
    player.replaced(answer.state, null);
  } else {
    on.source = serverSource(answer.log, answer.size);
    // before the list had come
    const early = on.shown.log === "" && follow.has() ? { key: follow.key, rv: follow.rv, by: follow.by } : null;
    on.shown = { log: answer.log, recording: answer.recording ?? "" };
    follow.clear();
    player.reset(new Tape(fold, on.source), answer.state, recorded);
    if (early) follow.set(early.key, early.rv, early.by);
  }
  for (const part of parts) part.begin?.(answer);
  switched(answer.switches);
  const arrives = player.oldest === 0 && player.cursor === player.head;
  const line = await get("/viz/timeline").catch(trouble);
  if (!line) return;
  player.oldest = line.oldest;
  timeline.index(line);
  await recent();
  if (arrives) visit.arrive(recorded);
}

// recent fetches what led to the picture the page begins with: it may be long until something happens again.
async function recent() {
  const [from, to] = [Math.max(player.oldest + 1, player.cursor - recently), player.cursor + 1];
  await player.tape.load(from, to).catch(() => {}); // gone already: then the table begins with what comes
  if (player.moved) return;
  table.jumped();
  sentenceBar.applied(player.tape.between(from, player.cursor + 1));
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
  const began = performance.now();
  const ms = Math.min(100, now - frames.at);
  const passed = ms + frames.postponed;
  // To read a sum and to draw it is too much for one frame. So this one does nothing: what is on screen is whole, and
  // of one cursor.
  const waits = frames.summing && frames.postponed === 0 && ms < sweep && frames.shownAt <= frames.at;
  Object.assign(frames, { postponed: waits ? ms : 0, at: now, summing: false });
  if (!waits) turn(now, passed);
  cost.note(ms, frames.heard + performance.now() - began);
  frames.heard = 0;
}

// turn lets ms pass on the stage, and draws what is then.
/** @param {number} now @param {number} ms */
function turn(now, ms) {
  flush();
  player.tick(player.runs() ? ms : 0);
  if (scene.stale || (frames.dirty && (!player.sweeping || now - frames.shownAt >= sweep))) show(now);
  motion.draw(player.clock, { pile: player.pile(), stream: player.beat.stream, coming });
  for (const part of parts) part.draw?.(now, ms);
}

// coming is what the records at hand say of the moments after the cursor, and the picture there.
/** @returns {[probe.Record[], fold.Resource | undefined]} */
const coming = () => [player.tape.between(player.cursor + 1, player.cursor + soon), pictured()];

/** @param {number} now */
function show(now) {
  frames.shownAt = now;
  frames.dirty = scene.stale = false;
  scene.show(player.state, on.resource);
  for (const part of parts) part.shown?.(pictured(), player.state);
}

// applied is told of records that were folded one after the other: they are drawn as they move. Of a sum it is told
// that a newer picture came for more records than anybody can look at, of which list matter one by one.
/** @param {probe.Record[]} list @param {boolean} [sum] */
function applied(list, sum = false) {
  const now = performance.now();
  frames.dirty = true;
  frames.summing ||= sum;
  if (list.some((r) => ["open", "close"].includes(infos.get(r.point).op))) scene.changed(player.state, on.resource);
  planner.closed(list);
  if (player.sweeping || sum) motion.records(list, player.clock, player.beat.stream, pictured());
  for (const part of parts) part.applied?.(list, now);
  const last = list.at(-1);
  if (player.mode === "frozen" && last) landed(last, now);
}

// landed is told where the viewer froze the stage, stepped, or scrubbed.
/** @param {probe.Record} r @param {number} now */
function landed(r, now) {
  for (const part of parts) part.landed?.(r, now);
}

// stand puts on the stage what the records that led to the cursor had in their actions, and nothing else.
function stand() {
  motion.clear();
  planner.stand(player.tape.between(Math.max(1, player.cursor - ledHere), player.cursor + 1));
}

// jumped is told that another picture is on stage.
function jumped() {
  const now = performance.now();
  motion.clear();
  for (const part of parts) part.jumped?.(now);
  show(now);
  table.draw(); // the picture is drawn already: no frame may show the two apart
  const last = player.tape.get(player.cursor);
  stand();
  if (player.mode !== "frozen") return;
  if (last) landed(last, now);
  else sentenceBar.begins(player.cursor);
}

// froze is told that the stage stands: from now on the sentence is about the record at the cursor.
function froze() {
  const r = player.tape.get(player.cursor);
  if (r) landed(r, performance.now());
}

/** @param {unknown} problem */
function trouble(problem) {
  const { message, gone } = refusal(problem);
  notice(message, true);
  if (gone && on.source) get("/viz/timeline").then((line) => (player.oldest = line.oldest)).catch(() => {});
}

// leave lets go of the running program: from now on a recording is shown, by this name.
/** @param {string} recording */
function leave(recording) {
  feed.close();
  waiting.length = 0;
  Object.assign(on, { source: null, shown: { log: "", recording }, connection: ["live", ""] });
}

// Another resource on stage: nothing of the one before stays.
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

// For tests, and for the console.
Object.assign(window, {
  listwatch: {
    get state() { return player.state; },
    cost: cost.read, motion, player, timeline, follow, clockText, feed, picture, keys,
    openRecording: (/** @type {File} */ file) => visit.openRecording(file),
    stage: {
      fold, infos, scene, planner, motion, player, follow, here, called, says, setResource, restyle, zoom, banner, hold,
      inspector, scenarios, wire,
      get source() { return on.source; },
      get shown() { return on.shown; },
    },
  },
});

// No viewer sees a hidden page: it has no stream.
when(document, "visibilitychange", () => (document.hidden ? feed.end() : feed.begin()));
when(window, "pagehide", () => feed.end());
setInterval(() => feed.check(), 1000);
if (!dataset.take && !document.hidden) feed.begin();
else if (dataset.take && (program || !scenarios.openAsked())) visit.openTake(dataset.take);
requestAnimationFrame(frame);
