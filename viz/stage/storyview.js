// StoryView draws what a story adds to the stage: its clients (the cast) in its order and with its names, each with a
// flag for the last event sent. A pin at the ring marks the version that a client has reached.

import { widthOf } from "../dom/canvas.js";
import { $, mark, part, pool, put, say } from "../dom/dom.js";
import { agentOf, laterRV, objectKey } from "../log/fold.js";
import { says as saying } from "../log/query.js";
import { made, nameFont } from "./lanes.js";
import { reflects } from "./places.js";
import { callOwn, shapeOf, shortKey } from "./tokens.js";

/**
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {probe.Record["texts"]} Texts
 * @typedef {object} Member a member of a story's cast, in its current state
 * @property {string} name
 * @property {boolean} [pin]
 * @property {string} subject
 * @property {string} [client]
 * @property {string} word
 * @property {boolean} alarm
 * @property {string} rv
 * @property {boolean} open
 * @property {string} [type]
 * @property {string} more
 * @property {string} [other] the other server, where the client watched first
 * @property {string} [first] the version that the client had when it came from there
 * @typedef {object} Stream a client's stream, or a watcher without a connection
 * @property {string} id the watcher's, or a refused request's
 * @property {NonNullable<Texts>} texts the request's texts
 * @property {string} began the version at which the watch starts
 * @property {boolean} resumes
 * @property {boolean} wire
 * @property {string} who the client
 * @property {probe.Record} [said] the last event sent
 * @property {boolean} [closed]
 * @property {boolean} [forced]
 * @typedef {{ id: string, cast?: scenario.Member[], versions?: string[], several?: boolean, pod?: string }} Story
 *   several: whether the beats are about several resources
 * @typedef {{ name: string, chips: { text: string, look: string, at: number }[] }} Pane a row of a comparison
 */

/** @type {{ [type: string]: string }} */
const handlers = { ADDED: "OnAdd", MODIFIED: "OnUpdate", DELETED: "OnDelete" };

// lineOf returns the request line, which a request and its answer share.
/** @param {Texts} texts */
const lineOf = ({ method, path, query = "" } = {}) => `${method} ${path}?${query}`;

// Heard collects facts from a story's records that the folded state does not have.
class Heard {
  /** @param {string} resource the resource on stage @param {Stream[]} streams those open before the story */
  constructor(resource, streams) {
    this.resource = resource;
    this.streams = new Map(streams.map((stream) => [stream.id, stream])); // the cast's streams, the newest last
    /** @type {Map<string, { by: string, t: number }[]>} */
    this.asking = new Map(); // by request: the clients that wait for its answer, each with the time it asked
    /** @type {Map<string, number>} */
    this.intervals = new Map(); // by watcher: the number of events from the ring
    /** @type {Map<string, string>} */
    this.stalled = new Map(); // by client: "stall", "cut", or "" if neither
    /** @type {Map<string, string[]>} */
    this.popped = new Map(); // by informer: the versions popped from its queue
    /** @type {Map<string, string>} */
    this.calls = new Map(); // the newest call, by handler
    /** @type {Map<string, string>} */
    this.delays = new Map(); // the delay, by handler
    this.asks = this.gets = this.waited = ""; // texts of the newest request
    this.served = ""; // the version of the newest list
    this.listed = "0"; // the version of the story's newest list
    this.etcd = this.etcd3 = "";
    this.refused = ""; // the id of the refused watch, which has no watcher
    this.closed = 0; // the number of streams closed in this beat
    /** @type {Set<string | undefined>} */
    this.sent = new Set(); // the versions sent to clients with a pin
    /** @type {Map<string, string>} */
    this.dropped = new Map(); // by pod: the listener whose handler was called for the pod's deletion
    /** @type {Set<string>} */
    this.gone = new Set(); // the field selectors of watches refused with 410
    this.ended = false; // whether a server has ended
    this.syncs = 0; // the number of resyncs
    /** @type {Map<string, string[]>} */
    this.held = new Map(); // by reflector: the pods that it has received, after a "" if it listed them
    /** @type {Map<number | undefined, string>} */
    this.agents = new Map(); // each request's client, by the seq of the request's record
    /** @type {{ by: string, kind: string, rv: string }[]} */
    this.writes = []; // the writes to the story's objects
  }
}

