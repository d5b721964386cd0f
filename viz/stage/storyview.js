// StoryView: what a story puts on the stage beside the machine's own picture. Its clients have the first lanes, in its
// own order and under its own names, each with a flag that says what the client was sent last. A pin at the ring says
// which version a client knows. Versions of the story's pods have names.

import { $, mark, pool, put, say, widen } from "../dom/dom.js";
import { laterRV } from "../log/fold.js";
import { like, says as saying } from "../log/query.js";
import { made } from "./lanes.js";
import { reflects } from "./places.js";
import { callOwn, shapeOf } from "./tokens.js";

/**
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {probe.Record["texts"]} Texts
 * @typedef {object} Member of the cast of a story, as it stands
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
 * @typedef {object} Stream of a client, or a watcher that has no connection
 * @property {string} id of its watcher, or of a request that was refused
 * @property {NonNullable<Texts>} texts what it says of itself
 * @property {string} began the version from which it watches
 * @property {boolean} resumes
 * @property {boolean} wire
 * @property {string} who its client
 * @property {probe.Record} [said] what it was sent last
 * @property {boolean} [closed]
 * @property {boolean} [forced]
 * @typedef {{ id: string, cast?: scenario.Member[], versions?: string[] }} Story
 */

const leaseLasts = 3; // s: that of a story's controllers (clients.go)
/** @type {{ [type: string]: string }} */
const handlers = { ADDED: "OnAdd", MODIFIED: "OnUpdate", DELETED: "OnDelete" };

// lineOf is what a request and its answer have in common.
/** @param {Texts} texts */
const lineOf = ({ method, path, query = "" } = {}) => `${method} ${path}?${query}`;

// Heard is what the records up to a moment say beside the picture.
class Heard {
  /** @param {string} resource on stage @param {Stream[]} streams that were open before the story */
  constructor(resource, streams) {
    this.resource = resource;
    this.kind = resource === "pods" ? "" : resource;
    this.streams = new Map(streams.map((stream) => [stream.id, stream])); // of the cast, the newest last
    /** @type {Map<string, { by: string, t: number }[]>} */
    this.asking = new Map(); // by request: who waits for its answer, and since when
    /** @type {Map<string, number>} */
    this.intervals = new Map(); // by watcher: what it got from the ring
    /** @type {Map<string, string>} */
    this.stalled = new Map(); // by client: how
    /** @type {Map<string, string[]>} */
    this.popped = new Map(); // by queue: versions
    /** @type {Map<string, string>} */
    this.calls = new Map(); // by handler: the newest one
    /** @type {Map<string, string>} */
    this.delays = new Map(); // by handler
    /** @type {Set<string>} */
    this.leaders = new Set(); // members that have had the lease
    this.lease = this.holder = "";
    this.renewed = 0; // ns
    this.asks = this.gets = this.waited = ""; // of the newest request
    this.served = this.snapshot = ""; // versions of lists: the newest one, and an exact one of the story
    this.listed = "0"; // … the newest one of the story
    this.etcd = this.etcd3 = "";
    this.refused = ""; // the client whose watch was refused: it has no watcher
    this.closed = 0; // streams, in this beat
  }
}

// StoryView is what a story adds, up to the beat that is told and that begins at from.
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
    this.now = new Heard("", []);
    callOwn(`${story.id}-`);
  }

  // namesIn names the versions of the story's pods.
  /** @param {probe.Record[]} records */
  namesIn(records) {
    /** @type {Map<string, string>} */
    const names = new Map();
    /** @type {Map<string, number>} */
    const changes = new Map(); // by pod
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

  // at makes the story's part of the picture: what its records up to seq say.
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
  }

  // leaseOf says how long who leads may lead, and that who led may not any more.
  /** @param {string} name */
  leaseOf(name) {
    const left = leaseLasts - (this.scene.now - this.now.renewed) / 1e9;
    if (name === this.now.holder && left > 0) return `lease: ${left.toFixed(1)} s`;
    return this.now.leaders.has(name) ? "lease expired" : "";
  }

  // draw writes the flags of the cast.
  draw() {
    const { scene: { geometry, tall }, members } = this;
    const flags = pool($("#cast"), members.length, () => made("cast-member"));
    members.forEach((member, i) => {
      const el = flags[i];
      put(el, "data-cast", member.name);
      put(el, "transform", `translate(0 ${i * geometry.lane.height})`);
      mark(el, "alarm", member.alarm);
      mark(el, "bare", !member.subject);
      drawFlag(el, member, tall, geometry.flag);
    });
  }

  leave() {
    callOwn("");
    pool($("#cast"), 0, () => made("cast-member"));
  }
}

