// @ts-nocheck
// The live stage. One log, many views: the feed brings records, the player says which moment is on stage, the fold
// makes its picture, the scene draws that, motion draws the records that led there, the table and the sentence say
// them. One clock, requestAnimationFrame, moves all.
//
// A part of the page is what one of the functions newHold, newZoom, … returns. This module makes all parts and gives
// each the stage. A part finds its own elements in the page, and defines those of these hooks that it needs. Times
// called now are in ms, as requestAnimationFrame has them.
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
//	keys                rows of [keys, words, act] (keys.js)
//	guide()             what keys do while this part guides the viewer, as {key: act} (keys.js); nothing: it does not

import { newFigure } from "../book/figure.js";
import { newConsole } from "../console/console.js";
import { newInspector } from "../inspector/inspector.js";
import { newLens } from "../lens/lens.js";
import { get, program } from "../lib/api.js";
import { limits } from "../lib/limits.js";
import { $, put, when } from "../dom/dom.js";
import { newPanel } from "../dom/panel.js";
import { clockText } from "../lib/times.js";
import { Feed } from "../log/feed.js";
import { isAnomaly, newFold, newState, sentence } from "../log/fold.js";
import { Tape, serverSource } from "../log/tape.js";
import { newSpacetime } from "../spacetime/spacetime.js";
import { Motion } from "../stage/motion.js";
import { Planner } from "../stage/plan.js";
import { readPicture } from "../stage/picture.js";
import { Scene } from "../stage/scene.js";
import { Telling } from "../stage/telling.js";
import { Waits } from "../stage/waits.js";
import { Zoom } from "../stage/zoom.js";
import { newKnobs } from "../stories/knobs.js";
import { newPresenter } from "../stories/presenter.js";
import { newScenarios } from "../stories/scenarios.js";
import { newFollow } from "../timeline/follow.js";
import { newHold } from "../timeline/hold.js";
import { Player, sweep } from "../timeline/player.js";
import { newTable } from "../timeline/table.js";
import { newTimeline } from "../timeline/timeline.js";
import { newTour } from "../tour/tour.js";
import { newBanner } from "./banner.js";
import { newControls } from "./controls.js";
import { newCost } from "./cost.js";
import { newFirst } from "./first.js";
import { newHands } from "./hands.js";
import { newKeys } from "./keys.js";
import { newLooks } from "./looks.js";
import { Status } from "./status.js";
import { newVisit } from "./visit.js";

const soon = 600; // records in which what stands is looked for
const recently = 40; // records that led to the first picture
const ledHere = 200; // records that are looked at for what stands where then

const fold = newFold(JSON.parse(document.body.dataset.table));
const { infos } = fold;
const scene = new Scene(JSON.parse(document.body.dataset.geometry));

const cost = newCost();
let dirty = false;
let waiting = []; // records that came since the last frame
let frameAt = 0;
let shownAt = 0;
let summing = false; // a sum was read since the last frame
let postponed = 0; // ms of the last frame, if it did nothing
let heard = 0; // ms that the feed's messages took since the last frame

let source = null; // the server's log; null: a recording that was dropped here
let logShown = { log: "", recording: "" }; // what is on stage, as links name it
let resource = document.body.dataset.resource;
let connection = ["connecting", ""];
let touring = false; // this page gives its tour
const parts = [];
const all = (hook, ...args) => parts.forEach((part) => part[hook]?.(...args));
const here = (r) => (r.resource ?? "") === resource || (r.resource ?? "") === ""; // is r about the resource on stage?
// called is what the subject of a record is called on stage, and says the record's sentence.
const called = (r) => scene.told?.members.find(({ subject }) => r.subject && subject === r.subject)?.name
  ?? player.tape.called(r);
const says = (r) => sentence(infos.get(r.point), r, called(r));
const isFlag = (r) => isAnomaly(infos.get(r.point), r); // must r not be overlooked?

const follow = newFollow(infos, {
  trouble, seek: (seq) => player.seek(seq), cursor: () => player.cursor,
  changed() {
    scene.stale = true;
    all("followed");
  },
  records: async (query, matches) => {
    if (source) return (await source.of(query)).records;
    return player.tape.between(1, player.head + 1).filter((r) => matches(r) && (r.resource ?? "") === resource);
  },
});
scene.followed = follow.matches;
const planner = new Planner(scene, { infos, here, matches: follow.matches, writes: limits.writes });
// etcd's watch may tell of a change before its writer does: what has left etcd has its number
scene.leaving = () => planner.moves.find(({ station }) => station !== "etcd" && station !== "http")?.rv ?? "0";
const motion = new Motion($("#tokens", HTMLCanvasElement), scene, planner);
const pictured = () => player.state.resources[resource]; // of the resource on stage
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
  resource: () => resource,
  applied, jumped, grounded: stand, froze, trouble, skipped: (ns) => all("skipped", ns),
}, new Tape(fold, null), newState());