// StoryView is a story's additions up to the current beat, which begins at the record from.
export class StoryView {
  /** @param {Scene} scene @param {Story} story @param {probe.Record[]} records @param {number} from */
  constructor(scene, story, records, from) {
    this.scene = scene;
    this.story = story;
    this.cast = story.cast ?? [];
    this.own = new RegExp(`/${story.id}-(\\w+)$`);
    this.from = from;
    this.first = records[0]?.seq ?? 0;
    this.names = this.namesIn(records);
    this.notable = records.filter((r) => r.point in hears);
    /** @type {Member[]} */
    this.members = [];
    /** @type {Pane[]} */
    this.panes = [];
    this.now = new Heard("", []);
    const { geometry: { ghost, panes } } = scene;
    const compares = (story.several && story.pod)
      || records.some(({ subject = "" }) => /^informer-(delta|list)$/.test(subject));
    const other = this.cast.some((member) => member.other) || records.some((r) => r.point === "CacherStopped");
    this.beside = [...(compares ? [panes] : []), ...(other ? [ghost] : [])]; // the boxes of the added drawings
    callOwn(`${story.id}-`);
  }

  // namesIn returns names for the versions of the story's pods: "b", then "b1", "b2"; pod a's may be in story.versions.
  /** @param {probe.Record[]} records */
  namesIn(records) {
    /** @type {Map<string, string>} */
    const names = new Map();
    /** @type {Map<string, number>} */
    const changes = new Map(); // the number of changes, by pod
    for (const r of records) {
      const [, pod] = (r.point === "RingAppend" && this.own.exec(r.key ?? "")) || [];
      if (!pod || !r.rv) continue;
      const n = changes.get(pod) ?? (r.type === "ADDED" ? 0 : 1);
      changes.set(pod, n + 1);
      const plain = n > 0 ? `${pod}${n}` : pod;
      names.set(r.rv, pod === "a" ? (this.story.versions?.[n] ?? plain) : plain);
    }
    return names;
  }

  /** @param {Texts} texts */
  wants(texts) { return this.cast.some(({ is }) => saying(is, texts)); }

  // at computes the story's additions from its records up to seq.
  /** @param {fold.Resource} res @param {number} seq @param {string} resource */
  at(res, seq, resource) {
    const streams = Object.entries(res.subjects).filter(([, s]) => s.kind === "watcher" && s.opened < this.first)
      .map(([id, s]) => streamOf(id, s.texts.WireOpened ?? s.texts.WatcherAdded ?? {}, s.began));
    this.now = new Heard(resource, streams.filter(({ texts }) => this.wants(texts)));
    for (const r of this.notable) {
      if (r.seq > seq) break;
      hears[r.point]?.(this, r, this.now.streams.get(r.subject || this.now.refused));
    }
    this.members = this.cast.map((member) => seenOf(this, member, res));
    this.panes = panesOf(this, res);
  }

  // missing returns the pods that the informer has dropped and, if the beat lights both stores, those that it lacks.
  /** @param {fold.Row[]} known */
  missing(known) {
    const { scene, now } = this;
    const compares = ["store", "indexer"].every((name) => scene.station(name).classList.contains("bright"));
    const own = scene.store.filter(({ key }) => compares && this.own.test(key)).map(({ key }) => objectKey(key));
    const dropped = [...now.dropped.keys()]
      .filter((key) => scene.places.listeners.lanes.has(now.dropped.get(key) ?? ""));
    return [...new Set([...dropped, ...own])].filter((key) => !known.some((each) => objectKey(each.key) === key))
      .map((key) => ({ key, rv: "0", look: dropped.includes(key) ? "struck" : "lacks" }));
  }

  // draw writes the flags of the cast, and the story's other additions.
  draw() {
    const { scene: { geometry: { lane } }, members } = this;
    const flags = pool($("#cast"), members.length, () => made("cast-member"));
    members.forEach((member, i) => {
      const el = flags[i];
      put(el, "data-cast", member.name);
      put(el, "transform", `translate(0 ${(lane.room - 1 - i) * lane.height})`);
      mark(el, "alarm", member.alarm);
      mark(el, "bare", !member.subject);
      drawFlag(el, member);
    });
    this.drawGhost(members.find(({ other }) => other));
    this.drawPanes();
    const again = part(this.scene.root, ".resync");
    put(again, "visibility", this.now.syncs ? "visible" : "hidden");
    say(part(again, "text"), `${this.now.syncs} × from its copy`);
  }

  // drawPanes compares clients, queues or kinds, one in a row, in the place of stations that these stories do not use.
  drawPanes() {
    const { scene: { root }, panes } = this;
    mark(root, "paned", panes.length > 0);
    const rows = pool(part(root, ".panes .rows"), panes.length, () => made("pane"));
    panes.forEach(({ name, chips }, i) => {
      put(rows[i], "transform", `translate(58 ${360 + (i * 170) / panes.length})`);
      say(part(rows[i], ".title"), name);
      const cells = pool(part(rows[i], ".chips"), chips.length, () => made("chip"));
      chips.forEach(({ text, look, at }, n) => {
        put(cells[n], "transform", `translate(${at * 66} 20)`);
        put(cells[n], "class", look);
        say(part(cells[n], "text"), text);
      });
    });
  }

