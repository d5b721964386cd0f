// The fold: what the page shows is one function of what stands in the log.
//
// This is internal/observe/fold a second time, function by function: state.go, apply.go, queue.go, waits.go.
// Both are driven by the table of points, which the page gets from /viz/points; the same records give the same picture.
// Nothing here knows the document.

/**
 * @typedef {Omit<Map<string, fold.Point>, "get"> & { get(name: string): fold.Point }} Infos the points, by name
 * @typedef {ReturnType<typeof newFold>} Fold
 * @typedef {string | ShapeList | { [name: string]: Shape }} Shape of a part of a state
 * @typedef {(Shape | number)[]} ShapeList
 */

const maxTokens = 32; // per queue: as many as a pipe is drawn slot by slot
const maxCells = 128; // of the ring: as many as are drawn one by one
const maxRows = 24; // per shelf
const maxText = 240; // code points of any text a client may have chosen

// ---- state.go

// dict is a map from names that a client may have chosen. An object of the ordinary kind knows "toString" without
// having been told of it, and does not keep "__proto__".
/** @returns {{ [name: string]: any }} */
const dict = () => Object.create(null);

// The shape of a state: kinds of values by name, lists of a shape, which may have a length, and maps of one (each).
const token = { type: "text", key: "text", rv: "version" };
const last = { seq: "count", t: "count", point: "text", subject: "text", ...token, texts: { each: "text" } };
const station = { count: "count", rv: "version", vars: { each: "number" }, last };
const queue = {
  len: "count", cap: "count", sent: "number", received: "number", high: "count", tokens: [token],
};
const subject = {
  kind: "text", opened: "count", began: "version", rv: "version", vars: { each: "number" },
  texts: { each: { each: "text" } }, counts: { each: "count" }, queues: { each: queue }, last,
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
  text: (value) => typeof value === "string", number: Number.isSafeInteger, count: isCount, version: isVersion,
};

// complete gives what an earlier version of the program wrote down the parts that it did not know of: zero, as Go has
// it. Of nothing it makes an empty part. It throws if what is there has another shape; what stands in a list has to be
// there as a whole.
/** @param {any} [value] @param {any} [shape] a Shape @returns {any} */
export function complete(value, shape = picture) {
  /** @param {unknown} holds */
  const need = (holds) => {
    if (!holds) throw new TypeError("this is no picture");
  };
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
    whole[name] = complete(value[name], shape.each ?? shape[name]);
  }
  return whole;
}

/** @returns {fold.State} */
export const newState = () => complete();

// adopt makes the maps of a state that was read or copied what dict makes.
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
const newSubject = (kind, opened, began) => complete({ kind, opened, began }, subject);

// shelfName is how the store of a subject at a station is called: there may be several informers of one resource.
/** @param {probe.Station} station @param {string} [subject] */
export const shelfName = (station, subject) => `${station}/${subject ?? ""}`;

// ---- queue.go

// transfer counts one token into or out of a queue. Of one that a lock or one goroutine keeps (Push, Pop), length is
// the truth. The two sides of a channel (Send, Recv) report without a common lock, so the k-th receive may be folded
// before the k-th send; whichever comes second settles the pair, and no token is seen twice.
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

// between is how many a channel holds. A send beyond the capacity proves that the receiver has taken one, although the
// record of it is yet to come.
/** @param {fold.Queue} q */
const between = (q) => (q.cap > 0 ? Math.min(q.sent - q.received, q.cap) : q.sent - q.received);

// settle makes length the length and lets the oldest tokens go.
/** @param {fold.Queue} q @param {number} length */
function settle(q, length) {
  q.len = Math.max(0, length);
  q.high = Math.max(q.high, q.len);
  newest(q.tokens, Math.min(q.len, maxTokens));
}

// newest drops from the front of list all but its last n elements.
/** @param {unknown[]} list @param {number} n */
function newest(list, n) {
  const drop = list.length - Math.max(0, n);
  if (drop > 0) list.splice(0, drop);
}

// ---- waits.go

