// The fold makes the page's picture from the log, as internal/observe/fold does. One table of points drives both.

/**
 * @typedef {Omit<Map<string, fold.Point>, "get"> & { get(name: string): fold.Point }} Infos the points, by name
 * @typedef {ReturnType<typeof newFold>} Fold
 * @typedef {string | ShapeList | { [name: string]: Shape }} Shape the shape of a part of a state
 * @typedef {(Shape | number)[]} ShapeList
 */

const maxTokens = 32; // tokens in a queue; a pipe draws no more slots
const maxCells = 128; // cells of the ring, which draws no more
const maxRows = 24; // rows on a shelf
const maxText = 240; // code points of any text a client may have chosen
const maxQuoted = 4096; // characters of a text in a picture that the page did not make

// dict returns a map for names that clients chose. An ordinary object always has "toString", and loses "__proto__".
/** @returns {{ [name: string]: any }} */
const dict = () => Object.create(null);

// Shapes of a state's parts, by which complete checks them. A string names a kind of value (kinds). [shape, max] is
// a list of up to max values, by default 4096. { each: shape } is a map. Any other shape lists the fields of an object.
const token = { type: "text", key: "text", rv: "version" };
const last = { seq: "count", t: "count", point: "text", subject: "text", ...token, texts: { each: "text" } };
const station = { count: "count", rv: "version", vars: { each: "number" }, last };
const queue = { len: "count", cap: "count", sent: "number", received: "number", high: "count", tokens: [token] };
const subject = {
  kind: "text", opened: "count", began: "version", rv: "version", vars: { each: "number" },
  texts: { each: { each: "text" } }, counts: { each: "count" }, queues: { each: queue }, last, fill: "some",
};
const shelf = { n: "count", rows: [{ ...token, seq: "count" }] };
const wait = {
  ...token, seq: "count", t: "count", point: "text", kind: "text", subject: "text", lane: "text", on: "text",
};
const resource = {
  stations: { each: station }, subjects: { each: subject }, points: { each: "count" },
  ring: {
    start: "count", end: "count", capacity: "count", oldest: "version", newest: "version",
    cells: [{ ...token, pos: "number", t: "count" }],
  },
  shelves: { each: shelf }, waits: { each: [wait, Infinity] },
};
/** @type {{ [name: string]: Shape }} */
const picture = { seq: "count", t: "count", lost: "count", resources: { each: resource } };
/** @type {{ [kind: string]: string | number }} */
const zero = { text: "", count: 0, number: 0, version: "0" };
/** @param {unknown} n @returns {n is number} */
export const isCount = (n) => Number.isSafeInteger(n) && Number(n) >= 0;
/** @param {unknown} rv @returns {rv is string} */
export const isVersion = (rv) => typeof rv === "string" && /^\d{1,20}$/.test(rv);
/** @type {{ [kind: string]: (value: unknown) => boolean }} */
const kinds = {
  text: (value) => typeof value === "string" && value.length <= maxQuoted, number: Number.isSafeInteger,
  count: isCount, version: isVersion, some: isCount, // a value of the kind "some" may be missing
};

/** @param {unknown} holds @param {string} [problem] @returns {asserts holds} */
export function need(holds, problem = "the recording does not begin with a picture") {
  if (!holds) throw new Error(problem);
}

// complete fills in Go's zero values, because an earlier version may have written the state. It throws on other shapes.
/** @param {any} [value] @param {any} [shape] a Shape @returns {any} */
export function complete(value, shape = picture) {
  if (typeof shape === "string") {
    need((value ??= zero[shape]) === zero[shape] || kinds[shape](value));
    return value;
  }
  if (Array.isArray(shape)) {
    const [each, most = 4096] = shape;
    need(Array.isArray(value ??= []) && value.length <= most);
    /** @param {{ [name: string]: unknown }} one */
    const whole = (one) => one && Object.keys(each).every((name) => one[name] !== undefined);
    for (const one of value) need(whole(one) && complete(one, each));
    return value;
  }
  need(typeof (value ??= {}) === "object" && !Array.isArray(value));
  const whole = shape.each ? dict() : { ...value };
  for (const name of Object.keys(shape.each ? value : shape)) {
    need(name.length <= maxQuoted);
    whole[name] = complete(value[name], shape.each ?? shape[name]);
  }
  return whole;
}

