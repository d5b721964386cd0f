// The scene draws the folded state, at most once in a frame. motion.js draws the tokens that move in between.

import { $, mark, part, parts, put, say, when } from "../dom/dom.js";
import { counted, cut, squeeze } from "../lib/texts.js";
import { agentOf, shelfName, youngest } from "../log/fold.js";
import { layouts } from "./ground.js";
import { showListeners, showWatchers, showWorkqueues } from "./lanes.js";
import { showPipe, showShelf } from "./pipe.js";
import { hangsOn, nameOf, placesOf, reflects, serves } from "./places.js";
import { showRing } from "./ring.js";

/**
 * @typedef {import("./paint.js").Box} Box
 * @typedef {import("./places.js").Kind} Kind
 * @typedef {import("./storyview.js").StoryView} StoryView
 */

// shut has the stations that are not drawn, by level of detail; tokens still pass through their places.
/** @type {{ [level: string]: Set<string> }} */
const shut = { boxes: new Set("etcd3 server-reflector store incoming dispatch processor listener".split(" ")) };
shut.names = shut.boxes.union(new Set(["http", "reflector", "fifo", "workqueue"]));
const none = { lanes: new Map(), hidden: 0 };
/** @type {import("./places.js").Places} */
const nowhere = {
  informer: "informer", serving: new Set(), n: 0, crowd: [],
  watchers: none, listeners: none, handlers: none, workqueues: none,
};

export class Scene {
  /** @param {stage.Geometry} geometry */
  constructor(geometry) {
    const root = $(".scenery", SVGSVGElement);
    this.geometry = geometry;
    this.root = root;
    this.texts = new Map(parts(root, "[data-text]").map((el) => [el.dataset.text ?? "", el]));
    this.stations = new Map(parts(root, "[data-station]").map((el) => [el.id || el.dataset.station || "", el]));
    this.queues = new Map(parts(root, "[data-queue]").map((el) => [el.dataset.queue ?? "", el]));
    this.beside = parts(root, "text").filter((el) => !el.closest(".station"));
    this.inTurn = false; // set by -dispatch=sequential, which does not dispatch in two passes
    this.grouped = false; // set by -fifo=delta
    /** @type {{ [kind in Kind]: Map<string, Element> }} */
    this.lanes = { watchers: new Map(), listeners: new Map(), handlers: new Map(), workqueues: new Map() };
    /** @type {import("./ground.js").View} */
    this.view = { x: 0, y: 0, w: geometry.width, h: geometry.height }; // the visible part; zoom.js sets it
    /** @type {StoryView | null} */
    this.story = null;
    /** @type {string} */
    this.front = ""; // the subject that must be drawn: a watcher, an informer, or an informer's listener
    /** @type {(of: { key?: string, rv?: string }) => boolean} */
    this.followed = () => false; // whether a token, row or cell belongs to the followed object
    /** @type {import("./crowd.js").Crowd} */
    this.crowd = { n: 0, full: 0, closed: 0, waiting: 0, dots: [] }; // the crowd as drawn
    /** @type {Map<string, import("./crowd.js").Closed>} */
    this.closed = new Map(); // the recently evicted watchers
    this.leaving = () => "0"; // the version of a moving token that has left etcd, or "0"
    /** @type {fold.Ring} */
    this.ring = { start: 0, end: 0, capacity: 0, oldest: "0", newest: "0", cells: [] };
    this.stale = false;
    this.named = ""; // the change that the sentence names
    this.streaming = false; // whether changes come too fast to be drawn one by one
    /** @type {{ state: fold.State | null, resource: string }} */
    this.newest = { state: null, resource: "" };
    /** @type {import("./places.js").Places | null} */
    this.placed = null; // the lanes; null until places computes them
    /** @type {{ view: string, boxes: Map<string, Box[]> } | null} */
    this.read = null; // the boxes of texts in this view, by station; null until words measures them
    this.layouts = layouts(geometry);
    this.layout = this.layouts.wide;
    this.plain = false; // whether this is the first view
    this.detail = "boxes"; // the level of detail after the first view: "boxes" or "all"
    /** @type {Set<string>} */
    this.opened = new Set(); // stations that the viewer has opened
    this.asked = matchMedia("(max-width: 700px)");
    this.lay();
  }