/** @typedef {(t: StoryView, r: probe.Record, stream: Stream | undefined) => void} Hear */

// hears is what each record of the story says, of the stream that it is about.
/** @type {{ [point in probe.PointName]?: Hear }} */
const hears = {
  WatcherAdded: opens, WireOpened: opens, WatcherRemoved: ends, FrameWritten: says,
  ResultSent: (t, r, stream) => { // without a connection it has what is in its result
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
  TxnCommitted(t, r) {
    if (r.resource === "leases") [t.now.lease, t.now.renewed] = [r.rv ?? "", r.t];
  },
  RequestReceived(t, r) {
    const [line, by] = [lineOf(r.texts), r.texts?.agent ?? ""];
    t.now.asking.set(line, [...(t.now.asking.get(line) ?? []), { by, t: r.t }]);
    Object.assign(t.now, asked(t, r.texts, by), { waited: "" });
  },
  RequestAnswered: answered,
};

/** @type {Hear} */
function says(_, r, stream) {
  if (stream) stream.said = r;
}

/** @type {Hear} */
function ends(_, _r, stream) {
  if (stream) stream.closed = true;
}

/** @type {Hear} */
function calls(t, r) {
  t.now.calls.set(r.subject ?? "", `${handlers[r.type ?? ""]} ${t.names.get(r.rv ?? "") ?? ""}`.trim());
}

/** @type {Hear} */
function opens(t, r) {
  const opened = streamOf(r.subject || `refused ${r.seq}`, r.texts ?? {}, r.rv);
  if (!r.subject) t.now.refused = opened.id;
  t.now.streams.delete(opened.id); // it is the newest
  if (t.wants(opened.texts)) t.now.streams.set(opened.id, opened);
}

/** @type {Hear} */
function turned(t, r) {
  const { name: knob = "", target = "", value = "" } = r.texts ?? {};
  if (knob === "line.stall" || knob === "line.cut") {
    t.now.stalled.set(target, value === "true" ? knob.slice(5) : "");
  }
  if (knob === "handler.delay") t.now.delays.set(target, value);
  if (knob === "etcd.compact") t.now.etcd = "compacted";
}

/** @type {Hear} */
function answered(t, r) {
  const query = new URLSearchParams(r.texts?.query);
  const { now } = t;
  const waiting = now.asking.get(lineOf(r.texts)) ?? [];
  const one = new Set(waiting.map(({ by }) => by)).size === 1; // of two that ask the same it is not known
  const asker = (one && waiting.pop()) || { by: "", t: r.t };
  const seconds = query.has("watch") ? 0 : (r.t - asker.t) / 1e9;
  const status = r.args?.[0] ?? 0;
  const waited = seconds > 0.5 ? `waited ${seconds.toFixed(1)} s` : "";
  Object.assign(now, asked(t, r.texts, asker.by, status), { waited });
  if (query.get("labelSelector") !== `story=${t.story.id}` || query.has("watch")) return;
  const rv = now.served; // what the list got
  now.gets = status === 200 && rv ? `→ ${(t.story.versions && t.names.get(rv)) || rv}` : "";
  if (!now.gets) return;
  now.snapshot = query.get("resourceVersionMatch") === "Exact" ? rv : "";
  now.listed = rv;
}

// asked returns what the HTTP box says of a request, once it is answered with its status. Who has written a lease
// holds it.
/** @param {StoryView} t @param {Texts} texts @param {string} by @param {number} [status] */
function asked(t, texts, by, status = 0) {
  const { method, path = "", query: search, version: since = "" } = texts ?? {};
  const query = new URLSearchParams(search);
  const [, kind = ""] = /^\/apis(?:\/[^/]+){2}(?:\/namespaces\/[^/]+)?\/(\w+)/.exec(path) ?? [];
  if (kind === "leases") {
    const member = t.cast.find(({ is }) => is.agent && like(is.agent, by))?.name ?? "";
    if (member && method !== "GET" && status > 0 && status < 300) t.now.leaders.add((t.now.holder = member));
    return { asks: member && `from ${member}`, gets: "" };
  }
  if (method === "GET" && t.own.test(path)) return { asks: "one by name", gets: status === 200 ? "from etcd" : "" };
  if (query.has("watch")) return { asks: "a watch", gets: Number(since) > 0 ? `from ${since}` : "" };
  if (kind) return { asks: kind, gets: "" };
  if (!query.get("labelSelector")?.includes(`story=${t.story.id}`)) return { asks: "", gets: "" };
  const exact = query.get("resourceVersionMatch") === "Exact";
  return { asks: !since ? "no version" : exact ? `exactly ${since}` : `version ${since}`, gets: "" };
}

// streamOf is a stream of the client that says texts of itself, or a watcher that has no connection.
/** @param {string} id @param {NonNullable<Texts>} texts @param {string} [rv] @returns {Stream} */
function streamOf(id, texts, rv = "0") {
  const { agent = "", prefix, labels = "", fields = "", version } = texts;
  const wire = prefix === undefined;
  const who = wire ? agent.split(" ")[0] : `${prefix} ${labels} ${fields}`;
  return { id, texts, began: version ?? rv, resumes: Number(version) > 0, wire, who };
}

// seenOf is a member of the cast as it stands.
/** @param {StoryView} t @param {scenario.Member} member @param {fold.Resource} res @returns {Member} */
function seenOf(t, { name, is, nth = 0, pin, other }, res) {
  const { stalled, listed, streams } = t.now;
  const matching = [...streams.values()].filter(({ texts }) => saying(is, texts));
  const agents = [...new Set(matching.map((stream) => stream.who))];
  const who = agents[nth] ?? (is.agent ?? "").replace(/\*$/, ""); // it may have closed its stream before
  const mine = matching.filter((stream) => stream.who === who);
  const now = mine.at(-1);
  const said = mine.findLast((stream) => stream.said)?.said;
  const ids = [who.replace(/^listwatch-/, ""), name, `informer-${name}`];
  const client = ids.find((id) => reflects(res.subjects[id]));
  const reflector = client === undefined ? undefined : res.subjects[client];
  // Who resumes says what it knows: what it was sent before may be lost.
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
    more: t.leaseOf(name) || (rv === "0" ? "" : `${knows} ${rv}`),
  };
}