/** @returns {fold.State} */
export const newState = () => complete();

// adopt removes the prototypes of a copied or parsed state's resources, subjects and shelves, as in dict.
/** @param {fold.State} state */
function adopt(state) {
  Object.setPrototypeOf(state.resources, null);
  for (const res of Object.values(state.resources)) {
    Object.setPrototypeOf(res.subjects, null);
    Object.setPrototypeOf(res.shelves, null);
  }
}

/** @param {fold.State} state @param {string} name @returns {fold.Resource} */
const resourceOf = (state, name) => (state.resources[name] ??= complete(undefined, resource));
/** @param {fold.Resource} res @param {probe.Station} name @returns {fold.Station} */
const stationOf = (res, name) => (res.stations[name] ??= complete(undefined, station));
/** @param {fold.Resource} res @param {string} name @returns {fold.Shelf} */
const shelfOf = (res, name) => (res.shelves[name] ??= complete(undefined, shelf));
/** @param {fold.Subject} subject @param {string} name @returns {fold.Queue} */
const queueOf = (subject, name) => (subject.queues[name] ??= complete(undefined, queue));
/** @param {string} kind @param {number} opened @param {string} [began] @returns {fold.Subject} */
export const newSubject = (kind, opened, began) => complete({ kind, opened, began }, subject);

// shelfName returns the name of a subject's store at a station: a resource may have several informers.
/** @param {probe.Station} station @param {string} [subject] */
export const shelfName = (station, subject) => `${station}/${subject ?? ""}`;

// transfer counts one token into or out of a queue. For a queue under a lock or in one goroutine (push, pop), length is
// exact. The two sides of a channel (send, recv) report without a common lock, so the k-th receive may be folded before
// the k-th send; the later record settles the pair, and no token appears twice.
/**
 * @param {fold.Queue} q @param {string} op @param {fold.Token} token @param {number} length @param {number} capacity
 */
function transfer(q, op, token, length, capacity) {
  const channel = op === "send" ? 1 : op === "recv" ? -1 : null;
  const grown = channel ?? length - q.len;
  q.cap = capacity;
  if (grown > 0) {
    q.sent += grown;
    q.tokens.push(token);
  } else {
    q.received -= grown;
  }
  settle(q, channel ? between(q) : length);
}

// between returns how many tokens a channel holds. A send beyond the capacity proves a receive that has no record yet.
/** @param {fold.Queue} q */
const between = (q) => (q.cap > 0 ? Math.min(q.sent - q.received, q.cap) : q.sent - q.received);

/** @param {fold.Queue} q @param {number} length */
function settle(q, length) {
  q.len = Math.max(0, length);
  q.high = Math.max(q.high, q.len);
  newest(q.tokens, Math.min(q.len, maxTokens));
}

// newest drops all but the last n elements of list.
/** @param {unknown[]} list @param {number} n */
function newest(list, n) {
  const drop = list.length - Math.max(0, n);
  if (drop > 0) list.splice(0, drop);
}

/** @param {Infos} infos @param {fold.Resource} res @param {fold.Point} info @param {probe.Record} r */
function noteWait(infos, res, info, r) {
  for (const begun of info.ends ?? []) endWait(res, infos.get(begun), r);
  if (!info.waits || (info.owner && !res.subjects[r.subject ?? ""])) return;
  (res.waits[waitKey(info, r)] ??= []).push({
    seq: r.seq, t: r.t, point: info.name, kind: info.waits, subject: bound(r.subject), lane: info.lane ?? "",
    on: info.on ?? "", ...tokenOf(r),
  });
}

/** @param {{ name: string }} info @param {{ subject?: string }} r */
const waitKey = (info, r) => info.name + " " + (r.subject ?? "");

