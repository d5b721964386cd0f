// The scene: the folded state as the scenery. It is drawn again from the state whenever the state has changed, and
// knows nothing of records; what moves between two states is motion.js. A style sheet moves the stations to where the
// layout has them (ground.js).

import { $, mark, part, parts, put, say, when, widen } from "../dom/dom.js";
import { squeeze } from "../lib/texts.js";
import { shelfName, youngest } from "../log/fold.js";
import { layouts } from "./ground.js";
import { showListeners, showWatchers, showWorkqueues } from "./lanes.js";
import { showPipe, showShelf } from "./pipe.js";
import { hangsOn, placesOf, reflects, serves } from "./places.js";
import { showRing } from "./ring.js";

/**
 * @typedef {import("./paint.js").Box} Box
 * @typedef {import("./places.js").Kind} Kind
 * @typedef {import("./storyview.js").StoryView} StoryView
 */

const narrow = "(max-width: 700px)";
const none = { lanes: new Map(), hidden: 0 };
/** @type {import("./places.js").Places} */
const nowhere = {
  informer: "informer", serving: new Set(), watchers: none, listeners: none, handlers: none, workqueues: none,
};

export class Scene {
  /** @param {stage.Geometry} geometry */
  constructor(geometry) {
    const root = $(".scenery", SVGSVGElement);
    this.geometry = geometry;
    this.root = root;
    this.texts = new Map(parts(root, "[data-text]").map((el) => [el.dataset.text ?? "", el]));
    this.stations = new Map(parts(root, "[data-station]").map((el) => [el.dataset.station ?? "", el]));
    this.queues = new Map(["etcd3-incoming", "etcd3-result", "incoming", "fifo"].map((name) => (
      [name, part(root, `[data-queue="${name}"]`)])));
    this.beside = parts(root, "text").filter((el) => !el.closest(".station"));
    this.inTurn = false; // -dispatch=sequential: there are no passes
    this.grouped = false; // -fifo=delta
    /** @type {{ [kind in Kind]: Map<string, Element> }} */
    this.lanes = { watchers: new Map(), listeners: new Map(), handlers: new Map(), workqueues: new Map() };
    /** @type {import("./ground.js").View} */
    this.view = { x: 0, y: 0, w: geometry.width, h: geometry.height }; // what of the stage is seen; zoom.js
    /** @type {StoryView | null} */
    this.story = null;
    /** @type {string} */
    this.front = ""; // the subject that has to be seen: a watcher, an informer, or a listener of it
    /** @type {(of: { key?: string, rv?: string }) => boolean} */
    this.followed = () => false; // of a token, a row, a cell: is it what is followed?
    this.leaving = () => "0"; // the version that is on its way from etcd on
    /** @type {fold.Ring} */
    this.ring = { start: 0, end: 0, capacity: 0, oldest: "0", newest: "0", cells: [] };
    this.bins = 0; // of the ring's drawing
    /** @type {fold.Row[]} */
    this.store = [];
    this.stale = false;
    this.named = ""; // the change that the sentence names
    this.now = 0; // of the log
    /** @type {{ state: fold.State | null, resource: string }} */
    this.newest = { state: null, resource: "" };
    /** @type {import("./places.js").Places | null} */
    this.placed = null; // the lanes; null: they are placed when they are asked for
    /** @type {{ view: string, boxes: Map<string, Box[]> } | null} */
    this.read = null; // what words has returned, by station
    this.layouts = layouts(geometry);
    this.layout = this.layouts.wide;
    this.plain = false; // the first view
    this.large = 1; // times the size of a token
    this.asked = matchMedia(narrow);
    this.lay();
  }

  // ---- the layout

  get tall() { return this.layout.tall; }
  get width() { return this.layout.width; }
  get height() { return this.layout.height; }
  get edges() { return this.layout.edges; }
  get place() { return this.layout.place; }
  get boxOf() { return this.layout.boxOf; }