// isSent reports that what was sent is not known yet: it stands in the result of a client without a connection, or in
// the network's buffers, or the reflector has not received it.
/** @param {Stream | undefined} now @param {fold.Subject | undefined} reflector @param {string} how */
function isSent(now, reflector, how) {
  if (!now?.said) return false;
  const behind = now.said.rv && reflector?.rv && laterRV(now.said.rv, reflector.rv);
  return Boolean(behind || !now.wire || how);
}

// wordOf says in a word how a client's newest stream is doing; other is the server that it may have gone to.
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

// drawFlag writes a member's flag.
/**
 * @param {Element} el @param {Member} member @param {boolean} tall @param {stage.Geometry["flag"]} flag where it is
 */
function drawFlag(el, { name, word, type, rv, more }, tall, flag) {
  const [title, cloth] = el.children;
  say(title, name);
  put(cloth, "transform", `translate(${flag[tall ? "tall" : "wide"].join(" ")})`);
  put(cloth, "visibility", word ? "visible" : "hidden");
  const [box, shape, first, second] = cloth.children;
  put(box, "height", tall ? 18 : 33); // there is room for one line
  put(box, "width", tall ? 97 : 84);
  const token = type !== undefined && type === word;
  put(shape, "href", `#token-${shapeOf(type)}`);
  put(shape, "visibility", token ? "inherit" : "hidden");
  put(first, "x", token ? 15 : 5);
  say(first, tall && token ? rv : word);
  widen(first, token && word === "BOOKMARK" ? 64 : 0);
  say(second, tall ? "" : more);
  widen(second, more.length > 11 ? 75 : 0);
}