/** @param {fold.Resource} res @param {fold.Point} begun @param {probe.Record} r */
function endWait(res, begun, r) {
  const key = waitKey(begun, r);
  const waits = res.waits[key] ?? [];
  const n = waits.findIndex((w) => endedBy(w, r));
  if (n >= 0) waits.splice(n, 1);
  if (waits.length === 0) delete res.waits[key];
}

// endedBy reports whether a record ends this wait: many goroutines may wait for a version, or for the end of a call.
/** @param {fold.Wait} w @param {probe.Record} r */
function endedBy(w, r) {
  const key = w.key === bound(r.key);
  const both = key && w.rv === (r.rv ?? "0");
  if (w.kind === "taker") return !r.type || (both && w.type === bound(r.type));
  return w.kind === "version" ? both : w.kind === "return" ? key : true;
}

/** @param {Infos} infos @param {fold.Resource} res @param {string} subject */
function endAllWaits(infos, res, subject) {
  for (const info of infos.values()) if (info.waits) delete res.waits[waitKey(info, { subject })];
}

/** @param {fold.Point[]} points */
export function newFold(points) {
  const infos = /** @type {Infos} */ (/** @type {unknown} */ (new Map(points.map((info) => [info.name, info]))));
  return {
    infos,
    /** @param {fold.State} state @param {probe.Record[]} records */
    apply(state, records) {
      adopt(state);
      for (const r of records) apply(infos, state, r);
    },
  };
}

/** @param {Infos} infos @param {fold.State} state @param {probe.Record} r */
function apply(infos, state, r) {
  if (r.seq <= state.seq) return;
  const missing = r.seq - state.seq - 1;
  if (missing > 0) forget(state, missing);
  state.seq = r.seq;
  state.t = r.t;
  if (r.point === "Unknown") return;
  const info = infos.get(r.point);
  const res = resourceOf(state, r.resource ?? "");
  if (info.name === "CrowdLookedAt") {
    crowd(res, r);
    r = { ...r, texts: undefined }; // crowd has given the texts to the watchers
  }
  const last = lastOf(r);
  add(res.points, info.name, 1);
  const station = stationOf(res, info.station);
  station.count++;
  note(station, last, info, r);
  const id = r.subject ?? "";
  if (info.op === "open") res.subjects[id] = newSubject(info.opens ?? "", r.seq, r.rv);
  if (info.op === "close") {
    delete res.subjects[id];
    return endAllWaits(infos, res, id);
  }
  noteWait(infos, res, info, r);
  const subject = subjectOf(state, res, info, id);
  if (subject) {
    note(subject, last, info, r);
    add(subject.counts, info.name, 1);
    if (r.texts) subject.texts[info.name] = last.texts;
    move(subject, info, r);
    if (info.op === "look") look(subject, info, r);
  }
  applySpecial(infos, res, info, r);
}

// note keeps the newest record of a station or subject, its version and its args, unless they are lengths of queues.
/**
 * @param {fold.Station | fold.Subject} of @param {fold.Last} last @param {fold.Point} info
 * @param {probe.Record} r
 */
function note(of, last, info, r) {
  of.last = last;
  if (r.rv && (!("kind" in of) || has(of.kind, info))) of.rv = r.rv;
  if (info.queue || (info.op === "look" && r.subject)) return;
  const names = /** @type {probe.ArgName[]} */ (info.args);
  names.forEach((name, i) => (of.vars[name] = r.args?.[i] ?? 0));
}

// has reports whether a record sets its subject's version. A watcher's comes from written frames, that of any other
// subject that opens from all records, and that of the rest from a reflector alone: a resync repeats older versions.
/** @param {string} kind @param {fold.Point} info */
const has = (kind, { name, station }) =>
  (kind === "watcher" ? name === "FrameWritten" : kind !== "" || station === "reflector");

/** @template {string} K @param {{ [name in K]?: number }} counts @param {K} name @param {number} n */
const add = (counts, name, n) => (counts[name] = (counts[name] ?? 0) + n);

