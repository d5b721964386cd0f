// @ts-nocheck
// Told: what a story puts on the stage beside the machine's own picture. Its clients have the first lanes, in its own
// order and under its own names, each with a flag that says what the client was sent last. A pin at the ring says which
// version a client knows. Versions of the story's pods have names.

import { mark, pool, put, say, widen } from "../dom/dom.js";
import { laterRV } from "../log/fold.js";
import { like, says as saying } from "../log/query.js";
import { made } from "./lanes.js";
import { reflects } from "./places.js";
import { callOwn, shapeOf } from "./tokens.js";

// lineOf is what a request and its answer have in common.
const lineOf = ({ method, path, query = "" }) => `${method} ${path}?${query}`;

const leaseLasts = 3; // s: that of a story's controllers (clients.go)
const handlers = { ADDED: "OnAdd", MODIFIED: "OnUpdate", DELETED: "OnDelete" };

// newTold takes a story, its records up to the beat that is told, and where that beat begins.
/**
 * @param {import("./scene.js").Scene} scene
 * @param {{ id: string, cast?: scenario.Member[], versions?: string[] }} story
 * @param {probe.Record[]} records @param {number} from
 * @returns {import("./scene.js").Told}
 */
export function newTold(scene, story, records, from) {
  const own = new RegExp(`/${story.id}-(\\w+)$`);
  const cast = story.cast ?? [];
  const wanted = (texts) => cast.some(({ is }) => saying(is, texts));
  const names = new Map(); // by version
  const first = records[0]?.seq ?? 0;
  const t = { names, from, members: [], at, draw };
  const changes = new Map(); // by pod
  for (const r of records) {
    const [, pod] = (r.point === "RingAppend" && own.exec(r.key)) || [];
    if (!pod) continue;
    const n = changes.get(pod) ?? (r.type === "ADDED" ? 0 : 1);
    changes.set(pod, n + 1);
    const plain = n > 0 ? `${pod}${n}` : pod;
    names.set(r.rv, pod === "a" ? (story.versions?.[n] ?? plain) : plain);
  }
  callOwn(`${story.id}-`);

  let heard; // what the records up to a moment say beside the picture

  const says = (r, stream) => stream && (stream.said = r);
  const ends = (r, stream) => stream && (stream.closed = true);
  const calls = (r) => t.calls.set(r.subject, `${handlers[r.type]} ${names.get(r.rv) ?? ""}`.trim());
  // hears is what each record of the story says, of the stream that it is about.
  const hears = {
    WatcherAdded: opens, WireOpened: opens, WatcherRemoved: ends,
    ResultSent: (r, stream) => !stream?.wire && says(r, stream), // without a connection it has what is in its result
    FrameWritten: says,
    WatcherForced(r, stream) {
      if (stream) stream.forced = true;
      ends(r, stream);
    },
    WireClosed(r, stream) {
      if (r.resource === heard.resource && r.seq > from) t.closed++;
      ends(r, stream);
    },
    WatcherInterval: (r) => heard.intervals.set(r.subject, r.args?.[0]),
    HandlerCalled: calls, HandlerReturned: calls,
    WatchChanError: (r) => (t.etcd3 = r.texts?.reason === "Expired" ? "compacted" : "error"),
    KnobTurned: (r) => turned(r.texts ?? {}),
    ListServed: (r) => (heard.served = r),
    FIFOPopped(r) {
      const out = t.popped.get(r.subject) ?? [];
      t.popped.set(r.subject, /\d$/.test(names.get(r.rv) ?? "") ? [...out, names.get(r.rv)] : out);
    },
    TxnCommitted: (r) => r.resource === "leases" && Object.assign(t, { lease: r.rv, renewed: r.t }),
    RequestReceived(r) {
      const line = lineOf(r.texts);
      heard.asking.set(line, [...(heard.asking.get(line) ?? []), { by: r.texts.agent ?? "", t: r.t }]);
      Object.assign(t, asked(r.texts, r.texts.agent ?? ""), { waited: "" });
    },
    RequestAnswered(r) {
      const query = new URLSearchParams(r.texts.query);
      const waiting = heard.asking.get(lineOf(r.texts)) ?? [];
      const one = new Set(waiting.map(({ by }) => by)).size === 1; // of two that ask the same it is not known
      const asker = (one && waiting.pop()) || { by: "", t: r.t };
      const seconds = query.has("watch") ? 0 : (r.t - asker.t) / 1e9;
      const waited = seconds > 0.5 ? `waited ${seconds.toFixed(1)} s` : "";
      Object.assign(t, asked(r.texts, asker.by, r.args?.[0]), { waited });
      if (query.get("labelSelector") === `story=${story.id}` && !query.has("watch")) answered(r, query);
    },
  };
  const notable = records.filter((r) => hears[r.point]);

  function opens(r) {
    const opened = streamOf(r.subject || `refused ${r.seq}`, r.texts ?? {}, r.rv);
    if (!r.subject) heard.refused = opened.id;
    heard.streams.delete(opened.id); // it is the newest
    if (wanted(opened.texts)) heard.streams.set(opened.id, opened);
  }

  // at makes the story's part of the picture: what its records up to seq say.
  function at(res, seq, resource) {
    const streams = Object.entries(res.subjects).filter(([, s]) => s.kind === "watcher" && s.opened < first)
      .map(([id, s]) => streamOf(id, s.texts.WireOpened ?? s.texts.WatcherAdded ?? {}, s.began))
      .filter(({ texts }) => wanted(texts));
    heard = {
      resource, streams: new Map(streams.map((stream) => [stream.id, stream])),
      asking: new Map(), // by request: who waits for its answer, and since when
      intervals: new Map(), // by watcher: what it got from the ring
      stalled: new Map(), // by client: how
      leaders: new Set(), // members that have had the lease
      served: null, listed: "0",
      refused: "", // the client whose watch was refused: it has no watcher
    };
    Object.assign(t, {
      popped: new Map(), calls: new Map(), delays: new Map(), asks: "", gets: "", waited: "", snapshot: null, etcd: "",
      etcd3: "", leader: "", closed: 0, lease: "", holder: "", kind: resource === "pods" ? "" : resource,
    });
    for (const r of notable) {
      if (r.seq > seq) break;
      hears[r.point](r, heard.streams.get(r.subject || heard.refused));
    }
    t.members = cast.map((member) => seenOf(member, [...heard.streams.values()], res));
  }

  // streamOf is a stream of the client that says texts of itself, or a watcher that has no connection.
  function streamOf(id, texts, rv = "0") {
    const { agent, prefix, labels = "", fields = "", version } = texts;
    const wire = prefix === undefined;
    const who = wire ? (agent ?? "").split(" ")[0] : `${prefix} ${labels} ${fields}`;
    return { id, texts, began: version ?? rv, resumes: version > 0, wire, who };
  }

  function turned({ name: knob, target = "", value = "" }) {
    if (knob === "line.stall" || knob === "line.cut") {
      heard.stalled.set(target, value === "true" && knob.slice(5));
    }
    if (knob === "handler.delay") t.delays.set(target, value);
    if (knob === "etcd.compact") t.etcd = "compacted";
  }

  // asked returns what the HTTP box says of a request, once it is answered with its status. Who has written a lease
  // holds it.
  function asked({ method, path, query: search, version: since = "" }, by, status) {
    const query = new URLSearchParams(search);
    const [, kind = ""] = /^\/apis(?:\/[^/]+){2}(?:\/namespaces\/[^/]+)?\/(\w+)/.exec(path) ?? [];
    if (kind === "leases") {
      const member = cast.find(({ is }) => is.agent && like(is.agent, by))?.name ?? "";
      if (member && method !== "GET" && status < 300) heard.leaders.add((t.holder = member));
      return { asks: member && `from ${member}`, gets: "" };
    }
    if (method === "GET" && own.test(path)) return { asks: "one by name", gets: status === 200 ? "from etcd" : "" };
    if (query.has("watch")) return { asks: "a watch", gets: since > 0 ? `from ${since}` : "" };
    if (kind) return { asks: kind, gets: "" };
    if (!query.get("labelSelector")?.includes(`story=${story.id}`)) return { asks: "", gets: "" };
    const exact = query.get("resourceVersionMatch") === "Exact";
    return { asks: !since ? "no version" : exact ? `exactly ${since}` : `version ${since}`, gets: "" };
  }

  // answered notes what a list of the story got.
  function answered(r, query) {
    const { rv } = heard.served ?? {};
    t.gets = r.args?.[0] === 200 && rv ? `→ ${(story.versions && names.get(rv)) || rv}` : "";
    if (!t.gets) return;
    t.snapshot = query.get("resourceVersionMatch") === "Exact" ? rv : null;
    heard.listed = rv;
  }

  // seenOf is a member of the cast as it stands.
  function seenOf({ name, is, nth = 0, pin, other }, streams, res) {
    const { stalled, listed } = heard;
    const matching = streams.filter(({ texts }) => saying(is, texts));
    const agents = [...new Set(matching.map((stream) => stream.who))];
    const who = agents[nth] ?? (is.agent ?? "").replace(/\*$/, ""); // it may have closed its stream before
    const mine = matching.filter((stream) => stream.who === who);
    const now = mine.at(-1);
    const said = mine.findLast((stream) => stream.said)?.said;
    const ids = [who.replace(/^listwatch-/, ""), name, `informer-${name}`];
    const client = ids.find((id) => reflects(res.subjects[id]));
    const reflector = res.subjects[client];
    const elsewhere = other && !["ReflectorWatchEnded", "ReflectorBackoff"].includes(reflector?.last.point);
    // Who resumes says what it knows: what it was sent before may be lost.
    const tells = now?.resumes ? [now] : mine;
    const rv = [
      reflector?.rv, now ? "0" : listed,
      ...tells.flatMap((stream) => [stream.said?.rv, stream.began]),
    ].reduce((best, each) => (each && laterRV(each, best) ? each : best), "0");
    const open = now && res.subjects[now.id] && !now.closed;
    const gone = now?.said?.type === "ERROR";
    const replayed = now && (!now.wire || now.resumes) && heard.intervals.get(now.id);
    const word = now?.forced ? "closed" : open && stalled.get(who) ? "not reading" : gone ? "410" : open && now.said
      ? now.said.type : replayed ? `${replayed} from ring` : open ? "watching" : now ? "no watch"
      : elsewhere ? `at server ${other}` : other ? "no watch" : "";
    const alarm = gone || now?.forced || Boolean(stalled.get(who));
    // What is sent is not known yet: it stands in the result of a client without a connection, or in the network's
    // buffers, or the reflector has not received it.
    const behind = now?.said?.rv && reflector?.rv && laterRV(now.said.rv, reflector.rv);
    const says = now?.said && (behind || !now.wire || stalled.get(who)) ? "is sent" : "knows";
    const knows = word === "no watch" && stalled.get(who) === "stall" ? "stalled at" : says;
    const subject = res.subjects[now?.id] ? now.id : "";
    const version = rv !== "0" && knows ? `${knows} ${rv}` : "";
    const more = leaseOf(name) || version;
    return { name, pin, subject, client, word, alarm, rv, open, type: said?.type, more };
  }

  // leaseOf says how long who leads may lead, and that who led may not any more.
  function leaseOf(name) {
    const left = leaseLasts - (scene.now - t.renewed) / 1e9;
    if (name === t.holder && left > 0) return `lease: ${left.toFixed(1)} s`;
    return heard.leaders.has(name) ? "lease expired" : "";
  }

  // draw writes the flags of the cast.
  function draw() {
    const flags = pool(scene.root.querySelector("#cast"), t.members.length, () => made("cast-member"));
    t.members.forEach(({ name, subject, word, alarm, rv, type, more }, i) => {
      const el = flags[i];
      const { height } = scene.geometry.lane;
      put(el, "data-cast", name);
      put(el, "transform", `translate(0 ${i * height})`);
      mark(el, "alarm", alarm);
      mark(el, "bare", !subject);
      const [title, cloth] = el.children;
      say(title, name);
      put(cloth, "transform", `translate(${scene.geometry.flag[scene.tall ? "tall" : "wide"].join(" ")})`);
      put(cloth, "visibility", word ? "visible" : "hidden");
      const [box, shape, first, second] = cloth.children;
      put(box, "height", scene.tall ? 18 : 33); // there is room for one line
      put(box, "width", scene.tall ? 97 : 84);
      const token = type && type === word;
      put(shape, "href", `#token-${shapeOf(type)}`);
      put(shape, "visibility", token ? "inherit" : "hidden");
      put(first, "x", token ? 15 : 5);
      say(first, scene.tall && token ? rv : word);
      widen(first, token && word === "BOOKMARK" ? 64 : 0);
      say(second, scene.tall ? "" : more);
      widen(second, more.length > 11 ? 75 : 0);
    });
  }

  t.leave = () => {
    callOwn("");
    pool(scene.root.querySelector("#cast"), 0);
  };
  return t;
}