// noteWait ends the wait that the point ends, if a goroutine waits so, and begins the one that it begins.
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
  const waits = res.waits[key];
  if (!waits) return;
  const n = waits.findIndex((w) => endedBy(w, r));
  if (n < 0) return;
  waits.splice(n, 1);
  if (waits.length === 0) delete res.waits[key];
}

// endedBy reports whether a record that ends waits of this kind ends this one: many may wait for a version or do some
// work.
/** @param {fold.Wait} w @param {probe.Record} r */
function endedBy(w, r) {
  const key = w.key === bound(r.key);
  const both = key && w.rv === (r.rv ?? "0");
  if (w.kind === "taker") return !r.type || (both && w.type === bound(r.type));
  return w.kind === "version" ? both : w.kind === "return" ? key : true;
}

// endAllWaits is what the end of a subject does.
/** @param {Infos} infos @param {fold.Resource} res @param {string} subject */
function endAllWaits(infos, res, subject) {
  for (const info of infos.values()) if (info.waits) delete res.waits[waitKey(info, { subject })];
}

// ---- apply.go

// newFold returns {apply(state, records)} for a table of points as /viz/points gives it.
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
    if (info.op === "sum") sum(infos, res, subject, info, r);
  }
  applySpecial(infos, res, info, r);
}

// note keeps what a record says at last of a station or of a subject. The args of queues are kept with the queue, those
// of sums with what they add to.
/**
 * @param {fold.Station | fold.Subject} of @param {fold.Last} last @param {fold.Point} info
 * @param {probe.Record} r
 */
function note(of, last, info, r) {
  of.last = last;
  // A reflector knows what it has received: a resync hands its informer older versions again.
  if (r.rv && (!("kind" in of) || of.kind !== "" || info.station === "reflector")) of.rv = r.rv;
  if (info.queue || info.op === "sum") return;
  const names = /** @type {probe.ArgName[]} */ (info.args);
  names.forEach((name, i) => (of.vars[name] = r.args?.[i] ?? 0));
}

/** @template {string} K @param {{ [name in K]?: number }} counts @param {K} name @param {number} n */
const add = (counts, name, n) => (counts[name] = (counts[name] ?? 0) + n);

// move carries a token into or out of one of the subject's queues, if that is what the point does.
/** @param {fold.Subject} subject @param {fold.Point} info @param {probe.Record} r */
function move(subject, { op, queue: name = "" }, r) {
  if (!["send", "recv", "push", "pop"].includes(op)) return;
  const [length = 0, capacity = 0] = r.args ?? [];
  transfer(queueOf(subject, name), op, tokenOf(r), length, capacity);
}

// sum adds what was counted of a quiet subject and not reported: to the counters, and to its queues, of which it is not
// known what stands in them.
/**
 * @param {Infos} infos @param {fold.Resource} res @param {fold.Subject} subject @param {fold.Point} info
 * @param {probe.Record} r
 */
function sum(infos, res, subject, info, r) {
  info.args.forEach((name, i) => {
    const n = r.args?.[i] ?? 0;
    const counted = infos.get(name);
    if (n <= 0) return;
    add(res.points, counted.name, n);
    add(subject.counts, counted.name, n);
    stationOf(res, counted.station).count += n;
    const q = queueOf(subject, counted.queue ?? "");
    q.cap ||= subject.vars.capacity ?? 0;
    q[counted.op === "send" ? "sent" : "received"] += n;
    q.tokens = [];
  });
  for (const q of Object.values(subject.queues)) settle(q, between(q));
}

// subjectOf returns whom the record is about, null if there is none: a queue that belongs to a kind that opens and
// closes is not moved for a subject that is not open. Only after a gap a send makes its subject appear.
/** @param {fold.State} state @param {fold.Resource} res @param {fold.Point} info @param {string} id */
function subjectOf(state, res, info, id) {
  if (id === "" && !info.queue) return null;
  const known = res.subjects[id];
  if (known) return known;
  const kind = info.owner ?? "";
  if (kind !== "" && (state.lost === 0 || info.op !== "send")) return null;
  return (res.subjects[id] = newSubject(kind, 0));
}