  // drawGhost shows another server: one that has ended, or where a client watched first, with its version from there.
  /** @param {Member | undefined} away */
  drawGhost(away) {
    const el = part(this.scene.root, ".ghost");
    const ended = away ? !away.word.startsWith("at ") : this.now.ended;
    put(el, "visibility", away || ended ? "visible" : "hidden");
    mark(el, "ended", ended);
    say(part(el, ".title"), away ? `server ${away.other}` : "old server");
    say(part(el, ".value"), away?.first ?? "");
  }

  leave() {
    callOwn("");
    this.now = new Heard("", []);
    this.panes = [];
    this.draw();
    this.drawGhost(undefined);
    pool($("#cast"), 0, () => made("cast-member"));
  }
}

/** @typedef {(t: StoryView, r: probe.Record, stream: Stream | undefined) => void} Hear */

// hears maps a point to the function that adds its record to Heard.
/** @type {{ [point in probe.PointName]?: Hear }} */
const hears = {
  WatcherAdded: opens, WireOpened: opens, WatcherRemoved: ends, FrameWritten: says,
  ResultSent: (t, r, stream) => { // without a connection there are no frames, only events in the channel result
    if (!stream?.wire) says(t, r, stream);
  },
  WatcherForced(t, r, stream) {
    if (stream) stream.forced = true;
    ends(t, r, stream);
  },
  WireClosed(t, r, stream) {
    if (r.resource === t.now.resource && r.seq > t.from) t.now.closed++;
    ends(t, r, stream);
  },
  WatcherInterval: ({ now }, r) => now.intervals.set(r.subject ?? "", r.args?.[0] ?? 0),
  HandlerCalled: calls, HandlerReturned: calls,
  WatchChanError(t, r) { t.now.etcd3 = r.texts?.reason === "Expired" ? "compacted" : "error"; },
  KnobTurned: turned,
  ListServed({ now }, r) { now.served = r.rv ?? ""; },
  FIFOPopped({ now: { popped }, names }, { subject = "", rv = "" }) {
    const out = popped.get(subject) ?? [];
    const name = names.get(rv) ?? "";
    popped.set(subject, /\d$/.test(name) ? [...out, name] : out);
  },
  RequestReceived(t, r) {
    const [line, by] = [lineOf(r.texts), r.texts?.agent ?? ""];
    t.now.asking.set(line, [...(t.now.asking.get(line) ?? []), { by, t: r.t }]);
    const own = by === "listwatch-controllers" && r.texts?.method === "PUT"; // the write of a status
    const name = by.startsWith("story-") ? "kubectl" : agentOf(by).replace(/^listwatch-|-node-\d+$/g, "");
    if (!own) t.now.agents.set(r.seq, name);
    Object.assign(t.now, asked(t, r.texts), { waited: "" });
  },
  RequestAnswered: answered,
  CacherStopped({ now }, r) {
    if (r.resource !== now.resource) return;
    now.ended = true;
    now.sent.clear(); // the next server may give these versions to other changes
  },
  FIFOAdded({ now }, r) { if (r.type === "SyncAll") now.syncs++; },
  ReflectorListed({ now }, r) { now.held.set(r.subject ?? "", [""]); },
  ReflectorReceived({ now: { held }, own }, { subject = "", key = "" }) {
    if (own.test(key)) held.set(subject, [...(held.get(subject) ?? []), shortKey(key)]);
  },
  TxnCommitted({ now, story }, { key = "", resource: kind = "", rv = "", args }) {
    const by = now.agents.get(args?.[0]);
    if (by && story.several && key.includes(`/${story.pod}`)) now.writes.push({ by, kind, rv });
  },
};

/** @type {Hear} */
function says({ now, cast }, r, stream) {
  if (!stream) return;
  stream.said = r;
  if (cast.some(({ pin, is }) => pin && saying(is, stream.texts)) && r.key) now.sent.add(r.rv);
}

/** @type {Hear} */
function ends(_, _r, stream) {
  if (stream) stream.closed = true;
}

/** @type {Hear} */
function calls(t, r) {
  if (r.type === "DELETED" && t.own.test(r.key ?? "")) t.now.dropped.set(objectKey(r.key ?? ""), r.subject ?? "");
  t.now.calls.set(r.subject ?? "", `${handlers[r.type ?? ""]} ${t.names.get(r.rv ?? "") ?? ""}`.trim());
}