  // lay chooses the layout, and reports whether it is another one.
  lay() {
    this.plain = Boolean(document.documentElement.dataset.first);
    const small = this.plain || document.body.classList.contains("figure"); // drawn whole
    const was = this.layout.tall;
    const { tall, first, wide } = this.layouts;
    this.layout = this.asked.matches && !small ? tall : this.plain ? first : wide;
    this.large = this.plain && this.asked.matches ? 2.4 : 1;
    $("#stage").classList.toggle("tall", this.layout.tall);
    return was !== this.layout.tall;
  }

  // relaid tells when the layout has changed; relay is told that what decides about it has.
  /** @param {() => void} changed */
  relaid(changed) { when(this.asked, "change", () => this.lay() && changed()); }
  relay() { this.asked.dispatchEvent(new Event("change")); }

  // ---- what is there

  /** @param {StoryView | null} story */
  tell(story) {
    if (!story) this.story?.leave();
    this.story = story;
    this.stale = true;
  }

  // changed is told that other subjects are there: thousands may come between two frames.
  /** @param {fold.State} state @param {string} resource */
  changed(state, resource) {
    this.newest = { state, resource };
    this.placed = null;
  }

  get places() { return (this.placed ??= this.settle()); }
  get informer() { return this.places.informer; } // that is drawn
  get serving() { return this.places.serving; } // watchers whose client it is

  // settle finds out where the lanes are in the newest picture.
  settle() {
    const { state, resource } = this.newest;
    const res = state?.resources[resource];
    if (!state || !res) return nowhere;
    this.now = state.t;
    this.story?.at(res, state.seq, resource);
    return placesOf({ geometry: this.geometry, story: this.story, informer: informerOf(this, res) }, res);
  }

  /** @param {string} name */
  station(name) { return /** @type {HTMLElement} */ (this.stations.get(name)); }

  /** @param {string} name @param {string | number} value @param {number} [room] units for a long one */
  text(name, value, room = 0) {
    const el = this.texts.get(name);
    if (!el) return;
    say(el, value);
    if (room > 0) widen(el, String(value).length > 10 ? room : 0); // closer where it is wider than its room
  }

  /** @param {fold.State} state @param {string} resource */
  show(state, resource) {
    this.read = null;
    this.changed(state, resource);
    this.placed = this.settle();
    show(this, state, resource);
  }

  // words returns where texts can be read. Only those are measured whose station is near.
  /** @param {(box: Box) => boolean} near */
  words(near) {
    const view = Object.values(this.view).join();
    if (this.read?.view !== view) this.read = { view, boxes: new Map([["", boxesOf(this, this.beside)]]) };
    const { boxes } = this.read;
    for (const [name, el] of this.stations) {
      const { X, Y, W, H } = this.boxOf(/** @type {probe.Station} */ (name));
      if (boxes.has(name) || !near([X - 40, Y - 40, X + W + 110, Y + H + 40])) continue;
      boxes.set(name, boxesOf(this, el.querySelectorAll("text")));
    }
    return [...boxes.values()].flat();
  }

  // wells are the boxes of the queues that are drawn.
  wells() { return boxesOf(this, this.root.querySelectorAll(".pipe .wall")); }
}

// boxesOf measures what can be seen of some elements, in units of the stage.
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

/** @param {Scene} scene @param {fold.State} state @param {string} resource */
function show(scene, state, resource) {
  const res = state.resources[resource];
  put(document.body, "data-seq", state.seq);
  put(document.body, "data-lost", state.lost);
  if (!res) return;
  showServer(scene, res, state);
  showRing(scene, res, state.t);
  showShelf(scene, "store", res.shelves[shelfName("store", "cacher")]);
  showClient(scene, res);
  showWatchers(scene);
  showListeners(scene);
  showWorkqueues(scene, res);
  scene.story?.draw();
}

// ---- server half

// hasEnded reports whether the newest life of a resource's cache is over, and ended, whether no other one has begun.
/** @param {fold.Resource} res */
const hasEnded = (res) => res.stations.incoming?.last.point === "CacherStopped";
/** @param {fold.Resource} res */
const ended = (res) => hasEnded(res) && !youngest(res, "watchchan");