/** @param {fold.Subject} subject @param {fold.Point} info @param {probe.Record} r */
function move(subject, { op, queue: name = "" }, r) {
  if (!["send", "recv", "push", "pop"].includes(op)) return;
  const [length = 0, capacity = 0] = r.args ?? [];
  transfer(queueOf(subject, name), op, tokenOf(r), length, capacity);
}

// look sets the lengths of a subject's queues, and drops their tokens, which may have left without a record.
/** @param {fold.Subject} subject @param {fold.Point} info @param {probe.Record} r */
function look(subject, info, r) {
  delete subject.fill;
  info.args.forEach((name, i) => {
    const q = queueOf(subject, name);
    const length = r.args?.[i] ?? 0;
    Object.assign(q, { cap: subject.vars.capacity ?? 0, tokens: [], sent: q.received + length });
    settle(q, length);
  });
}

// crowd sets the watchers' fills from a text that has them in opening order, if it is valid and fits their number.
/** @param {fold.Resource} res @param {probe.Record} r */
function crowd(res, r) {
  const fill = bytesOf(r.texts?.fill ?? "");
  const watchers = opened(res, "watcher");
  if (!fill || watchers.length !== r.args?.[0]) return;
  watchers.slice(0, fill.length).forEach(([id, subject], i) => {
    delete subject.fill;
    if (fill[i] === 0) return;
    subject.fill = Math.min(fill[i], 101);
    delete res.waits[`ResultReceived ${id}`];
  });
}

