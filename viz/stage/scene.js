// @ts-nocheck
// The scene: the folded state as the scenery. It is drawn again from the state whenever the state has changed, and
// knows nothing of records; what moves between two states is motion.js.

import { $, mark, put, say } from "../dom/dom.js";
import { squeeze } from "../lib/texts.js";
import { shelfName, youngest } from "../log/fold.js";
import { showListeners, showWatchers, showWorkqueues } from "./lanes.js";
import { newLayout } from "./layout.js";
import { showPipe, showShelf } from "./pipe.js";
import { hangsOn, placesOf, reflects, serves } from "./places.js";
import { ringSpot, showRing } from "./ring.js";

const none = { lanes: new Map(), hidden: 0 };
const nowhere = {
  informer: "informer", serving: new Set(), watchers: none, listeners: none, handlers: none, workqueues: none,
};

export function newScene(geometry) {
  const root = $(".scenery");
  const texts = new Map([...root.querySelectorAll("[data-text]")].map((el) => [el.dataset.text, el]));
  const stations = new Map([...root.querySelectorAll("[data-station]")].map((el) => [el.dataset.station, el]));
  const named = (name) => [name, root.querySelector(`[data-queue="${name}"]`)];
  const queues = new Map(["etcd3-incoming", "etcd3-result", "incoming", "fifo"].map(named));
  const beside = [...root.querySelectorAll("text")].filter((el) => !el.closest(".station"));
  let places = null; // of the lanes; null: they are made when they are asked for
  let now = { state: null, resource: "" };
  let read = null; // what words has returned: {view, boxes}, by station
  const scene = {
    geometry, root, texts, stations, queues,
    inTurn: false, // -dispatch=sequential: there are no passes
    grouped: false, // -fifo=delta
    lanes: { watchers: new Map(), listeners: new Map(), handlers: new Map(), workqueues: new Map() },
    view: null, // what of the stage is seen; zoom.js
    told: null, // what a story adds: told.js; tell puts it here
    tell(told) {
      if (!told) scene.told?.leave();
      scene.told = told;
      scene.stale = true;
    },
    // changed is told that other subjects are there: thousands may come between two frames.
    changed(state, resource) {
      [now, places] = [{ state, resource }, null];
    },
    get places() { return (places ??= settle()); },
    get informer() { return scene.places.informer; }, // that is drawn
    get serving() { return scene.places.serving; }, // watchers whose client it is
    front: null, // the subject that has to be seen: a watcher, an informer, or a listener of it
    followed: () => false, // of a token, a row, a cell: is it what is followed?
    leaving: () => "0", // the version that is on its way from etcd on; motion.js
    slotSpot: (pos, ring = scene.ring) => ringSpot(scene, ring, pos),
    ring: { capacity: 0 },
    store: [],
    show(state, resource) {
      read = null;
      scene.changed(state, resource);
      places = settle();
      show(scene, state, resource);
    },
    // words returns where texts can be read: [left, top, right, bottom] in units of the stage. Only those are measured
    // whose station is near.
    words(near) {
      const view = Object.values(scene.view).join();
      if (read?.view !== view) read = { view, boxes: new Map([["", boxesOf(scene, beside)]]) };
      for (const [name, el] of stations) {
        const { X, Y, W, H } = scene.boxOf(name);
        if (read.boxes.has(name) || !near([X - 40, Y - 40, X + W + 110, Y + H + 40])) continue;
        read.boxes.set(name, boxesOf(scene, el.querySelectorAll("text")));
      }
      return [...read.boxes.values()].flat();
    },
    // wells are the boxes of the queues that are drawn.
    wells: () => boxesOf(scene, root.querySelectorAll(".pipe .wall")).map((box) => Object.assign(box, { well: true })),
    text(name, value) {
      const el = texts.get(name);
      if (el) say(el, String(value));
    },
  };
  // settle finds out where the lanes are in the newest picture.
  function settle() {
    const res = now.state?.resources[now.resource];
    if (!res) return nowhere;
    scene.now = now.state.t;
    scene.told?.at(res, now.state.seq, now.resource);
    return placesOf({ geometry, told: scene.told, informer: informerOf(scene, res) }, res);
  }
  scene.relaid = newLayout(scene); // tells of another layout
  return scene;
}

// boxesOf measures what can be seen of some elements, in units of the stage.
function boxesOf({ root, view }, elements) {
  const ground = root.getBoundingClientRect();
  const scale = view.w / ground.width;
  return [...elements].filter((el) => el.checkVisibility({ visibilityProperty: true })).map((el) => {
    const { left, top, right, bottom } = el.getBoundingClientRect();
    return [left - ground.left, top - ground.top, right - ground.left, bottom - ground.top]
      .map((side, i) => side * scale + (i % 2 ? view.y : view.x));
  }).filter(([left, , right]) => right > left);
}

