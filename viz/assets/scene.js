// The scene: the folded state as the scenery. It is drawn anew from the state whenever the state has changed, and
// knows nothing of records; what moves between two states is motion.js.

import { cut, mark, pool, put, say, svg } from "./dom.js";
import { objectKey } from "./fold.js";
import { shapeOf } from "./tokens.js";

const leftward = new Set(["fifo", "pending", "workqueue", "add", "next"]); // the client half runs right to left
const fresh = 75e9; // ns: the history the ring tries to keep

export function newScene(geometry) {
  const root = document.querySelector(".scenery");
  const texts = new Map([...root.querySelectorAll("[data-text]")].map((el) => [el.dataset.text, el]));
  const stations = new Map([...root.querySelectorAll("[data-station]")].map((el) => [el.dataset.station, el]));
  const queues = new Map();
  for (const name of ["etcd3-incoming", "etcd3-result", "incoming", "fifo"]) {
    queues.set(name, root.querySelector(`[data-queue="${name}"]`));
  }
  const scene = {
    geometry, root, texts, stations, queues,
    lanes: { watchers: new Map(), listeners: new Map(), handlers: new Map(), workqueues: new Map() },
    marked: "",
    followed: () => false, // of a token, a row, a cell: is it what is followed?
    slotSpot: (pos) => ringSpot(geometry, scene.ring, pos),
    ring: { capacity: 0 },
    store: [],
    show: (state, resource) => show(scene, state, resource),
  };
  return scene;
}

function show(scene, state, resource) {
  const res = state.resources[resource];
  put(document.body, "data-seq", state.seq);
  put(document.body, "data-lost", state.lost);
  if (!res) return;
  const general = state.resources[""];
  showServer(scene, res, general);
  showRing(scene, res.ring, state.t);
  showShelf(scene, "store", res.shelves.store);
  showWatchers(scene, res);
  showClient(scene, res);
  showListeners(scene, res);
  showWorkqueues(scene, res);
}

function text(scene, name, value) {
  const el = scene.texts.get(name);
  if (el) say(el, String(value));
}

// ---- server half

function showServer(scene, res, general) {
  const http = latest(res.stations.http, general?.stations.http);
  const requests = (res.points.RequestReceived ?? 0) + (general?.points.RequestReceived ?? 0);
  const words = (http?.last.text ?? "").split(" ");
  const verb = words.find((w) => /^[A-Z]{3,7}$/.test(w)) ?? "–";
  text(scene, "http.method", verb);
  text(scene, "http.status", http?.last.point === "RequestAnswered" && http.vars.status ? http.vars.status : "…");
  text(scene, "http.count", requests);
  text(scene, "etcd.rev", res.stations.etcd && res.stations.etcd.rv !== "0" ? res.stations.etcd.rv : "–");
  const chan = youngest(res, "watchchan");
  showPipe(scene, scene.queues.get("etcd3-incoming"), chan?.queues["etcd3-incoming"], 100);
  showPipe(scene, scene.queues.get("etcd3-result"), chan?.queues["etcd3-result"], 100);
  const cacher = res.subjects.cacher ?? res.subjects[""];
  showPipe(scene, scene.queues.get("incoming"), cacher?.queues.incoming, 100);
  const up = res.points.CacherReady ?? 0;
  const last = res.stations.incoming?.last.point;
  text(scene, "incoming.ready", up === 0 || last === "CacherNotReady" ? "not ready" : "ready");
  const dispatch = res.stations.dispatch;
  const n = dispatch?.vars.watchers;
  text(scene, "dispatch.to", n === undefined ? "" : n === 0 ? "to nobody" : `to ${n}`);
  const blocked = dispatch?.last.point === "DispatchBlocked";
  mark(scene.stations.get("dispatch"), "blocked", blocked);
  const budget = blocked ? dispatch.vars.budget : 100;
  text(scene, "dispatch.budget", blocked ? `${budget} ms left` : "up to 100 ms");
  put(scene.root.querySelector("#battery"), "width", Math.round(1.56 * Math.min(100, Math.max(0, budget))));
  const wire = res.stations.wire;
  text(scene, "wire.bytes", wire?.vars.bytes === undefined ? "" : `${wire.vars.bytes} B`);
}

function latest(a, b) {
  if (!a || !b) return a ?? b;
  return a.last.seq > b.last.seq ? a : b;
}

function youngest(res, kind) {
  let found = null;
  for (const subject of Object.values(res.subjects)) {
    if (subject.kind === kind && (!found || subject.opened > found.opened)) found = subject;
  }
  return found;
}