// forget is what a gap does.
/** @param {fold.State} state @param {number} missing */
function forget(state, missing) {
  state.lost += missing;
  for (const res of Object.values(state.resources)) {
    for (const subject of Object.values(res.subjects)) subject.queues = {};
    for (const shelf of Object.values(res.shelves)) shelf.rows = []; // what has gone meanwhile is not known
    res.ring.cells = [];
    res.waits = {};
  }
}

// applySpecial holds what the table of points cannot say.
/** @param {Infos} infos @param {fold.Resource} res @param {fold.Point} info @param {probe.Record} r */
function applySpecial(infos, res, info, r) {
  const shelf = () => shelfOf(res, shelfName(info.station, r.subject));
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
      return updateShelf(shelf(), r, arg(info, r, "n"));
    case "StoreHolds":
    case "IndexerHolds":
      return holdOnShelf(shelf(), r, arg(info, r, "n"));
    case "CacherStopped":
      stop(infos, res);
  }
}

// stop takes the server's half out of the picture. Its counters stay.
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

// applyRing keeps the ring's two hands and what lies between them.
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
  if (info.name === "RingAppend") {
    ring.cells.push({ pos: ring.end - 1, t: r.t, ...tokenOf(r) });
  }
  newest(ring.cells, Math.min(ring.end - ring.start, maxCells));
}

// takeResult lets the cacher's own reflector be the receiver of resultChan, which reports nothing itself: the watch
// it reads is the youngest one of the resource.
/** @param {fold.Resource} res @param {probe.Record} r */
function takeResult(res, r) {
  if (r.subject !== "cacher") return;
  const watch = youngest(res, "watchchan");
  if (!watch) return;
  const q = queueOf(watch, "etcd3-result");
  transfer(q, "recv", tokenOf(r), 0, q.cap);
}

// youngest is the subject of a kind that was opened last.
/** @param {fold.Resource} res @param {string} kind */
export const youngest = (res, kind) => Object.values(res.subjects).filter((subject) => subject.kind === kind)
  .reduce((/** @type {fold.Subject | null} */ last, subject) =>
    (last && last.opened >= subject.opened ? last : subject), null);

// updateShelf puts an object on the shelf, or takes it off. A record without a key speaks of the whole store: it
// was replaced, and nothing is known of the rows; or it was told by a bookmark how new it is, and the rows stay.
/** @param {fold.Shelf} shelf @param {probe.Record} r @param {number} n */
function updateShelf(shelf, r, n) {
  shelf.n = n;
  if (!r.key) {
    if (r.type !== "BOOKMARK") shelf.rows = [];
    return;
  }
  const fresh = { ...tokenOf(r), seq: r.seq };
  shelf.rows = shelf.rows.filter((row) => row.key !== fresh.key);
  if (!fresh.type.toUpperCase().startsWith("DELETE")) shelf.rows.push(fresh);
  newest(shelf.rows, maxRows);
}

// holdOnShelf puts an object on the shelf that has been there without a name: among the others by its version.
/** @param {fold.Shelf} shelf @param {probe.Record} r @param {number} n */
function holdOnShelf(shelf, r, n) {
  shelf.n = n;
  const fresh = { ...tokenOf(r), seq: r.seq };
  if (shelf.rows.some((row) => row.key === fresh.key)) return;
  const at = shelf.rows.findIndex((row) => laterRV(row.rv, fresh.rv));
  shelf.rows.splice(at < 0 ? shelf.rows.length : at, 0, fresh);
  newest(shelf.rows, maxRows);
}

// tokenOf is the change that a record is about, as it stands in queues and on shelves.
/** @param {probe.Record} r @returns {fold.Token} */
const tokenOf = (r) => ({ type: bound(r.type), key: bound(r.key), rv: r.rv ?? "0" });

/** @param {probe.Record} r @returns {fold.Last} */
const lastOf = (r) => ({
  seq: r.seq, t: r.t, point: r.point, subject: bound(r.subject), texts: textsOf(r), ...tokenOf(r),
});

// textsOf are what a record says in words, by name.
/** @param {probe.Record} r @returns {probe.Record["texts"] & {}} */
function textsOf(r) {
  const texts = dict();
  for (const [name, text] of Object.entries(r.texts ?? {})) texts[name] = bound(text);
  return texts;
}