// stage is what the parts share: what the page itself offers, and every part by its name.
const stage = {
  fold, infos, scene, player, follow, planner, motion, isFlag, here, called, says, setResource, restyle, leave, attend,
  get source() { return source; },
  get shown() { return logShown; },
  get resource() { return resource; },
  get connection() { return connection; },
  get drawn() { return !dirty; }, // is what is on screen the picture of the cursor?
  touch: () => (scene.stale = true), // the scene has to be drawn again
  tell: (words) => stage.controls.tell(words), // in passing
  news: (words) => source && stage.banner.notice(words),
  switched: (now) => all("switches", now),
  escape: () => parts.findLast((part) => part.escape?.()),
  reopen: () => feed.reopen(), // after leave
};

const newPromises = () => newPanel(stage.news, "promises", ["g", "what is guaranteed: the ten promises"], 2000);

// Every part by its name, in the order in which they are made and called. A part may use in its constructor only what
// is above it; later, all.
const drawn = () => !dirty;
const made = {
  zoom: () => new Zoom({ scene, motion }), follow: () => follow, timeline: newTimeline, telling: () => new Telling({ ...stage, drawn }),
  table: () => newTable({ ...stage, drawn, told: () => stage.telling.seq }),
  banner: () => newBanner({ connection: () => connection[0], says }),
  controls: newControls, status: () => new Status({
    ...stage, connection: () => connection, program: () => source !== null, held: () => stage.hold.held,
  }),
  visit: newVisit, looks: () => newLooks({ ...stage, resource: () => resource }), hands: newHands,
  figure: () => newFigure({ ...stage, zoom: stage.zoom }),
  hold: newHold, knobs: () => newKnobs({ ...stage, trouble: stage.banner.trouble }), scenarios: newScenarios,
  promises: newPromises, lens: () => newLens({ ...stage, resource: () => resource, trouble: stage.banner.trouble }),
  console: newConsole, presenter: () => newPresenter({ ...stage, zoom: stage.zoom }), spacetime: newSpacetime,
  inspector: newInspector, waits: () => new Waits(stage), tour: newTour, first: newFirst,
};
for (const [name, make] of Object.entries(made)) parts.push((stage[name] = make(stage)));
const { timeline } = stage;

const listed = [[["?"], "this list", () => keys.show()]];
const guide = () => parts.map((part) => part.guide?.()).findLast(Boolean);
const keys = newKeys([...parts.flatMap((part) => part.keys ?? []), ...listed], guide);
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
  follows: () => follow.query() + (touring ? "&tour" : ""),
  world: (status) => all("world", status),
  took: (ms) => (heard += ms),
  state(word, title) {
    connection = [word, title];
    all("connected");
  },
});

// begin takes the list of the page's list-watch. A log that is known already is only continued.
async function begin(answer) {
  waiting = [];
  timeline.clear();
  const recorded = document.body.dataset.replay === "true";
  if (answer.log === logShown.log) {
    player.replaced(answer.state, null);
  } else {
    source = serverSource(answer.log, answer.size);
    // before the list had come
    const early = logShown.log === "" && follow.has() ? [follow.key, follow.rv, follow.by] : null;
    logShown = { log: answer.log, recording: answer.recording ?? "" };
    follow.clear();
    player.reset(new Tape(fold, source), answer.state, recorded);
    if (early) follow.set(...early);
  }
  all("begin", answer);
  all("switches", answer.switches);
  const first = player.oldest === 0 && player.cursor === player.head;
  const line = await get("/viz/timeline").catch(trouble);
  if (!line) return;
  player.oldest = line.oldest;
  timeline.index(line);
  await recent();
  if (first) stage.visit.arrive(recorded);
}

// recent fetches what led to the picture the page begins with: it may be long until something happens again.
async function recent() {
  const [from, to] = [Math.max(player.oldest + 1, player.cursor - recently), player.cursor + 1];
  await player.tape.load(from, to).catch(() => {}); // gone already: then the table begins with what comes
  if (player.moved) return;
  stage.table.jumped();
  stage.telling.applied(player.tape.between(from, player.cursor + 1));
}