/** @param {Scene} scene @param {fold.Resource} res @param {fold.State} whole */
function showServer(scene, res, whole) {
  const watchers = Object.values(res.subjects).filter(({ kind }) => kind === "watcher").length;
  showRequests(scene, res, whole);
  showEtcd(scene, res, whole);
  showLife(scene, res);
  showDispatch(scene, res, watchers);
  const closed = scene.story?.now.closed ?? 0;
  const bytes = res.stations.wire?.vars.bytes;
  scene.text("wire.bytes", bytes === undefined ? "" : `${bytes} B`);
  scene.text("watcher.closed", closed > watchers ? `${closed} streams ended` : "");
}

// showRequests shows the newest request.
/** @param {Scene} scene @param {fold.Resource} res @param {fold.State} whole */
function showRequests(scene, res, { resources: { "": general, ...rest } }) {
  const { story } = scene;
  const http = general?.stations.http;
  const { last = { seq: 0, point: "", texts: {} }, vars = {} } = http ?? {};
  /** @type {fold.Last["texts"]} */
  const { method = "", query } = last.texts;
  const requests = (res.points.RequestReceived ?? 0) + (general?.points.RequestReceived ?? 0);
  const answered = last.point === "RequestAnswered";
  const old = Boolean(answered && story && last.seq <= story.from); // the beat is about another one
  const request = !old && (answered || last.point === "RequestReceived");
  // Its change may be on its way before its answer is.
  const written = http && etcdsSince({ ...rest, "": general }, last.seq).some((each) =>
    each.last.point === "TxnCommitted");
  const watches = new URLSearchParams(query).has("watch");
  const under = watches ? "open" : written && method !== "GET" ? "in etcd" : "waits";
  scene.text("http.says", old ? "" : answered ? story?.now.waited || "last answer" : "last request");
  scene.text("http.method", request ? method : "–");
  scene.text("http.status", old ? "" : answered ? String(vars.status ?? "") : request ? under : "");
  mark(scene.station("http"), "refusal", answered && (vars.status ?? 0) >= 400);
  scene.text("http.count", requests);
  scene.text("http.asks", (request && story?.now.asks) || "", 74);
  scene.text("http.gets", (request && story?.now.gets) || "");
}

/** @param {Scene} scene @param {fold.Resource} res @param {fold.State} whole */
function showEtcd(scene, res, { resources }) {
  scene.text("etcd.rev", revisionOf(res, resources, scene.leaving()));
  const etcd = resources[""]?.stations.etcd;
  const refuses = etcd?.vars.refuses === 1;
  const percent = etcd?.vars.percent === undefined ? "" : `${etcd.vars.percent} % full`;
  const { lease, holder } = scene.story?.now ?? { lease: "", holder: "" };
  scene.text("etcd.full", refuses ? "no writes" : percent);
  scene.text("etcd.said", refuses ? "" : (scene.story?.now.etcd ?? ""));
  scene.text("etcd.lease", holder ? `lease ${lease}` : "");
  scene.text("etcd.holder", holder);
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

// showLife shows whether the cache of the resource serves.
/** @param {Scene} scene @param {fold.Resource} res */
function showLife(scene, res) {
  const { CacherReady: up = 0, CacherStopped: ends = 0 } = res.points;
  const ready = up > 0 && !hasEnded(res) && res.stations.incoming?.last.point !== "CacherNotReady";
  scene.text("incoming.ready", ended(res) ? "ended" : ready ? "ready" : "not ready");
  const lives = ended(res) ? "the server has ended" : "another server has started";
  const kind = scene.story?.now.kind;
  const state = kind ? `resource: ${kind}` : ends > 0 ? lives : "";
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
  const same = !(last && youngestSeq > last.seq); // as when it picked them
  const to = !scene.story ? `to ${n}` : (n ?? 0) <= watchers && same ? `to ${n} of ${watchers}` : "";
  const [sent, waits] = scene.inTurn ? [`in turn: to ${n}`, `waits, ${full}`] : [to, `pass 2: ${full}`];
  scene.text("dispatch.to", n === undefined ? "" : blocked ? waits : n === 0 ? "to no watcher" : sent);
  // The budget is spent by waiting: what is left of it is a matter of time.
  const budget = blocked ? Math.max(0, (vars.budget ?? 0) - (scene.now - last.t) / 1e6) : 100;
  scene.text("dispatch.budget", blocked ? `${Math.round(budget)} ms left` : "up to 100 ms");
  put(part(scene.root, "#battery"), "width", Math.round(1.56 * Math.min(100, budget)));
}

// ---- client half

// informerOf is whose reflector, FIFO and indexer are drawn: there is room for one. It is that of the subject that has
// to be seen.
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
    && reflector && s.opened > reflector.last.seq); // its watch, and it has no answer yet
  scene.text("reflector.state", opens ? "starting" : reflector ? stateOf(reflector) : "–");
  scene.text("reflector.rv", reflector && reflector.rv !== "0" ? reflector.rv : "–");
  const whose = scene.informer.replace(/^informer-?/, "") || (scene.story ? "the informer" : "");
  scene.text("reflector.of", whose && `of ${squeeze(whose, 14)}`);
  showFIFO(scene, reflector);
  showShelf(scene, "indexer", res.shelves[shelfName("indexer", scene.informer)]);
  // a reflector and its queue
  const alone = scene.story && reflector && !Object.values(res.subjects)
    .some((s) => s.kind === "listener" && hangsOn(scene, s));
  if (alone) scene.text("indexer.n", "none");
  const n = reflector?.vars.listeners;
  scene.text("processor.listeners", n === undefined ? "" : `of ${n}`);
}

