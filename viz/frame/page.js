// The live stage. One log, many views: the feed brings records, the player says which moment is on stage, the fold makes
// its picture, the scene draws that, motion draws the records that led there, the table and the sentence say them. One
// clock, requestAnimationFrame, moves all.
//
// How a module joins: it exports { name, offers, needs, join } (join.js) and is named in `modules` below. What its join returns
// may also have any of these:
//
//	begin(answer)      the page's list was taken: answer.state, answer.log
//	switches(now)      what is on stage was made with these switches: { fifo: "real", … }
//	arrived(list)      records came from the feed, whatever moment is on stage
//	applied(list, now) records were folded one after the other; draw them as they move
//	summed(list, now)  so much happened that a picture came for it, and of the records these; if there is none, applied
//	jumped(now)        another picture is on stage
//	landed(r, now)     r is the record at the cursor: the viewer froze the stage, stepped, or scrubbed
//	shown(res, state)  the scene was drawn from state; res is the resource on stage, undefined if nothing is known of it
//	draw(now)          once a frame
//	resource(name)     another resource is on stage
//	world(status)      the running world was held or resumed, or its clock moved
//	restyle()          the colours are others
//	escape()           Escape was pressed: close what is open, and return true if something was
//	keys               rows of [keys, words, act] for keys.js
//	guided             rows of [names of keys, words]: what the guide does with them while it speaks
//
// A module finds its own elements in the page and makes none that it could let templ write.

import { join } from "./join.js";
import { modes } from "../stage/modes.js";
import { banner } from "./banner.js";
import { cast } from "../stage/cast.js";
import { blocked } from "../stage/blocked.js";
import { newControls } from "./controls.js";
import { newCost } from "./cost.js";
import { crew } from "../stage/crew.js";
import { detail } from "../stage/detail.js";
import { put, say } from "./dom.js";
import { newFeed } from "../log/feed.js";
import { figure } from "../book/figure.js";
import { find } from "./find.js";
import { hash, isAnomaly, newFold, newState, sentence } from "../log/fold.js";
import { newFollow } from "../timeline/follow.js";
import { hands } from "./hands.js";
import { history } from "../stage/history.js";
import { inspector } from "../inspector/inspector.js";
import { hold } from "../timeline/hold.js";
import { newKeys } from "./keys.js";
import { journey } from "../timeline/journey.js";
import { knobs } from "../stories/knobs.js";
import { lens } from "../lens/lens.js";
import { locks } from "../stage/locks.js";
import { looks } from "./looks.js";
import { newMotion } from "../stage/motion.js";
import { picture } from "../stage/picture.js";
import { pace } from "../timeline/pace.js";
import { newPlayer, sweep } from "../timeline/player.js";
import { presenter } from "../stories/presenter.js";
import { labs } from "../stories/labs.js";
import { promises } from "../stories/promises.js";
import { scenarios } from "../stories/scenarios.js";
import { shelf } from "../stories/shelf.js";
import { newScene } from "../stage/scene.js";
import { spacetime } from "../spacetime/spacetime.js";
import { spoken } from "./spoken.js";
import { status } from "./status.js";
import { newTable } from "../timeline/table.js";
import { newTape, serverSource } from "../log/tape.js";
import { newTelling } from "../stage/telling.js";
import { clockText } from "../timeline/clock.js";
import { newTimeline } from "../timeline/timeline.js";
import { targets } from "../stage/targets.js";
import { tour } from "../tour/tour.js";
import { visit } from "./visit.js";
import { zoom } from "../stage/zoom.js";

const modules = [
  modes,
  banner,
  status,
  pace,
  visit,
  looks,
  hands,
  figure,
  hold,
  knobs,
  scenarios,
  promises,
  labs,
  lens,
  find,
  presenter,
  spoken,
  cast,
  history,
  spacetime, // after history: the tape is one of its views
  zoom, // before the inspector: a cell is not looked into, but at
  inspector,
  blocked,
  crew,
  locks, // after blocked: what has lasted, it says
  journey,
  detail,
  picture,
  targets,
  tour,
];

const settle = 900; // ms that trails go on fading after a step
const tableRows = 40; // shown when the viewer goes to another moment

// pointsOf asks for the table of points until the program answers: no record can be read without it.
async function pointsOf() {
  for (;;) {
    try {
      return await shelf.points();
    } catch {
      // The program does not answer yet, or no more.
    }
    put(document.querySelector("#mode"), "data-state", "reconnecting");
    say(document.querySelector("#mode-text"), "reconnecting");
    await new Promise((done) => setTimeout(done, 1000));
  }
}

const points = await pointsOf();
const fold = newFold(points);
const scene = newScene(JSON.parse(document.body.dataset.geometry));

const cost = newCost();
let dirty = false;
let waiting = []; // records that came since the last frame
let moving = 0; // until then the stage's clock runs although it is frozen
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
let parts = []; // what the modules returned
let stage; // what is offered, by the modules and by core
const all = (name, ...args) => parts.forEach((part) => part[name]?.(...args));