  // ---- the layout

  get tall() { return this.layout.tall; }
  get width() { return this.layout.width; }
  get height() { return this.layout.height; }
  get place() { return this.layout.place; }
  get boxes() { return this.layout.boxes; }
  get boxOf() { return (/** @type {import("./ground.js").Place} */ name) => this.boxes[name]; }

  // lay chooses the layout and reports whether it has changed.
  lay() {
    this.plain = Boolean(document.documentElement.dataset.first);
    const small = document.body.matches(".figure, .embed"); // a page in a frame always shows the wide stage
    const was = this.layout.tall;
    this.layout = this.layouts[this.asked.matches && !small ? "tall" : "wide"];
    $("#stage").classList.toggle("tall", this.layout.tall);
    put(document.body, "data-detail", this.plain ? "names" : this.detail);
    this.stale = true;
    return was !== this.layout.tall;
  }

  // relaid calls changed when the window's width changes the layout. relay acts as if the width had changed.
  /** @param {() => void} changed */
  relaid(changed) { when(this.asked, "change", () => this.lay() && changed()); }
  relay() { this.asked.dispatchEvent(new Event("change")); }

  // ---- contents

  /** @param {StoryView | null} story */
  tell(story) {
    if (!story) this.story?.leave();
    this.story = story;
    this.stale = true;
  }

  // changed takes a new state without drawing it: thousands may come between two frames.
  /** @param {fold.State} state @param {string} resource */
  changed(state, resource) {
    this.newest = { state, resource };
    this.placed = null;
  }

  // unsettle makes places compute the lanes again.
  unsettle() {
    this.placed = null;
    this.stale = true;
  }

  get places() { return (this.placed ??= this.settle()); }
  get resource() { return this.newest.resource; }
  get res() { return this.newest.state?.resources[this.resource]; }
  get now() { return this.newest.state?.t ?? 0; } // log time, in ns
  get store() { return this.res?.shelves[shelfName("store", "cacher")]?.rows ?? []; }
  get informer() { return this.places.informer; } // the informer on stage
  get serving() { return this.places.serving; } // the informer's watchers

  settle() {
    const { res, newest: { state, resource } } = this;
    if (!state || !res) return nowhere;
    this.story?.at(res, state.seq, resource);
    const { geometry, story, front, closed } = this;
    return placesOf({ geometry, story, front, closed, informer: informerOf(this, res) }, res);
  }

  /** @param {string} name */
  station(name) { return /** @type {HTMLElement} */ (this.stations.get(name)); }

  /** @param {string} name @param {string | number} value @param {number} [room] units for a long value; 0: any */
  text(name, value, room) {
    const el = this.texts.get(name);
    if (!el) return;
    say(el, value);
    if (room !== undefined) put(el, "textLength", room && String(value).length > 10 ? room : null); // condensed
  }

  /** @param {fold.State} state @param {string} resource */
  show(state, resource) {
    const res = state.resources[resource];
    this.read = null;
    this.changed(state, resource);
    put(document.body, "data-seq", state.seq);
    put(document.body, "data-lost", state.lost);
    for (const [name, el] of this.stations) mark(el, "shut", this.shuts(name));
    if (!res) return;
    showServer(this, res, state);
    showRing(this, res, state.t);
    showShelf(this, "store", res.shelves[shelfName("store", "cacher")]);
    showClient(this, res);
    showWatchers(this, res);
    showListeners(this);
    showWorkqueues(this, res);
    this.story?.draw();
  }

  // shuts reports whether a station is not drawn. A story or figure shows all; a click or a presenter opens one.
  /** @param {string} name */
  shuts(name) {
    const { detail = "" } = document.body.dataset;
    const whole = this.story || document.body.classList.contains("figure") || this.opened.has(name);
    return !whole && Boolean(shut[detail]?.has(name)) && !this.station(name).classList.contains("bright");
  }

  // whole reports whether all parts of a station are drawn.
  /** @param {string} name */
  whole(name) { return this.detail === "all" || (shut.boxes.has(name) && !this.shuts(name)); }