// bytesOf decodes base64, or returns null if text is invalid. atob alone would accept blanks and missing padding.
/** @param {string} text */
function bytesOf(text) {
  if (!/^([A-Za-z\d+/]{4})*([A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/.test(text)) return null;
  return Array.from(atob(text), (byte) => byte.charCodeAt(0));
}

// opened returns the subjects of a kind with their ids, in the order in which they opened.
/** @param {fold.Resource} res @param {string} kind */
export const opened = (res, kind) => Object.entries(res.subjects).filter(([, subject]) => subject.kind === kind)
  .sort(([a, one], [b, other]) => one.opened - other.opened || (a < b ? -1 : 1));

// subjectOf returns the subject of a record, or null. It creates a subject that no record opens. Any other one must be
// open, except that a send creates it after a gap in the log.
/** @param {fold.State} state @param {fold.Resource} res @param {fold.Point} info @param {string} id */
function subjectOf(state, res, info, id) {
  if (id === "" && !info.queue) return null;
  const known = res.subjects[id];
  if (known) return known;
  const kind = info.owner ?? "";
  if (kind !== "" && (state.lost === 0 || info.op !== "send")) return null;
  return (res.subjects[id] = newSubject(kind, 0));
}

/** @param {fold.State} state @param {number} missing */
function forget(state, missing) {
  state.lost += missing;
  for (const res of Object.values(state.resources)) {
    for (const subject of Object.values(res.subjects)) subject.queues = {};
    for (const shelf of Object.values(res.shelves)) shelf.rows = []; // some rows may have gone meanwhile
    res.ring.cells = [];
    res.waits = {};
  }
}

/** @param {Infos} infos @param {fold.Resource} res @param {fold.Point} info @param {probe.Record} r */
function applySpecial(infos, res, info, r) {
  switch (info.name) {
    case "CacheReplaced":
      res.shelves[shelfName("store", r.subject)] = { n: arg(info, r, "n"), rows: [] };
    // falls through
    case "RingAppend":
    case "RingResize":
    case "RVAdvanced":
      return applyRing(res.ring, info, r);
    case "ReflectorReceived":
      return takeResult(res, r);
    case "StoreUpdate":
    case "IndexerUpdated":
    case "StoreHolds":
    case "IndexerHolds":
      return updateShelf(shelfOf(res, shelfName(info.station, r.subject)), r, arg(info, r, "n"),
        info.name.endsWith("Holds"));
    case "CacherStopped":
      stop(infos, res);
  }
}

// stop removes the server half from the picture, except for its counters.
/** @param {Infos} infos @param {fold.Resource} res */
function stop(infos, res) {
  res.ring = complete(undefined, resource.ring);
  delete res.shelves[shelfName("store", "cacher")];
  for (const [id, { kind }] of Object.entries(res.subjects)) {
    if (id !== "cacher" && kind !== "watcher" && kind !== "watchchan") continue;
    delete res.subjects[id];
    endAllWaits(infos, res, id);
  }
  for (const station of /** @type {const} */ (["etcd3", "ring", "store", "dispatch", "watcher"])) {
    stationOf(res, station).vars = {};
  }
}

/** @param {fold.Ring} ring @param {fold.Point} info @param {probe.Record} r */
function applyRing(ring, info, r) {
  const rv = r.rv ?? "0";
  if (laterRV(rv, ring.newest)) ring.newest = rv;
  if (info.name === "RVAdvanced") return;
  ring.start = arg(info, r, "start");
  ring.end = arg(info, r, "end");
  ring.capacity = arg(info, r, "capacity");
  if (info.name === "CacheReplaced") Object.assign(ring, { oldest: rv, newest: rv, cells: [] });
  else ring.oldest = String(arg(info, r, "oldest"));
  if (info.name === "RingAppend") ring.cells.push({ pos: ring.end - 1, t: r.t, ...tokenOf(r) });
  newest(ring.cells, Math.min(ring.end - ring.start, maxCells));
}

// takeResult makes the cacher's reflector the receiver from resultChan, because no point reports that receive.
/** @param {fold.Resource} res @param {probe.Record} r */
function takeResult(res, r) {
  if (r.subject !== "cacher") return;
  const watch = youngest(res, "watchchan");
  if (!watch) return;
  const q = queueOf(watch, "etcd3-result");
  transfer(q, "recv", tokenOf(r), 0, q.cap);
}

/** @param {fold.Resource} res @param {string} kind */
export const youngest = (res, kind) => opened(res, kind)
  .findLast(([, each], i, all) => i === 0 || all[i - 1][1].opened < each.opened)?.[1];

// updateShelf puts an object on the shelf, or takes it off. A record without a key is about the whole store: a replace
// drops the rows, a bookmark keeps them. If the store had the object without a row (holds), its version places the row.
/** @param {fold.Shelf} shelf @param {probe.Record} r @param {number} n @param {boolean} holds */
function updateShelf(shelf, r, n, holds) {
  shelf.n = n;
  const fresh = { ...tokenOf(r), seq: r.seq };
  if (!r.key && !holds) {
    if (r.type !== "BOOKMARK") shelf.rows = [];
    return;
  }
  const known = shelf.rows.findIndex((row) => row.key === fresh.key);
  if (holds && known >= 0) return;
  if (known >= 0) shelf.rows.splice(known, 1);
  const later = holds ? shelf.rows.findIndex((row) => laterRV(row.rv, fresh.rv)) : -1;
  const gone = !holds && fresh.type.toUpperCase().startsWith("DELETE");
  if (!gone) shelf.rows.splice(later < 0 ? shelf.rows.length : later, 0, fresh);
  newest(shelf.rows, maxRows);
}

/** @param {probe.Record} r @returns {fold.Token} */
const tokenOf = (r) => ({ type: bound(r.type), key: bound(r.key), rv: r.rv ?? "0" });

/** @param {probe.Record} r @returns {fold.Last} */
const lastOf = (r) => ({
  seq: r.seq, t: r.t, point: r.point, subject: bound(r.subject), texts: textsOf(r), ...tokenOf(r),
});

/** @param {probe.Record} r @returns {probe.Record["texts"] & {}} */
const textsOf = (r) => Object.fromEntries(Object.entries(r.texts ?? {}).map(([name, text]) => [name, bound(text)]));

/** @param {fold.Point} info @param {probe.Record} r @param {string} name */
function arg(info, r, name) {
  const i = info.args.indexOf(name);
  return i < 0 ? 0 : (r.args?.[i] ?? 0);
}

// laterRV reports whether the resource version a is later than b. Versions are numbers of any size, written as text.
/** @param {string} a @param {string} b */
export const laterRV = (a, b) => (a.length !== b.length ? a.length > b.length : a > b);

const maxFill = 6668; // characters of the base64 fill of 5,000 watchers

/** @param {string} name @param {string} text */
export const boundAs = (name, text) => (name === "fill" && text.length <= maxFill ? text : bound(text));

/** @param {string | undefined} text */
export function bound(text) {
  if (!text) return "";
  if (text.length <= maxText) return text;
  return Array.from(text.slice(0, 2 * maxText)).slice(0, maxText).join("");
}

// ---- anomalies, sentences and names (probe/info.go)

// calm lists the anomalies of normal operation.
const calm = new Set([
  "RingResize", "DispatchBlocked", "ReflectorBackoff", "HandlerSlow", "CacherNotReady", "ProgramStopped",
  "WatchChanError",
]);

// isAlarm reports whether a record is a failure: an eviction, a 410, an ERROR frame, a failed store, or a failed etcd.
/** @param {fold.Point} info @param {probe.Record} r */
export const isAlarm = (info, r) => isAnomaly(info, r) && !calm.has(info.name);

/** @param {fold.Point} info @param {probe.Record} r */
export const isAnomaly = (info, r) => (info.name === "RequestAnswered" ? r.args?.[0] === 410
  : info.name === "FrameWritten" ? r.type === "ERROR" : Boolean(info.anomaly));

// sentence returns the sentence of a record. who is the subject's name, by default the one in the log.
/** @param {fold.Point} info @param {probe.Record} r @param {string} [who] */
export function sentence(info, r, who = r.subject ?? "") {
  /** @type {{ [name: string]: string }} */
  const words = {
    type: r.type ?? "", key: objectKey(r.key ?? ""), rv: r.rv ?? "0", subject: who, resource: r.resource ?? "",
  };
  info.args.forEach((name, i) => (words[name] = String(r.args?.[i] ?? 0)));
  /** @type {{ [name: string]: string | undefined }} */
  const texts = r.texts ?? {};
  for (const name of info.texts ?? []) words[name] = texts[name] ?? "";
  const is = (/** @type {string} */ field) => words[field.split("=")[0]] === field.split("=")[1];
  let says = info.cases?.findLast(([values]) => values.split(" ").every(is))?.[1] ?? info.says;
  if (!r.key) says = says.replace(/ (?:of |for )?\{key\}/g, ""); // a bookmark has no object
  if (!Number(r.rv)) says = says.replace(/ at \{rv\}/g, "");
  says = says.replace(/\[([^\]]*)\]/g, (_, part) => ( // a part with an empty placeholder is left out
    [...part.matchAll(/\{(\w+)/g)].every(([, name]) => words[name]) ? part : ""
  ));
  return says.replace(/\{(\w+)(?: ([\w ]+))?\}/g, (whole, name, noun) => {
    const word = words[name];
    if (word === undefined) return whole;
    return noun ? `${word} ${noun}${word === "1" ? "" : "s"}` : word;
  });
}

// clause returns a point with a short sentence: up to the semicolon or, if plain, the one declared for closed boxes.
/** @param {fold.Point} info @param {boolean} plain @returns {fold.Point} */
export const clause = (info, plain) => ({ ...info, says: (plain && info.plain) || info.says.replace(/;.*$/, ".") });

/** @param {string} key */
export function objectKey(key) {
  if (!key.startsWith("/")) return key;
  const parts = key.slice(1).split("/");
  const folders = parts.length > 2 && (parts[1].includes(".") || parts[1] === "services") ? 3 : 2;
  return parts.slice(Math.min(folders, parts.length - 1)).join("/");
}

// agentOf returns a client's name: its user agent's first word, without the version and our prefix.
/** @param {string | undefined} text */
export function agentOf(text) {
  const [word] = (text ?? "").split(" ");
  return (word.split("/")[0] || word).replace(/^listwatch-/, "");
}

// namesOf returns the possible names of a watcher's client: its user agent's, or its informer's.
/** @param {fold.Subject | undefined} subject */
export function namesOf(subject) {
  const name = agentOf(subject?.texts.WireOpened?.agent);
  return name ? [name, `${name}-informer`] : [];
}