/** @param {Scene} scene @param {fold.Subject | undefined} reflector */
function showFIFO(scene, reflector) {
  const queue = /^informer-(real|delta)$/.exec(scene.informer)?.[1]; // a story compares them
  const kind = queue === "real" ? "RealFIFO" : queue === "delta" ? "DeltaFIFO" : "FIFO";
  say(part(scene.station("fifo"), ".title"), kind);
  const grouped = queue ? queue === "delta" : scene.grouped;
  scene.text("fifo.order", grouped ? "deltas, by object" : "deltas, in order");
  const fifo = reflector?.queues.fifo;
  showPipe(scene, scene.queues.get("fifo"), fifo, 0);
  const popped = (/** @type {string} */ id) => (queue && scene.story?.now.popped.get(id)) || [];
  const out = popped(scene.informer);
  const gave = grouped ? popped("informer-real").slice(-8).join(" ") : "";
  scene.text("fifo.other", gave && "RealFIFO gave");
  scene.text("fifo.gave", gave);
  scene.text("fifo.high", fifo?.high && out.length === 0 ? `most: ${fifo.high}` : "");
  scene.text("fifo.left", out.length > 0 ? `${kind} gave` : "");
  scene.text("fifo.out", out.slice(-8).join(" "));
}

/** @type {{ [point: string]: string }} */
const states = { ReflectorBackoff: "backing off", ReflectorWatchEnded: "watch ended", ReflectorListed: "listed" };
/** @param {fold.Subject} s */
const stateOf = (s) => states[s.last.point] ?? (s.counts.ReflectorWatching ? "watching" : "starting");

// etcdsSince returns what is known of etcd, by resource, of which the last record comes after another.
/** @param {{ [name: string]: fold.Resource | undefined }} all @param {number} seq */
const etcdsSince = (all, seq) => Object.values(all).flatMap((res) => {
  const etcd = res?.stations.etcd;
  return etcd && etcd.last.seq > seq ? [etcd] : [];
});

// revisionOf returns the newest revision that etcd is known to have. A watch may deliver a change before its writer has
// the answer and reports it: what arrived at the watch is in etcd, and what is leaving for it. The revision also counts
// what is not drawn.
/** @param {fold.Resource} res @param {{ [name: string]: fold.Resource }} all @param {string} leaving */
function revisionOf(res, all, leaving) {
  const { etcd, etcd3 } = res.stations;
  const later = etcdsSince(all, etcd?.last.seq ?? 0);
  const known = [etcd, etcd3, ...later].map((each) => each?.rv ?? "0").concat(leaving).map(BigInt);
  const newest = known.reduce((a, b) => (a > b ? a : b));
  return newest > 0n ? String(newest) : "–";
}