function flush() {
  if (waiting.length === 0) return;
  const list = waiting;
  waiting = [];
  all("arrived", list);
  player.arrived(list);
}

function frame(now) {
  requestAnimationFrame(frame);
  const began = performance.now();
  const ms = Math.min(100, now - frameAt);
  const passed = ms + postponed;
  // To read a sum and to draw it is too much for one frame. So this one does nothing: what is on screen is whole, and
  // of one cursor.
  postponed = summing && postponed === 0 && ms < sweep && shownAt <= frameAt ? ms : 0;
  frameAt = now;
  summing = false;
  if (postponed === 0) turn(now, passed);
  cost.note(ms, heard + performance.now() - began);
  heard = 0;
}

// turn lets ms pass on the stage, and draws what is then.
function turn(now, ms) {
  flush();
  player.tick(player.runs() ? ms : 0);
  if (scene.stale || (dirty && (!player.sweeping || now - shownAt >= sweep))) show(now);
  motion.draw(player.clock, { pile: player.pile(), stream: player.beat.stream, coming });
  all("draw", now, ms);
}

// coming is what the records at hand say of the moments after the cursor, and the picture there.
const coming = () => [player.tape.between(player.cursor + 1, player.cursor + soon), pictured()];

function show(now) {
  shownAt = now;
  dirty = scene.stale = false;
  scene.show(player.state, resource);
  all("shown", pictured(), player.state);
}

// applied is told of records that were folded one after the other: they are drawn as they move. Of a sum it is told
// that a newer picture came for more records than anybody can look at, of which list matter one by one.
function applied(list, sum = false) {
  const now = performance.now();
  dirty = true;
  summing ||= sum;
  if (list.some((r) => ["open", "close"].includes(infos.get(r.point).op))) scene.changed(player.state, resource);
  planner.closed(list);
  if (player.sweeping || sum) motion.records(list, player.clock, player.beat.stream, pictured());
  all("applied", list, now);
  if (player.mode === "frozen") all("landed", list.at(-1), now);
}

// stand puts on the stage what the records that led to the cursor had in their hands, and nothing else.
function stand() {
  motion.clear();
  planner.stand(player.tape.between(Math.max(1, player.cursor - ledHere), player.cursor + 1));
}

// jumped is told that another picture is on stage.
function jumped() {
  const now = performance.now();
  motion.clear();
  all("jumped", now);
  show(now);
  stage.table.draw(); // the picture is drawn already: no frame may show the two apart
  const last = player.tape.get(player.cursor);
  stand();
  if (player.mode !== "frozen") return;
  if (!last) return stage.telling.begins(player.cursor);
  all("landed", last, now);
}

// froze is told that the stage stands: from now on the sentence is about the record at the cursor.
function froze() {
  const r = player.tape.get(player.cursor);
  if (r) all("landed", r, performance.now());
}

function trouble(problem) {
  stage.banner.notice(problem.message, true);
  if (!problem.gone || !source) return;
  get("/viz/timeline").then((line) => (player.oldest = line.oldest)).catch(() => {});
}

// attend tells the program whether this page gives its tour.
function attend(on) {
  if (on === touring) return;
  touring = on;
  feed.rejoin();
}

// leave lets go of the running program: from now on a recording is shown, by this name.
function leave(recording) {
  feed.close();
  waiting = [];
  source = null;
  logShown = { log: "", recording };
  connection = ["live", ""];
}

// Another resource on stage: nothing of the one before stays.
function setResource(name) {
  resource = name;
  put(document.body, "data-resource", name);
  follow.clear();
  motion.clear();
  player.turned();
  dirty = true;
  all("resource", name);
}

function restyle() {
  motion.restyle();
  all("restyle");
}

// For tests, and for the console.
window.listwatch = {
  get state() { return player.state; },
  cost: cost.read, motion, player, timeline, follow, clockText, stage, feed,
  picture: (how) => readPicture({ ...stage, waiting: () => stage.hold.waiting }, how), openRecording: (file) => stage.visit.openRecording(file),
};

// No viewer sees a hidden page: it has no stream.
when(document, "visibilitychange", () => (document.hidden ? feed.end() : feed.begin()));
when(window, "pagehide", () => feed.end());
setInterval(() => feed.check(), 1000);
if (!document.body.dataset.take && !document.hidden) feed.begin();
else if (program || !stage.scenarios.openAsked()) stage.visit.openTake(document.body.dataset.take);
requestAnimationFrame(frame);