const player = newPlayer(fold, {
  motion: {
    travels: (r) => motion.travels(r, resource),
    prepare: (r, now) => motion.prepare(r, resource, now),
    launch: (...job) => motion.launch(...job),
    landed: (...now) => motion.landed(...now),
    abort: (now) => motion.abort(now),
  },
  applied, summed, jumped, froze, trouble, skipped: (ns) => all("skipped", ns),
});
const follow = newFollow(fold.infos, {
  changed: followChanged, trouble, seek: (seq) => player.seek(seq), local: () => !source,
  records: async (query, matches) => {
    if (source) return (await source.of(query)).records;
    return player.tape.between(1, player.head + 1).filter((r) => matches(r) && (r.resource ?? "") === resource);
  },
});
scene.followed = follow.token;
const motion = newMotion(document.querySelector("#tokens"), scene, fold.infos, follow);
const table = newTable(fold.infos, follow);
const telling = newTelling(fold.infos, scene);
const controls = newControls(scene, { wrote: follow.wrote });
const isFlag = (r) => isAnomaly(fold.infos.get(r.point), r);
const timeline = newTimeline(player, {
  seek: (seq) => player.seek(seq),
  loop: (range) => stage.setLoop(range),
  flag: (r) => isFlag(r) && { seq: r.seq, t: r.t, point: r.point, says: sentence(fold.infos.get(r.point), r) },
});

// core is what the page itself offers its modules.
const core = {
  fold, infos: fold.infos, scene, player, follow, motion, timeline,
  get source() { return source; },
  get shown() { return logShown; },
  get resource() { return resource; },
  get connection() { return connection; },
  get state() { return player.state; },
  isFlag, // must r not be overlooked?
  here: (r) => (r.resource ?? "") === resource || (r.resource ?? "") === "", // is r about the resource on stage?
  touch: () => (scene.stale = true), // the scene has to be drawn again
  tell: controls.tell, // a passing word
  reset: (tape, state, recorded) => player.reset(tape, state, recorded),
  switched: (now) => all("switches", now),
  escape: () => parts.findLast((part) => part.escape?.()),
  setResource, restyle, leave, attend,
  reopen: () => feed.reopen(), // after leave
};
({ stage, parts } = join(core, modules));
const keys = newKeys([...parts.flatMap((part) => part.keys ?? []), [["?"], "this list", () => keys.show()]], parts.flatMap((part) => part.guided ?? []));
document.querySelector("#keys").addEventListener("click", () => keys.show());
core.reset(newTape(fold, null), newState(), false);

const feed = newFeed({
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
function begin(answer) {
  waiting = [];
  timeline.expect(answer.state);
  const recorded = document.body.dataset.replay === "true";
  if (answer.log === logShown.log) {
    player.replaced(answer.state, null);
  } else {
    source = serverSource(answer.log);
    const early = logShown.log === "" && follow.has() ? [follow.key, follow.rv, follow.by] : null; // followed before the list had come
    logShown = { log: answer.log, recording: answer.recording ?? "" };
    follow.clear();
    core.reset(newTape(fold, source), answer.state, recorded);
    if (early) follow.set(...early);
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
  telling.consider(list, resource);
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
  const began = performance.now();
  const ms = Math.min(100, now - frameAt);
  const passed = ms + postponed;
  // To read a sum and to draw it is too much for one frame. So this one does nothing: what is on screen is whole, and of one cursor.
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
  player.tick(player.runs() || now < moving ? ms : 0);
  if (scene.stale || (dirty && (!player.sweeping || now - shownAt >= sweep))) show(now);
  motion.draw(player.clock);
  if (!dirty) table.draw(now, player);
  follow.draw(now, player.cursor);
  timeline.draw(now);
  if (player.mode !== "frozen" && !dirty) telling.draw(now);
  all("draw", now);
}

function show(now) {
  shownAt = now;
  dirty = scene.stale = false;
  scene.show(player.state, resource);
  telling.at(player.cursor);
  all("shown", player.state.resources[resource], player.state);
}

// applied is told of records that were folded one after the other: they are drawn as they move.
function applied(list) {
  const now = performance.now();
  dirty = true;
  stage.count(now);
  if (list.some((r) => ["open", "close"].includes(fold.infos.get(r.point).op))) show(now); // lanes first: tokens travel to where they are
  if (player.sweeping) motion.records(list, resource, player.clock, stage.rates(now).events);
  else motion.counts(list, resource, player.clock, stage.rates(now).events);
  table.add(list);
  telling.consider(list, resource);
  all("applied", list, now);
  if (player.mode === "frozen") landed(list.at(-1), now);
}

// summed is told that a newer picture came for more records than anybody can look at, of which list matter one by one.
function summed(before, list) {
  const now = performance.now();
  dirty = summing = true;
  stage.count(now);
  motion.sums(before, player.state, resource, player.clock);
  motion.records(list, resource, player.clock, stage.rates(now).events, true);
  table.add(list);
  telling.consider(list, resource);
  for (const part of parts) (part.summed ?? part.applied)?.(list, now);
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
  motion.records([last], resource, player.clock, 0);
  landed(last, now);
}

// froze is told that the stage stands: from now on the sentence is about the record at the cursor.
function froze() {
  moving = motion.travelling(player.clock).length > 0 ? 0 : performance.now() + settle; // what is on its way stands, too
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
  if (!problem.gone || !source) return;
  fetch("/viz/timeline").then((response) => response.json()).then((line) => (player.oldest = line.oldest)).catch(() => {});
}

function followChanged() {
  scene.stale = true;
  table.touch();
  all("followed");
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
  dirty = true;
  all("resource", name);
}

function restyle() {
  motion.restyle();
  timeline.restyle();
  all("restyle");
}

// For tests, and for the console.
window.listwatch = {
  get state() { return player.state; },
  hash: () => hash(player.state), picture: (how) => stage.picture(how), cost: cost.read, motion, player, timeline, follow, openRecording: (file) => stage.openRecording(file), clockText, stage, feed,
};

if (!document.body.dataset.take) feed.begin();
else if (shelf.program || !stage.openAsked()) stage.openTake(document.body.dataset.take);
requestAnimationFrame(frame);