  // words returns the boxes of visible texts. It measures a station's texts only if near accepts the station's box.
  /** @param {(box: Box) => boolean} near */
  words(near) {
    const view = Object.values(this.view).join();
    if (this.read?.view !== view) this.read = { view, boxes: new Map([["", boxesOf(this, this.beside)]]) };
    const { boxes } = this.read;
    for (const [name, el] of this.stations) {
      const { X, Y, W, H } = this.boxOf(/** @type {import("./ground.js").Place} */ (name));
      if (boxes.has(name) || !near([X - 40, Y - 40, X + W + 110, Y + H + 40])) continue;
      boxes.set(name, boxesOf(this, el.querySelectorAll("text")));
    }
    return [...boxes.values()].flat();
  }

  wells() { return boxesOf(this, this.root.querySelectorAll(".pipe .wall")); }
}

// boxesOf returns the boxes of the visible elements, in units of the stage.
/** @param {Scene} scene @param {Iterable<Element>} elements @returns {Box[]} */
function boxesOf({ root, view }, elements) {
  const ground = root.getBoundingClientRect();
  const scale = view.w / ground.width;
  return [...elements].filter((el) => el.checkVisibility({ visibilityProperty: true })).map((el) => {
    const { left, top, right, bottom } = el.getBoundingClientRect();
    const x = (/** @type {number} */ side) => (side - ground.left) * scale + view.x;
    const y = (/** @type {number} */ side) => (side - ground.top) * scale + view.y;
    return /** @type {Box} */ ([x(left), y(top), x(right), y(bottom)]);
  }).filter(([left, , right]) => right > left);
}

// ---- server half

// hasEnded reports whether a resource's Cacher has stopped and no new one is ready yet.
/** @param {fold.Resource} res */
const hasEnded = (res) => res.stations.incoming?.last.point === "CacherStopped";
/** @param {fold.Resource} res */
const ended = (res) => hasEnded(res) && !youngest(res, "watchchan"); // no new Cacher has opened its watch of etcd

/** @param {Scene} scene @param {fold.Resource} res @param {fold.State} whole */
function showServer(scene, res, whole) {
  const { n: watchers } = scene.places;
  showRequests(scene, res, whole);
  showEtcd(scene, res, whole);
  showLife(scene, res);
  showDispatch(scene, res, watchers);
  const closed = scene.story?.now.closed ?? 0;
  scene.text("server-reflector.rv", res.subjects.cacher?.rv ?? "–");
  scene.text("watcher.closed", closed > watchers ? `${counted(closed, "stream")} ended` : "");
}

/** @param {Scene} scene @param {fold.Resource} res @param {fold.State} whole */
function showRequests(scene, res, { resources: { "": general, ...rest } }) {
  const { story } = scene;
  const http = general?.stations.http;
  const { last = { seq: 0, point: "", texts: {} }, vars = {} } = http ?? {};
  /** @type {fold.Last["texts"]} */
  const { method = "", path, query, agent: said } = last.texts;
  const answered = last.point === "RequestAnswered";
  const old = Boolean(answered && story && last.seq <= story.from); // an answer from before this beat
  const request = !old && (answered || last.point === "RequestReceived");
  // A write's change may leave etcd before the client gets its answer.
  const written = http && etcdsSince({ ...rest, "": general }, last.seq).some((each) =>
    each.last.point === "TxnCommitted");
  const watches = new URLSearchParams(query).has("watch");
  const under = watches ? "open" : written && method !== "GET" ? "in etcd" : "waits";
  scene.text("http.says", (!old && answered && story?.now.waited) || "");
  scene.text("http.method", request ? method : "–");
  scene.text("http.status", old ? "" : answered ? String(vars.status ?? "") : request ? under : "");
  mark(scene.station("http"), "refusal", answered && (vars.status ?? 0) >= 400);
  const about = method !== "GET" && path?.split("/").includes(scene.resource);
  const agent = agentOf(said);
  showVisitor(scene, !about ? "" : agent === "Mozilla" ? "browser" : agent);
  scene.text("http.asks", (request && story?.now.asks) || "", 74);
  scene.text("http.gets", (request && story?.now.gets) || "");
}