function show(scene, state, resource) {
  const res = state.resources[resource];
  put(document.body, "data-seq", state.seq);
  put(document.body, "data-lost", state.lost);
  if (!res) return;
  const general = state.resources[""];
  showServer(scene, res, general, state.resources);
  showRing(scene, res, state.t);
  showShelf(scene, "store", res.shelves[shelfName("store", "cacher")]);
  showClient(scene, res);
  showWatchers(scene);
  showListeners(scene);
  showWorkqueues(scene, res);
  scene.told?.draw();
}

// ---- server half

// hasEnded reports whether the newest life of a resource's cache is over, and ended, whether no other one has begun.
const hasEnded = (res) => res.stations.incoming?.last.point === "CacherStopped";
const ended = (res) => hasEnded(res) && !youngest(res, "watchchan");

function showServer(scene, res, general, all) {
  const { http } = general?.stations ?? {};
  const requests = (res.points.RequestReceived ?? 0) + (general?.points.RequestReceived ?? 0);
  const answered = http?.last.point === "RequestAnswered";
  const old = answered && scene.told?.story && http.last.seq <= scene.told.from; // the beat is about another one
  const request = !old && (answered || http?.last.point === "RequestReceived");
  // Its change may be on its way before its answer is.
  const written = etcdsSince(all, http?.last.seq).some(({ last }) => last.point === "TxnCommitted");
  const reads = http?.last.text.startsWith("GET");
  const under = /[?&]watch=/.test(http?.last.text) ? "open" : written && !reads ? "in etcd" : "waits";
  const status = old ? "" : answered ? String(http.vars.status ?? "") : request ? under : "";
  scene.text("http.says", old ? "" : answered ? scene.told?.waited || "last answer" : "last request");
  scene.text("http.method", request ? http.last.text.split(" ", 1)[0] : "–");
  scene.text("http.status", status);
  mark(scene.stations.get("http"), "refusal", answered && http.vars.status >= 400);
  scene.text("http.count", requests);
  const { asks = "", gets = "" } = (request && scene.told) || {};
  scene.text("http.asks", asks);
  scene.text("http.gets", gets);
  scene.text("etcd.rev", revisionOf(res, all, scene.leaving()));
  const etcd = general?.stations.etcd;
  const refuses = etcd?.vars.refuses === 1;
  const percent = etcd?.vars.percent === undefined ? "" : `${etcd.vars.percent} % full`;
  const { closed = 0, lease = "", holder = "", kind = "" } = scene.told ?? {};
  scene.text("etcd.full", refuses ? "no writes" : percent);
  scene.text("etcd.said", refuses ? "" : (scene.told?.etcd ?? ""));
  mark(scene.stations.get("etcd"), "refuses", refuses);
  const chan = youngest(res, "watchchan");
  const cacher = res.subjects.cacher ?? res.subjects[""];
  for (const [name, owner] of [["etcd3-incoming", chan], ["etcd3-result", chan], ["incoming", cacher]]) {
    showPipe(scene, scene.queues.get(name), owner?.queues[name], 100);
  }
  scene.text("etcd3.error", scene.told?.etcd3 ?? "");
  const { CacherReady: up = 0, CacherStopped: ends = 0 } = res.points;
  const ready = up > 0 && !hasEnded(res) && res.stations.incoming?.last.point !== "CacherNotReady";
  scene.text("incoming.ready", ended(res) ? "ended" : ready ? "ready" : "not ready");
  const lives = ended(res) ? "the server has ended" : "another server has started";
  const state = kind ? `resource: ${kind}` : ends > 0 ? lives : "";
  scene.text("server.state", state);
  put(scene.root.querySelector(".about.ours"), "visibility", state ? "hidden" : "visible");
  const dispatch = res.stations.dispatch;
  const n = dispatch?.vars.watchers;
  const blocked = dispatch?.last.point === "DispatchBlocked";
  mark(scene.stations.get("dispatch"), "blocked", blocked);
  const full = `${dispatch?.vars.blocked} full`;
  const watchers = Object.values(res.subjects).filter(({ kind }) => kind === "watcher").length;
  const same = !(youngest(res, "watcher")?.opened > dispatch?.last.seq); // as when it picked them
  const to = !scene.told ? `to ${n}` : n <= watchers && same ? `to ${n} of ${watchers}` : "";
  const [sent, waits] = scene.inTurn ? [`in turn: to ${n}`, `waits, ${full}`] : [to, `pass 2: ${full}`];
  scene.text("dispatch.to", n === undefined ? "" : blocked ? waits : n === 0 ? "to no watcher" : sent);
  // The budget is spent by waiting: what is left of it is a matter of time.
  const budget = blocked ? Math.max(0, dispatch.vars.budget - (scene.now - dispatch.last.t) / 1e6) : 100;
  scene.text("dispatch.budget", blocked ? `${Math.round(budget)} ms left` : "up to 100 ms");
  put(scene.root.querySelector("#battery"), "width", Math.round(1.56 * Math.min(100, budget)));
  const wire = res.stations.wire;
  scene.text("wire.bytes", wire?.vars.bytes === undefined ? "" : `${wire.vars.bytes} B`);
  scene.text("watcher.closed", closed > watchers ? `${closed} streams ended` : "");
  scene.text("etcd.lease", holder ? `lease ${lease}` : "");
  scene.text("etcd.holder", holder);
}