/** @type {Hear} */
function opens(t, r) {
  const opened = streamOf(r.subject || `refused ${r.seq}`, r.texts ?? {}, r.rv);
  if (!r.subject) {
    t.now.refused = opened.id;
    t.now.gone.add(new URLSearchParams(r.texts?.query).get("fieldSelector") ?? "none");
  }
  t.now.streams.delete(opened.id); // moves it to the end, as the newest
  if (t.wants(opened.texts)) t.now.streams.set(opened.id, opened);
}

/** @type {Hear} */
function turned(t, r) {
  const { name: knob = "", target = "", value = "" } = r.texts ?? {};
  if (/^line\.(stall|cut)$/.test(knob)) t.now.stalled.set(target, value === "true" ? knob.slice(5) : "");
  if (knob === "handler.delay") t.now.delays.set(target, value);
  if (knob === "etcd.compact") t.now.etcd = "compacted";
}

/** @type {Hear} */
function answered(t, r) {
  const query = new URLSearchParams(r.texts?.query);
  const { now } = t;
  const waiting = now.asking.get(lineOf(r.texts)) ?? [];
  const one = new Set(waiting.map(({ by }) => by)).size === 1; // two clients with the same request cannot be told apart
  const asker = (one && waiting.pop()) || { by: "", t: r.t };
  const seconds = query.has("watch") ? 0 : (r.t - asker.t) / 1e9;
  const status = r.args?.[0] ?? 0;
  const waited = seconds > 0.5 ? `waited ${seconds.toFixed(1)} s` : "";
  Object.assign(now, asked(t, r.texts, status), { waited });
  if (query.get("labelSelector") !== `story=${t.story.id}` || query.has("watch")) return;
  const rv = now.served; // the list's version
  now.gets = status === 200 && rv ? `→ ${(t.story.versions && t.names.get(rv)) || rv}` : "";
  if (now.gets) now.listed = rv;
}

// asked returns the HTTP box's texts for a request; status is 0 until the answer.
/** @param {StoryView} t @param {Texts} texts @param {number} [status] */
function asked(t, texts, status = 0) {
  const { method, path = "", query: search, version: since = "" } = texts ?? {};
  const query = new URLSearchParams(search);
  const [, kind = ""] = /^\/apis(?:\/[^/]+){2}(?:\/namespaces\/[^/]+)?\/(\w+)/.exec(path) ?? [];
  if (method === "GET" && t.own.test(path)) return { asks: "one by name", gets: status === 200 ? "from etcd" : "" };
  if (query.has("watch")) return { asks: "a watch", gets: Number(since) > 0 ? `from ${since}` : "" };
  if (kind) return { asks: kind, gets: "" };
  if (!query.get("labelSelector")?.includes(`story=${t.story.id}`)) return { asks: "", gets: "" };
  return { asks: since ? `version ${since}` : "no version", gets: "" };
}

// streamOf returns the stream of a request with these texts, or of a watcher without a connection.
/** @param {string} id @param {NonNullable<Texts>} texts @param {string} [rv] @returns {Stream} */
function streamOf(id, texts, rv = "0") {
  const { agent = "", prefix, labels = "", fields = "", version } = texts;
  const wire = prefix === undefined;
  const who = wire ? agent.split(" ")[0] : `${prefix} ${labels} ${fields}`;
  return { id, texts, began: version ?? rv, resumes: Number(version) > 0, wire, who };
}

// panesOf returns the rows of a story that compares two queues, list with watch-list, or the writes to several kinds.
/** @param {StoryView} t @param {fold.Resource} res @returns {Pane[]} */
function panesOf({ now: { popped, held, writes }, names, members }, res) {
  if (writes.length > 0) return [...new Set(writes.map(({ kind }) => kind))].map((name) => ({
    name, chips: writes.map(({ by, kind }, at) => ({ text: by, look: "held", at, kind }))
      .filter(({ kind }) => kind === name),
  }));
  const ways = members.map(({ name, client = "" }) => ({ name, pods: held.get(client) ?? [] }));
  if (ways.some(({ pods }) => pods[0] === "")) return ways.map(({ name, pods }) => {
    const all = pods[0] === ""; // whether they came in a list
    const chips = (all ? [...names.values()] : pods)
      .map((text, at, { length }) => ({ text, look: all || at === length - 1 ? "held" : "out", at }));
    return { name: `${name}: holds ${all ? `${chips.length} pods at once` : "one pod at a time"}`, chips };
  });
  return ["RealFIFO", "DeltaFIFO"].flatMap((name) => {
    const id = `informer-${name.slice(0, -4).toLowerCase()}`;
    const tokens = res.subjects[id]?.queues.fifo?.tokens;
    const waits = tokens?.map(({ rv }) => names.get(rv) ?? "").filter((each) => /\d$/.test(each)) ?? [];
    if (name === "DeltaFIFO") waits.sort((a, b) => a.charCodeAt(0) - b.charCodeAt(0)); // it has one entry for each pod
    const out = popped.get(id) ?? [];
    const chips = [...out, ...waits]
      .map((text, at) => ({ text, at, look: `${at < out.length ? "out" : "held"} of-${text[0]}` }));
    return tokens ? [{ name, chips }] : [];
  });
}