// showVisitor shows the last client without a lane that wrote to the resource.
/** @param {Scene} scene @param {string} agent */
function showVisitor({ root, story, places: { watchers } }, agent) {
  const el = part(root, ".visitor");
  const lane = [...watchers.lanes.values()].some(({ subject, index }) =>
    nameOf(subject) === agent || (index === 0 && subject.counts.WatcherForced)); // the first client was evicted
  const name = part(el, ".name");
  if (agent && !lane) {
    const yours = /^(kubectl|browser)$/.test(agent);
    say(name, cut(yours ? `${agent} · you` : agent, 18));
    mark(el, "mine", yours);
  }
  put(el, "visibility", story || !name.textContent ? "hidden" : "visible");
}

/** @param {Scene} scene @param {fold.Resource} res @param {fold.State} whole */
function showEtcd(scene, res, { resources }) {
  scene.text("etcd.rev", revisionOf(res, resources, scene.leaving()));
  const etcd = resources[""]?.stations.etcd;
  const refuses = etcd?.vars.refuses === 1;
  const percent = etcd?.vars.percent === undefined ? "" : `${etcd.vars.percent} % full`;
  scene.text("etcd.full", refuses ? "no writes" : percent);
  scene.text("etcd.said", refuses ? "" : (scene.story?.now.etcd ?? ""));
  mark(scene.station("etcd"), "refuses", refuses);
  const chan = youngest(res, "watchchan");
  const cacher = res.subjects.cacher ?? res.subjects[""];
  for (const [name, owner] of /** @type {const} */ ([
    ["etcd3-incoming", chan], ["etcd3-result", chan], ["incoming", cacher],
  ])) {
    showPipe(scene, scene.queues.get(name), owner?.queues[name], 100);
  }
  scene.text("etcd3.error", scene.story?.now.etcd3 ?? "");
}

// showLife shows whether the resource's cache is ready, and whether the cache's server has ended or been replaced.
/** @param {Scene} scene @param {fold.Resource} res */
function showLife(scene, res) {
  const { CacherReady: up = 0, CacherStopped: ends = 0 } = res.points;
  const ready = up > 0 && !hasEnded(res) && res.stations.incoming?.last.point !== "CacherNotReady";
  scene.text("incoming.ready", ended(res) ? "ended" : ready ? "ready" : "not ready");
  const lives = ended(res) ? "the server has ended" : "another server has started";
  const whose = scene.story?.story.several || scene.resource !== "pods" ? `the ring of ${scene.resource}` : "";
  const state = [whose, ends > 0 ? lives : ""].filter(Boolean).join("; ");
  scene.text("server.state", state);
  put(part(scene.root, ".about.ours"), "visibility", state ? "hidden" : "visible");
}

/** @param {Scene} scene @param {fold.Resource} res @param {number} watchers */
function showDispatch(scene, res, watchers) {
  const { vars = {}, last } = res.stations.dispatch ?? {};
  const n = vars.watchers;
  const blocked = last?.point === "DispatchBlocked";
  mark(scene.station("dispatch"), "blocked", blocked);
  const full = `${vars.blocked} full`;
  const youngestSeq = youngest(res, "watcher")?.opened ?? 0;
  const same = !(last && youngestSeq > last.seq); // no watcher has been added since dispatch picked its watchers
  const to = !scene.story ? `to ${n}` : (n ?? 0) <= watchers && same ? `to ${n} of ${watchers}` : "";
  const [sent, waits] = scene.inTurn ? [`in turn: to ${n}`, `waits, ${full}`] : [to, `pass 2: ${full}`];
  scene.text("dispatch.to", n === undefined ? "" : blocked ? waits : n === 0 ? "to no watcher" : sent);
  // While dispatch waits, no record has the rest of the budget, so it is computed from the time.
  const budget = blocked ? Math.max(0, (vars.budget ?? 0) - (scene.now - last.t) / 1e6) : 100;
  scene.text("dispatch.budget", blocked ? `${Math.round(budget)} ms left` : "up to 100 ms");
  put(part(scene.root, "#battery"), "width", Math.round(1.28 * Math.min(100, budget)));
}

// ---- client half