// ---- client half

// informerOf is whose reflector, FIFO and indexer are drawn: there is room for one. It is that of the subject that has
// to be seen.
function informerOf(scene, res) {
  const members = scene.told?.members ?? [];
  const owner = (id) => members.find(({ subject }) => subject === id)?.client
    ?? (res.subjects[id]?.queues.fifo ? id : res.subjects[id]?.texts.ListenerAdded);
  const front = [owner(scene.front), ...members.map(({ client }) => client)].find((id) => res.subjects[id]);
  if (front) return front;
  if (res.subjects.informer) return "informer";
  const clients = Object.keys(res.subjects).filter((id) => id !== "cacher" && reflects(res.subjects[id]));
  return clients.sort()[0] ?? "informer";
}

function showClient(scene, res) {
  const reflector = res.subjects[scene.informer];
  const opens = Object.values(res.subjects).some((s) => s.kind === "watcher" && serves(scene, s)
    && s.opened > reflector?.last.seq); // its watch, and it has no answer yet
  scene.text("reflector.state", opens ? "starting" : reflector ? stateOf(reflector) : "–");
  scene.text("reflector.rv", reflector && reflector.rv !== "0" ? reflector.rv : "–");
  const whose = scene.informer.replace(/^informer-?/, "") || (scene.told?.story ? "the informer" : "");
  scene.text("reflector.of", whose && `of ${squeeze(whose, 14)}`);
  const queue = /^informer-(real|delta)$/.exec(scene.informer)?.[1]; // a story compares them
  const kind = { real: "RealFIFO", delta: "DeltaFIFO" }[queue] ?? "FIFO";
  say(scene.stations.get("fifo").querySelector(".title"), kind);
  const grouped = queue ? queue === "delta" : scene.grouped;
  scene.text("fifo.order", grouped ? "deltas, by object" : "deltas, in order");
  const fifo = reflector?.queues.fifo;
  showPipe(scene, scene.queues.get("fifo"), fifo, 0);
  const popped = (id) => (queue && scene.told?.popped.get(id)) || [];
  const out = popped(scene.informer);
  const gave = grouped ? popped("informer-real").slice(-8).join(" ") : "";
  scene.text("fifo.other", gave && "RealFIFO gave");
  scene.text("fifo.gave", gave);
  scene.text("fifo.high", fifo?.high && out.length === 0 ? `most: ${fifo.high}` : "");
  scene.text("fifo.left", out.length > 0 ? `${kind} gave` : "");
  scene.text("fifo.out", out.slice(-8).join(" "));
  showShelf(scene, "indexer", res.shelves[shelfName("indexer", scene.informer)]);
  // a reflector and its queue
  const alone = scene.told?.story && reflector && !Object.values(res.subjects)
    .some((s) => s.kind === "listener" && hangsOn(scene, s));
  if (alone) scene.text("indexer.n", "none");
  const n = reflector?.vars.listeners;
  scene.text("processor.listeners", n === undefined ? "" : `of ${n}`);
}

const states = { ReflectorBackoff: "backing off", ReflectorWatchEnded: "watch ended", ReflectorListed: "listed" };
const stateOf = (s) => states[s.last.point] ?? (s.counts.ReflectorWatching ? "watching" : "starting");

// etcdsSince returns what is known of etcd, by resource, of which the last record comes after another.
const etcdsSince = (all, seq) => Object.values(all).map(({ stations }) => stations.etcd)
  .filter((each) => each?.last.seq > seq);

// revisionOf returns the newest revision that etcd is known to have. A watch may deliver a change before its writer has
// the answer and reports it: what arrived at the watch is in etcd, and what is leaving for it. The revision also counts
// what is not drawn.
function revisionOf(res, all, leaving) {
  const { etcd, etcd3 } = res.stations;
  const later = etcdsSince(all, etcd?.last.seq ?? 0);
  const known = [etcd, etcd3, ...later].map((each) => each?.rv).concat(leaving).map((rv) => BigInt(rv ?? 0));
  const newest = known.reduce((a, b) => (a > b ? a : b));
  return newest > 0n ? String(newest) : "–";
}