// ---- the ring

function ringSpot(geometry, ring, pos) {
  const g = geometry.ring;
  const at = ring.capacity > 0 ? ((((pos % ring.capacity) + ring.capacity) % ring.capacity) + 0.5) / ring.capacity : 0;
  const angle = 2 * Math.PI * at - Math.PI / 2;
  const r = (g.out + g.in) / 2;
  return [g.x + r * Math.cos(angle), g.y + r * Math.sin(angle)];
}

function showRing(scene, ring, now) {
  const station = scene.stations.get("ring");
  scene.ring = ring;
  put(station, "data-start", ring.start);
  put(station, "data-end", ring.end);
  put(station, "data-capacity", ring.capacity);
  put(station, "data-oldest-rv", ring.oldest);
  put(station, "data-newest-rv", ring.newest);
  text(scene, "ring.newest", ring.newest === "0" ? "–" : ring.newest);
  text(scene, "ring.range", `[${ring.start}, ${ring.end})`);
  text(scene, "ring.capacity", ring.capacity ? `of ${ring.capacity}` : "");
  if (!ring.capacity) return;
  const bins = Math.min(ring.capacity, 128);
  const cells = pool(scene.root.querySelector("#ring-cells"), bins, () => svg("path", { class: "cell" }));
  if (scene.bins !== bins) {
    scene.bins = bins;
    for (let i = 0; i < bins; i++) cells[i].setAttribute("d", wedge(scene.geometry.ring, i / bins, (i + 1) / bins));
  }
  const filled = new Array(bins).fill(null);
  const perBin = ring.capacity / bins;
  if (perBin > 1) {
    for (let i = 0; i < bins; i++) if (holds(ring, i * perBin, (i + 1) * perBin)) filled[i] = { type: "", t: now };
  }
  for (const cell of ring.cells) filled[Math.floor((cell.pos % ring.capacity) / perBin)] = cell;
  const newestBin = ring.end > ring.start ? Math.floor(((ring.end - 1) % ring.capacity) / perBin) : -1;
  for (let i = 0; i < bins; i++) {
    const cell = filled[i];
    let name = "cell";
    if (cell) name += now - cell.t > fresh ? " held stale" : ` held ${cell.type ? shapeOf(cell.type) : ""}`;
    if (i === newestBin) name += " newest";
    put(cells[i], "class", name.trim());
  }
  const followed = ring.cells.filter(scene.followed);
  const rings = pool(scene.root.querySelector("#ring-followed"), followed.length, twin);
  followed.forEach((cell, i) => {
    const [x, y] = ringSpot(scene.geometry, ring, cell.pos);
    put(rings[i], "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
  });
  showHands(scene, ring);
}

// twin is the double outline of what is followed.
function twin() {
  const g = svg("g", { class: "twin" });
  g.append(svg("circle", { r: 9.5 }), svg("circle", { r: 13 }));
  return g;
}

// holds reports whether any of the slots [from, to) is between the hands.
function holds(ring, from, to) {
  const n = ring.end - ring.start;
  if (n <= 0) return false;
  const first = ring.start % ring.capacity;
  const last = first + n;
  return (from < last && to > first) || from + ring.capacity < last;
}

function showHands(scene, ring) {
  const g = scene.geometry.ring;
  const start = (ring.start % ring.capacity) / ring.capacity;
  const end = (ring.end % ring.capacity) / ring.capacity;
  for (const [id, turn] of [["hand-start", start], ["hand-end", end]]) {
    const angle = 2 * Math.PI * turn - Math.PI / 2;
    const [x, y] = [g.x + (g.out + 1) * Math.cos(angle), g.y + (g.out + 1) * Math.sin(angle)];
    put(scene.root.querySelector(`#${id}`), "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${(turn * 360).toFixed(1)})`);
  }
  const span = Math.min(0.9999, (ring.end - ring.start) / ring.capacity);
  put(scene.root.querySelector("#ring-served"), "d", span > 0 ? arc(g, g.in - 4, start, start + span) : "");
}

function spot(g, r, turn) {
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  return `${(g.x + r * Math.cos(angle)).toFixed(2)} ${(g.y + r * Math.sin(angle)).toFixed(2)}`;
}

function arc(g, r, from, to) {
  return `M${spot(g, r, from)}A${r} ${r} 0 ${to - from > 0.5 ? 1 : 0} 1 ${spot(g, r, to)}`;
}

function wedge(g, from, to) {
  const gap = Math.min(0.0012, (to - from) * 0.2);
  const [a, b] = [from + gap, to - gap];
  return `M${spot(g, g.in, a)}L${spot(g, g.out, a)}A${g.out} ${g.out} 0 0 1 ${spot(g, g.out, b)}L${spot(g, g.in, b)}A${g.in} ${g.in} 0 0 0 ${spot(g, g.in, a)}Z`;
}

// ---- shelves

// shortKey leaves the namespace out where it goes without saying.
export function shortKey(key) {
  const name = objectKey(key);
  return name.startsWith("default/") ? name.slice("default/".length) : name;
}

function showShelf(scene, name, shelf) {
  const station = scene.stations.get(name);
  text(scene, `${name}.n`, shelf?.n ?? 0);
  const rows = station.querySelectorAll(".row");
  const known = shelf?.rows ?? [];
  const shown = known.slice(-rows.length);
  const newest = shown.at(-1)?.key;
  shown.sort((a, b) => (a.key < b.key ? -1 : 1));
  if (name === "store") scene.store = known;
  const width = scene.geometry.boxes[name].W;
  rows.forEach((row, i) => {
    const object = shown[i];
    mark(row, "empty", !object);
    mark(row, "newest", Boolean(object) && object.key === newest);
    mark(row, "marked", Boolean(object) && objectKey(object.key) === scene.marked);
    mark(row, "followed", Boolean(object) && scene.followed(object));
    put(row, "data-key", object ? objectKey(object.key) : "");
    const room = Math.floor((width - 26 - 9 * (object?.rv.length ?? 0)) / 7.6);
    say(row.querySelector(".key"), object ? squeeze(shortKey(object.key), room) : "");
    say(row.querySelector(".rv"), object && object.rv !== "0" ? object.rv : "");
  });
}

// ---- pipes

// showPipe draws a queue as slots or as a gauge, with its tokens where they fit. The oldest stands at the exit.
function showPipe(scene, el, queue, expected) {
  if (!el) return;
  const name = el.dataset.queue;
  const cap = queue?.cap ?? expected ?? 0;
  const len = queue?.len ?? 0;
  put(el, "data-len", len);
  put(el, "data-cap", cap);
  const g = scene.geometry.pipes[name];
  if (el.classList.contains("handshake")) {
    mark(el, "met", len > 0);
    return;
  }
  put(el, "aria-label", cap > 0 ? `${name}: ${len} of ${cap}` : `${name}: ${len}`);
  mark(el, "full", cap > 0 && len >= cap);
  const number = el.querySelector(".num");
  if (number && name !== "pending") say(number, cap > 0 ? `${len}/${cap}` : String(len));
  const slotted = cap > 0 && cap <= scene.geometry.maxSlots;
  showSlots(el, g, slotted ? cap : 0);
  const fit = slotted ? cap : Math.floor(g.W / 15);
  const step = slotted ? g.W / cap : 15;
  const tokens = len <= fit ? (queue?.tokens ?? []) : [];
  showHeld(scene, el, g, tokens, step, leftward.has(name));
  const fill = el.querySelector(".fill");
  const width = slotted || len <= fit ? 0 : cap > 0 ? Math.max(4, ((g.W - 4) * len) / cap) : g.W - 4;
  put(fill, "width", Math.min(g.W - 4, width).toFixed(1));
  put(fill, "x", leftward.has(name) ? g.X + 2 : g.X + g.W - 2 - width);
}

function showSlots(el, g, n) {
  const slots = el.querySelector(".slots");
  if (slots.childElementCount === n) return;
  slots.replaceChildren();
  const width = g.W / n;
  for (let i = 0; i < n; i++) {
    slots.append(svg("rect", { class: "slot", x: (g.X + i * width).toFixed(2), y: g.Y, width: width.toFixed(2), height: g.H }));
  }
}

function showHeld(scene, el, g, tokens, step, left) {
  const size = Math.min(g.H - 1, Math.max(8, step * 1.25));
  const held = pool(el.querySelector(".held"), tokens.length, () => svg("use"));
  tokens.forEach((token, i) => {
    const middle = (i + 0.5) * step;
    const x = left ? g.X + middle : g.X + g.W - middle;
    put(held[i], "href", `#token-${shapeOf(token.type)}`);
    put(held[i], "x", (x - size / 2).toFixed(1));
    put(held[i], "y", (g.Y + (g.H - size) / 2).toFixed(1));
    put(held[i], "width", size.toFixed(1));
    put(held[i], "height", size.toFixed(1));
    put(held[i], "data-key", objectKey(token.key));
    mark(held[i], "followed", scene.followed(token));
  });
  const followed = tokens.flatMap((token, i) => (scene.followed(token) ? [i] : []));
  let rings = el.querySelector(".rings");
  if (!rings && followed.length === 0) return;
  if (!rings) el.append((rings = svg("g", { class: "rings" })));
  const twins = pool(rings, followed.length, twin);
  followed.forEach((i, n) => {
    const middle = (i + 0.5) * step;
    const x = left ? g.X + middle : g.X + g.W - middle;
    put(twins[n], "transform", `translate(${x.toFixed(1)} ${g.Y + g.H / 2}) scale(${(size / 20).toFixed(2)})`);
  });
}

// ---- lanes

// lanes keeps one group per subject in a container, in the order of the list unless an entry says its place. What does
// not fit is kept in the document, but not drawn; the last place then says how many more there are.
function lanes(scene, kind, template, attribute, list, size) {
  const container = scene.root.querySelector(`#${kind}`);
  const known = scene.lanes[kind];
  if (known.size === 0) for (const el of container.children) known.set(el.getAttribute(attribute), el);
  const open = new Set(list.map(([id]) => id));
  for (const [id, el] of known) {
    if (open.has(id)) continue;
    el.remove();
    known.delete(id);
  }
  const room = list.length > size.room ? size.room - 1 : size.room;
  list.forEach(([id, subject, place], n) => {
    const i = place ?? n;
    let el = known.get(id);
    if (!el) {
      el = document.querySelector(`#${template}`).content.querySelector("g.lane").cloneNode(true);
      el.setAttribute(attribute, id);
      container.append(el);
      known.set(id, el);
    }
    put(el, "transform", `translate(0 ${i * size.height})`);
    mark(el, "over", i >= room);
    wayIn(el, kind, i, size, scene.geometry);
    el.lane = { id, index: i, subject, shown: i < room };
  });
  return Math.max(0, list.length - room);
}

// wayIn draws the rail from the fan-out to a lane.
function wayIn(el, kind, i, size, g) {
  const path = el.querySelector(".way-in");
  if (!path) return;
  const box = kind === "watchers" ? g.boxes.watcher : g.boxes.listener;
  const [from, to] = kind === "watchers" ? [929 - box.X, 0] : [g.boxes.processor.X - box.X, 302];
  const y = (kind === "watchers" ? g.serverAxis : g.clientAxis) - box.Y - i * size.height;
  const middle = (from + to) / 2;
  put(path, "d", `M${from} ${y}C${middle} ${y} ${middle} 26 ${to} 26`);
}

function opened(res, kind) {
  return Object.entries(res.subjects)
    .filter(([, subject]) => subject.kind === kind)
    .sort(([, a], [, b]) => a.opened - b.opened);
}

function more(n) {
  return n > 0 ? `+${n} more` : "";
}

// agentOf is who is behind a watcher: the first word of what it called itself.
export function agentOf(subject) {
  const said = subject.texts.WireOpened ?? "";
  return said.split(" ")[0].split("/")[0] || said.split(" ")[0];
}

// squeeze shortens a name to n characters from its middle: names differ at their ends.
function squeeze(name, n) {
  const all = Array.from(name);
  if (all.length <= n) return name;
  const tail = Math.ceil((n - 1) * 0.6);
  return all.slice(0, n - 1 - tail).join("") + "…" + all.slice(-tail).join("");
}

function showWatchers(scene, res) {
  const list = opened(res, "watcher");
  const hidden = lanes(scene, "watchers", "watcher-lane", "data-watcher", list, scene.geometry.lane);
  text(scene, "watcher.n", list.length);
  text(scene, "watcher.more", more(hidden));
  put(scene.root.querySelector("#watcher-rest"), "visibility", hidden > 0 ? "visible" : "hidden");
  text(scene, "wire.streams", list.length === 1 ? "1 stream" : `${list.length} streams`);
  for (const [id, subject] of list) {
    const el = scene.lanes.watchers.get(id);
    say(el.querySelector(".name"), `${id} ${squeeze(agentOf(subject).replace(/^listwatch-/, ""), 12 - id.length)}`);
    const words = cut(`${id}: ${subject.texts.WireOpened ?? ""}. It watches ${subject.texts.WatcherAdded ?? ""}`, 300);
    put(el, "aria-label", words);
    say(el.querySelector("title"), words);
    const end = agentOf(subject).includes("informer") ? scene.geometry.wireX : scene.geometry.width + 6;
    put(el.querySelector(".way-out"), "d", `M218 26H${end - scene.geometry.boxes.watcher.X}`);
    const capacity = subject.vars.capacity ?? 0;
    showPipe(scene, el.querySelector('[data-queue="input"]'), subject.queues.input, capacity);
    showPipe(scene, el.querySelector('[data-queue="result"]'), subject.queues.result, capacity);
  }
}

function showClient(scene, res) {
  scene.informer = Object.entries(res.subjects).find(([, s]) => s.queues.fifo)?.[0] ?? "informer";
  const reflector = res.subjects[scene.informer];
  text(scene, "reflector.state", reflector ? stateOf(reflector) : "–");
  text(scene, "reflector.rv", reflector && reflector.rv !== "0" ? reflector.rv : "–");
  const fifo = reflector?.queues.fifo;
  showPipe(scene, scene.queues.get("fifo"), fifo, 0);
  text(scene, "fifo.high", fifo?.high ? `most: ${fifo.high}` : "");
  showShelf(scene, "indexer", res.shelves.indexer);
  const n = res.stations.processor?.vars.listeners;
  text(scene, "processor.listeners", n === undefined ? "" : `${n} of them`);
}

function stateOf(subject) {
  switch (subject.last.point) {
    case "ReflectorBackoff":
      return "backing off";
    case "ReflectorWatchEnded":
    case "StreamEnded":
      return "watch ended";
    case "ReflectorListed":
      return "listed";
    default:
      return subject.counts.ReflectorWatching ? "watching" : "starting";
  }
}

function showListeners(scene, res) {
  const list = opened(res, "listener");
  const hidden = lanes(scene, "listeners", "listener-lane", "data-listener", list, scene.geometry.listen);
  lanes(scene, "handlers", "handler-lane", "data-handler-of", list, scene.geometry.listen);
  text(scene, "listener.more", more(hidden));
  for (const [id, subject] of list) {
    const el = scene.lanes.listeners.get(id);
    say(el.querySelector(".name"), squeeze(id, 10));
    for (const name of ["add", "pending", "next"]) showPipe(scene, el.querySelector(`[data-queue="${name}"]`), subject.queues[name], 0);
    const pending = subject.queues.pending;
    say(el.querySelector('[data-queue="pending"] .num'), pending ? `pending ${pending.len}/${pending.cap}` : "pending 0");
    const handler = scene.lanes.handlers.get(id);
    const running = (subject.counts.HandlerCalled ?? 0) > (subject.counts.HandlerReturned ?? 0);
    mark(handler, "running", running);
    say(handler.querySelector(".state"), running ? "▶ running" : `${subject.counts.HandlerReturned ?? 0} calls`);
  }
}

// beside gives each workqueue its place: that of the handler which fills it, or, if its owner watches by itself, one
// where no handler is, as long as there is one.
function beside(queues, handlers, room) {
  const own = new Set(queues.map(([id]) => handlers.indexOf(id)));
  const free = [];
  for (let i = handlers.length; i < room; i++) free.push(i);
  for (let i = 0; i < handlers.length; i++) if (!own.has(i)) free.push(i);
  for (let i = room; free.length < queues.length; i++) free.push(i);
  return queues.map(([id, subject]) => [id, subject, handlers.includes(id) ? handlers.indexOf(id) : free.shift()]);
}

function showWorkqueues(scene, res) {
  const queues = Object.entries(res.subjects).filter(([, s]) => s.queues.workqueue).sort(([a], [b]) => (a < b ? -1 : 1));
  const handlers = opened(res, "listener").map(([id]) => id);
  const list = beside(queues, handlers, scene.geometry.listen.room);
  for (const [id, el] of scene.lanes.handlers) mark(el, "ends", !res.subjects[id]?.queues.workqueue);
  const hidden = lanes(scene, "workqueues", "workqueue-lane", "data-workqueue", list, scene.geometry.listen);
  text(scene, "workqueue.more", more(hidden));
  for (const [id, subject] of list) {
    const el = scene.lanes.workqueues.get(id);
    say(el.querySelector(".name"), cut(id, 18));
    const words = cut(subject.texts.Reconciled ?? id, 200);
    put(el, "aria-label", words);
    say(el.querySelector("title"), words);
    showPipe(scene, el.querySelector('[data-queue="workqueue"]'), subject.queues.workqueue, 0);
  }
}