// informerOf returns the informer to draw. It prefers the informer of scene.front, then those of a story's clients.
/** @param {Scene} scene @param {fold.Resource} res @returns {string} */
function informerOf(scene, res) {
  const members = scene.story?.members ?? [];
  const owner = (/** @type {string} */ id) => members.find(({ subject }) => subject === id)?.client
    ?? (res.subjects[id]?.queues.fifo ? id : res.subjects[id]?.texts.ListenerAdded?.informer);
  const front = [owner(scene.front), ...members.map(({ client }) => client)].find((id) => id && res.subjects[id]);
  if (front) return front;
  if (res.subjects.informer) return "informer";
  const clients = Object.keys(res.subjects).filter((id) => id !== "cacher" && reflects(res.subjects[id]));
  return clients.sort()[0] ?? "informer";
}

/** @param {Scene} scene @param {fold.Resource} res */
function showClient(scene, res) {
  const reflector = res.subjects[scene.informer];
  const opens = Object.values(res.subjects).some((s) => s.kind === "watcher" && serves(scene, s)
    && reflector && s.opened > reflector.last.seq); // the watch is open, but its response has not arrived
  scene.text("reflector.state", opens ? "starting" : reflector ? stateOf(reflector) : "–");
  scene.text("reflector.rv", reflector && reflector.rv !== "0" ? reflector.rv : "–");
  const whose = scene.informer.replace(/^informer-?/, "") || (scene.story ? "the informer" : "");
  scene.text("reflector.of", whose && `of ${squeeze(whose, 14)}`);
  showFIFO(scene, reflector);
  showShelf(scene, "indexer", res.shelves[shelfName("indexer", scene.informer)]);
  // a story may run a reflector and its queue without an informer
  const alone = scene.story && reflector && !Object.values(res.subjects)
    .some((s) => s.kind === "listener" && hangsOn(scene, s));
  if (alone) scene.text("indexer.n", "none");
}

/** @param {Scene} scene @param {fold.Subject | undefined} reflector */
function showFIFO(scene, reflector) {
  const queue = /^informer-(real|delta)$/.exec(scene.informer)?.[1]; // a story that compares the two queues
  const kind = queue === "real" ? "RealFIFO" : queue === "delta" ? "DeltaFIFO" : "FIFO";
  say(part(scene.station("fifo"), ".title"), kind);
  const grouped = queue ? queue === "delta" : scene.grouped;
  scene.text("fifo.order", grouped ? "deltas, by object" : "deltas, in order");
  const fifo = reflector?.queues.fifo;
  showPipe(scene, scene.queues.get("fifo"), fifo, 0);
  const out = (queue && scene.story?.now.popped.get(scene.informer)) || [];
  scene.text("fifo.high", fifo?.high && out.length === 0 ? `most: ${fifo.high}` : "");
  scene.text("fifo.left", out.length > 0 ? `${kind} gave` : "");
  const last = out.slice(-8).join(" ");
  scene.text("fifo.out", last, last.length > 18 ? 112 : 0);
}

/** @type {{ [point: string]: string }} */
const states = { ReflectorBackoff: "backing off", ReflectorWatchEnded: "watch ended", ReflectorListed: "listed" };
/** @param {fold.Subject} s */
const stateOf = (s) => states[s.last.point] ?? (s.counts.ReflectorWatching ? "watching" : "starting");

// etcdsSince returns the etcd stations, one for each resource, whose last record comes after seq.
/** @param {{ [name: string]: fold.Resource | undefined }} all @param {number} seq */
const etcdsSince = (all, seq) => Object.values(all).flatMap((res) => {
  const etcd = res?.stations.etcd;
  return etcd && etcd.last.seq > seq ? [etcd] : [];
});

// revisionOf returns the newest revision of etcd in the log. A watch may deliver a change before its writer reports it,
// so changes that have reached the watch, or are on their way there, count. So do changes of other resources.
/** @param {fold.Resource} res @param {{ [name: string]: fold.Resource }} all @param {string} leaving */
function revisionOf(res, all, leaving) {
  const { etcd, etcd3 } = res.stations;
  const later = etcdsSince(all, etcd?.last.seq ?? 0);
  const known = [etcd, etcd3, ...later].map((each) => each?.rv ?? "0").concat(leaving).map(BigInt);
  const newest = known.reduce((a, b) => (a > b ? a : b));
  return newest > 0n ? String(newest) : "–";
}