// arg returns the arg of that name, 0 if the point has none.
/** @param {fold.Point} info @param {probe.Record} r @param {string} name */
function arg(info, r, name) {
  const i = info.args.indexOf(name);
  return i < 0 ? 0 : (r.args?.[i] ?? 0);
}

// laterRV compares two resource versions, which are numbers of any size written as text.
/** @param {string} a @param {string} b */
export const laterRV = (a, b) => (a.length !== b.length ? a.length > b.length : a > b);

// bound cuts a text that a client chose.
/** @param {string | undefined} text */
export function bound(text) {
  if (!text) return "";
  if (text.length <= maxText) return text;
  return Array.from(text.slice(0, 2 * maxText)).slice(0, maxText).join("");
}

// ---- probe/info.go: Record.Anomaly, Record.Sentence and ObjectKey

// calm are the anomalies that are part of a normal day.
const calm = new Set([
  "RingResize", "DispatchBlocked", "ReflectorBackoff", "HandlerSlow", "CacherNotReady", "ProgramStopped",
  "WatchChanError",
]);

// isAlarm is true of what is wrong with a client: it was evicted, it was answered 410, or etcd has failed.
/** @param {fold.Point} info @param {probe.Record} r */
export const isAlarm = (info, r) => isAnomaly(info, r) && !calm.has(info.name);

/** @param {fold.Point} info @param {probe.Record} r */
export const isAnomaly = (info, r) => (info.name === "RequestAnswered" ? r.args?.[0] === 410
  : info.name === "FrameWritten" ? r.type === "ERROR" : Boolean(info.anomaly));

// sentence is what a record says. who is what its subject is called, if that is not its name in the log.
/** @param {fold.Point} info @param {probe.Record} r @param {string} [who] */
export function sentence(info, r, who = r.subject ?? "") {
  /** @type {{ [name: string]: string }} */
  const words = {
    type: r.type ?? "", key: objectKey(r.key ?? ""), rv: r.rv ?? "0",
    subject: who, resource: r.resource ?? "",
  };
  info.args.forEach((name, i) => (words[name] = String(r.args?.[i] ?? 0)));
  /** @type {{ [name: string]: string | undefined }} */
  const texts = r.texts ?? {};
  for (const name of info.texts ?? []) words[name] = texts[name] ?? "";
  const is = (/** @type {string} */ field) => words[field.split("=")[0]] === field.split("=")[1];
  let says = info.cases?.findLast(([values]) => values.split(" ").every(is))?.[1] ?? info.says;
  if (!r.key) says = says.replace(/ (?:of |for )?\{key\}/g, ""); // a bookmark is about no object
  if (!Number(r.rv)) says = says.replace(/ at \{rv\}/g, "");
  says = says.replace(/\[([^\]]*)\]/g, (_, part) => ( // what is left out if a blank in it stays empty
    [...part.matchAll(/\{(\w+)/g)].every(([, name]) => words[name]) ? part : ""
  ));
  return says.replace(/\{(\w+)(?: ([\w ]+))?\}/g, (whole, name, noun) => {
    const word = words[name];
    if (word === undefined) return whole;
    return noun ? `${word} ${noun}${word === "1" ? "" : "s"}` : word;
  });
}

/** @param {string} key */
export function objectKey(key) {
  if (!key.startsWith("/")) return key;
  const parts = key.slice(1).split("/");
  const folders = parts.length > 2 && (parts[1].includes(".") || parts[1] === "services") ? 3 : 2;
  return parts.slice(Math.min(folders, parts.length - 1)).join("/");
}

// agentOf is what a client is called: the first word of what it calls itself on the wire.
/** @param {string | undefined} text */
export function agentOf(text) {
  const [word] = (text ?? "").split(" ");
  return (word.split("/")[0] || word).replace(/^listwatch-/, "");
}

// namesOf returns how the client of a watcher may be called: as it calls itself on the wire, or as its informer.
/** @param {fold.Subject | undefined} subject */
export function namesOf(subject) {
  const name = agentOf(subject?.texts.WireOpened?.agent);
  return name ? [name, `${name}-informer`] : [];
}
