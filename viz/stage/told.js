// Told: what a story puts on the stage beside the machine's own picture. Its clients have the first lanes, in its own
// order and under its own names, each with a flag that says what the client was sent last. A pin at the ring says which
// version a client knows. Versions of the story's pods have names.

import { mark, pool, put, say, svg } from "../lib/dom.js";
import { laterRV } from "../log/fold.js";
import { callOwn } from "./pipe.js";
import { shapeOf } from "./tokens.js";

const points = new Set([
  "WatcherAdded", "WireOpened", "FrameWritten", "ResultSent", "WatcherForced", "WatcherRemoved", "WireClosed",
  "KnobTurned", "ListServed", "RequestAnswered", "FIFOPopped", "HandlerCalled", "HandlerReturned", "EtcdLookedAt",
  "WatchChanError", "WatcherInterval", "RequestReceived", "TxnCommitted",
]);

const calls = { ADDED: "OnAdd", MODIFIED: "OnUpdate", DELETED: "OnDelete" };

// newTold takes a story, its records up to the beat that is told, and where that beat begins.
export function newTold(scene, story, records, from) {
  const own = new RegExp(`/${story.id}-(\\w+)$`);
  const cast = (story.cast ?? []).map((member) => ({ ...member, is: new RegExp(member.is) }));
  const wanted = (text) => cast.some(({ is }) => is.test(text));
  const names = new Map(); // by version
  const first = records[0]?.seq ?? 0;
  const notable = records.filter((r) => points.has(r.point));
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

  // at makes the story's part of the picture: what its records up to seq say.
  function at(res, seq, resource) {
    const streams = Object.entries(res.subjects).filter(([, s]) => s.kind === "watcher" && s.opened < first)
      .map(([id, s]) => streamOf(id, s.texts.WireOpened ?? s.texts.WatcherAdded ?? "", s.began))
      .filter(({ text }) => wanted(text));
    const byId = new Map(streams.map((stream) => [stream.id, stream]));
    Object.assign(t, {
      popped: new Map(), calls: new Map(), delays: new Map(), asks: "", gets: "", snapshot: null, etcd: "", etcd3: "",
      closed: 0, lease: "", holder: "",
    });
    const asking = new Map(); // by request: who waits for its answer
    const intervals = new Map(); // by watcher: what it got from the ring
    const stalled = new Set();
    let served = null;
    let listed = "0";
    let refused = ""; // the client whose watch was refused: it has no watcher
    for (const r of notable) {
      if (r.seq > seq) break;
      const id = r.subject || refused;
      const stream = byId.get(id);
      switch (r.point) {
        case "WatcherAdded":
        case "WireOpened": {
          const opened = streamOf(r.subject || `refused ${r.text}`, r.text, r.rv);
          if (!r.subject) refused = opened.id;
          opened.replayed = intervals.get(r.subject);
          const known = streams.indexOf(stream);
          if (known >= 0 && r.subject) streams.splice(known, 1);
          if (wanted(r.text)) byId.set(opened.id, streams[streams.push(opened) - 1]);
          break;
        }
        case "ResultSent":
          if (stream && stream.wire) break;
        // falls through: who has no connection has what is in its result
        case "FrameWritten":
          if (stream) stream.said = r;
          break;
        case "WatcherForced":
          if (stream) stream.forced = true;
        // falls through
        case "WatcherRemoved":
        case "WireClosed":
          if (r.point === "WireClosed" && r.resource === resource && r.seq > from) t.closed++;
          if (stream) stream.closed = true;
          break;
        case "WatcherInterval":
          intervals.set(r.subject, r.args?.[0]);
          break;
        case "HandlerCalled":
        case "HandlerReturned":
          t.calls.set(r.subject, `${calls[r.type]} ${names.get(r.rv) ?? ""}`.trim());
          break;
        case "EtcdLookedAt":
          t.etcd = r.args?.[2] > 0 ? "no leader" : "";
          break;
        case "WatchChanError":
          t.etcd3 = /compacted/.test(r.text) ? "compacted" : "error";
          break;
        case "KnobTurned":
          turned(r.text ?? "", stalled);
          break;
        case "ListServed":
          served = r;
          break;
        case "FIFOPopped":
          if (!t.popped.has(r.subject)) t.popped.set(r.subject, []);
          if (/\d$/.test(names.get(r.rv) ?? "")) t.popped.get(r.subject).push(names.get(r.rv));
          break;
        case "TxnCommitted":
          if (r.resource === "leases") t.lease = r.rv;
          break;
        case "RequestReceived": {
          const [line, by] = r.text.split(" by ");
          asking.set(line, [...(asking.get(line) ?? []), by]);
          Object.assign(t, asked(line, by));
          break;
        }
        case "RequestAnswered": {
          const waiting = asking.get(r.text) ?? [];
          const by = new Set(waiting).size === 1 ? waiting.pop() : ""; // of two that ask the same it is not known
          Object.assign(t, asked(r.text, by, r.args?.[0]));
          if (!r.text.includes(`story%3D${story.id}`) || r.text.includes("watch=")) break;
          listed = answered(r, served) ?? listed;
        }
      }
    }
    t.members = cast.map((member) => seenOf(member, streams, stalled, res, listed));
  }

  // streamOf is a stream of the client that says text of itself.
  function streamOf(id, text, rv = "0") {
    const wire = !text.startsWith("/");
    const asked = /[?&]resourceVersion=(\d+)/.exec(text)?.[1];
    return { id, text, began: asked ?? rv, resumes: asked > 0, wire, who: wire ? text.split(" ")[0] : text };
  }

  function turned(text, stalled) {
    const [, knob, target, value] = /^(\S+)(?: of (\S+))?(?: to (\S+))?/.exec(text) ?? [];
    if (knob === "line.stall" || knob === "line.cut") stalled[value === "true" ? "add" : "delete"](target);
    if (knob === "handler.delay") t.delays.set(target, value);
    if (knob === "etcd.compact") t.etcd = "compacted";
  }

  // asked returns what the HTTP box says of a request, once it is answered with its status. Who has written a lease
  // holds it.
  function asked(line, by, status) {
    const [method, url] = line.split(" ");
    const [path, search] = url.split("?");
    const query = new URLSearchParams(search);
    if (path.includes("/leases")) {
      const member = cast.find(({ is }) => is.test(by))?.name ?? "";
      if (member && method !== "GET" && status < 300) t.holder = member;
      return { asks: member && `from ${member}`, gets: "" };
    }
    if (method === "GET" && own.test(path)) return { asks: "one by name", gets: status === 200 ? "from etcd" : "" };
    const since = query.get("resourceVersion") ?? "";
    if (query.has("watch")) return { asks: "a watch", gets: since > 0 ? `from ${since}` : "" };
    if (!query.get("labelSelector")?.includes(`story=${story.id}`)) return { asks: "", gets: "" };
    const exact = query.get("resourceVersionMatch") === "Exact";
    return { asks: !since ? "no version" : exact ? `exactly ${since}` : `version ${since}`, gets: "" };
  }

  // answered notes what a list of the story got; it returns the version of the answer.
  function answered(r, served) {
    t.gets = r.args?.[0] === 200 && served ? `→ ${(story.versions && names.get(served.rv)) || served.rv}` : "";
    if (!t.gets) return undefined;
    t.snapshot = r.text.includes("resourceVersionMatch=Exact") ? served.rv : null;
    return served.rv;
  }

  // seenOf is a member of the cast as it stands.
  function seenOf({ name, is, nth = 0, pin, other }, streams, stalled, res, listed) {
    const matching = streams.filter(({ text }) => is.test(text));
    const agents = [...new Set(matching.map((stream) => stream.who))];
    const who = agents[nth] ?? /^\^([\w-]+)/.exec(is.source)?.[1] ?? ""; // it may have closed its stream before
    const mine = matching.filter((stream) => stream.who === who);
    const now = mine.at(-1);
    const said = mine.findLast((stream) => stream.said)?.said;
    const reflector = res.subjects[who.replace(/^listwatch-/, "")];
    const elsewhere = other && !["ReflectorWatchEnded", "ReflectorBackoff"].includes(reflector?.last.point);
    const rv = [
      reflector?.rv, now ? "0" : listed,
      // Who resumes says what it knows: what it was sent before may be lost.
      ...(now?.resumes ? [now] : mine).flatMap((stream) => [stream.said?.rv, stream.began]),
    ].reduce((best, each) => (each && laterRV(each, best) ? each : best), "0");
    const open = now && res.subjects[now.id] && !now.closed;
    const gone = now?.said?.type === "ERROR";
    const word = now?.forced ? "closed" : open && stalled.has(who) ? "not reading" : gone ? "410" : open && now.said
      ? now.said.type : now?.replayed ? `${now.replayed} from ring` : open ? "watching" : now ? "no watch"
      : elsewhere ? `at server ${other}` : other ? "no watch" : "";
    const alarm = gone || now?.forced || stalled.has(who);
    // What is sent is not known yet: it stands in the result of a client without a connection, or in the network's
    // buffers, or the reflector has not decoded it.
    const behind = now?.said?.rv && reflector?.rv && laterRV(now.said.rv, reflector.rv);
    const knows = now?.said && (behind || !now.wire || stalled.has(who)) ? "is sent" : "knows";
    const subject = res.subjects[now?.id] ? now.id : "";
    return { name, pin, subject, word, alarm, rv, open, type: said?.type, knows };
  }

  // draw writes the flags of the cast.
  function draw() {
    const flags = pool(scene.root.querySelector("#cast"), t.members.length, flag);
    t.members.forEach(({ name, subject, word, alarm, rv, type, knows }, i) => {
      const el = flags[i];
      const { height } = scene.geometry.lane;
      put(el, "data-cast", name);
      put(el, "transform", `translate(0 ${i * height})`);
      mark(el, "alarm", alarm);
      mark(el, "bare", !subject);
      const [title, cloth] = el.children;
      say(title, name);
      put(cloth, "transform", scene.tall ? "translate(121 -3)" : "translate(224 9)");
      put(cloth, "visibility", word ? "visible" : "hidden");
      const [box, shape, first, second] = cloth.children;
      put(box, "height", scene.tall ? 18 : 33); // there is room for one line
      put(box, "width", scene.tall ? 97 : 84);
      const token = type && type === word;
      put(shape, "href", `#token-${shapeOf(type)}`);
      put(shape, "visibility", token ? "inherit" : "hidden");
      put(first, "x", token ? 15 : 5);
      say(first, scene.tall && token ? rv : word);
      say(second, rv === "0" || scene.tall ? "" : `${knows} ${rv}`);
    });
  }

  function flag() {
    const el = svg("g", { class: "member" });
    const cloth = svg("g", { class: "flag" });
    cloth.append(
      svg("rect", { width: 84, height: 33, rx: 4 }), svg("use", { x: 1.5, y: 3, width: 14, height: 14 }),
      svg("text", { y: 14 }), svg("text", { x: 5, y: 28 }),
    );
    el.append(svg("text", { class: "name", y: 12 }), cloth);
    return el;
  }

  t.leave = () => {
    callOwn("");
    pool(scene.root.querySelector("#cast"), 0, flag);
  };
  return t;
}