// seenOf returns a member of the cast in its current state.
/** @param {StoryView} t @param {scenario.Member} member @param {fold.Resource} res @returns {Member} */
function seenOf(t, { name, is, nth = 0, pin, other }, res) {
  const { stalled, listed, streams } = t.now;
  const matching = [...streams.values()].filter(({ texts }) => saying(is, texts));
  const agents = [...new Set(matching.map((stream) => stream.who))];
  const who = agents[nth] ?? (is.agent ?? "").replace(/\*$/, ""); // the client may have closed its stream already
  const mine = matching.filter((stream) => stream.who === who);
  const now = mine.at(-1);
  const said = mine.findLast((stream) => stream.said)?.said;
  const ids = [who.replace(/^listwatch-/, ""), name, `informer-${name}`];
  const client = ids.find((id) => reflects(res.subjects[id]));
  const reflector = client === undefined ? undefined : res.subjects[client];
  // A resumed watch begins at its client's version. Only it counts, because events sent before it may have been lost.
  const tells = now?.resumes ? [now] : mine;
  const rv = [
    reflector?.rv, now ? "0" : listed,
    ...tells.flatMap((stream) => [stream.said?.rv, stream.began]),
  ].reduce((/** @type {string} */ best, each) => (each && laterRV(each, best) ? each : best), "0");
  const open = Boolean(now && res.subjects[now.id] && !now.closed);
  const how = stalled.get(who) ?? "";
  const word = wordOf(t, now, open, how, other && { name: other, reflector });
  const says = isSent(now, reflector, how) ? "is sent" : "knows";
  const knows = word === "no watch" && how === "stall" ? "stalled at" : says;
  return {
    name, pin, subject: now && res.subjects[now.id] ? now.id : "", client, word, rv, open, type: said?.type,
    alarm: now?.said?.type === "ERROR" || Boolean(now?.forced) || how !== "",
    more: rv === "0" ? "" : `${knows} ${rv}`, other, first: now?.began ?? rv,
  };
}

// isSent reports whether the client may lack the last event sent: it has no connection, is stalled or cut, or lags.
/** @param {Stream | undefined} now @param {fold.Subject | undefined} reflector @param {string} how */
function isSent(now, reflector, how) {
  if (!now?.said) return false;
  const behind = now.said.rv && reflector?.rv && laterRV(now.said.rv, reflector.rv);
  return Boolean(behind || !now.wire || how);
}

// wordOf returns words for the state of a client's newest stream. A client without one may watch the other server.
/**
 * @param {StoryView} t @param {Stream | undefined} now @param {boolean} open @param {string} how
 * @param {"" | { name: string, reflector: fold.Subject | undefined } | undefined} other
 */
function wordOf({ now: { intervals } }, now, open, how, other) {
  if (!now) {
    if (!other) return "";
    const ended = ["ReflectorWatchEnded", "ReflectorBackoff"].includes(other.reflector?.last.point ?? "");
    return !ended ? `at server ${other.name}` : "no watch";
  }
  if (now.forced) return "closed";
  if (open && how) return "not reading";
  if (now.said?.type === "ERROR") return "410";
  if (open && now.said) return now.said.type ?? "";
  const replayed = (!now.wire || now.resumes) && intervals.get(now.id);
  return replayed ? `${replayed} from ring` : open ? "watching" : "no watch";
}

// drawFlag writes a member's box: its name, its state or the type of the last event sent, and its version.
/** @param {Element} el @param {Member} member */
function drawFlag(el, { name, word, type, more }) {
  const [, title, knows, , shape, says] = el.children;
  say(title, name);
  const left = 142 - widthOf(word, nameFont); // the width for the name, in units
  put(title, "textLength", widthOf(name, nameFont) > left ? left : null);
  put(shape, "href", `#token-${shapeOf(type)}`);
  put(shape, "visibility", type === word ? "inherit" : "hidden");
  say(knows, more);
  say(says, word);
}
