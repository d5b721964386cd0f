// Why is this blocked: the chain of waiting from any queue to the goroutine that can end it, and what is said of it. It
// is a function of the picture at the cursor, wherever that comes from. Nothing here knows the document.

import { namesOf, objectKey, youngest } from "../log/fold.js";

/**
 * @typedef {import("../log/fold.js").Infos} Infos
 * @typedef {import("./state.js").Place} Place
 * @typedef {import("./state.js").Titles} Titles
 * @typedef {object} Link of a chain
 * @property {string} queue
 * @property {string} subject
 * @property {number} len
 * @property {number} cap
 * @property {fold.Wait | null} sender
 * @property {fold.Wait | null} taker
 * @typedef {Link & { name: string, station?: probe.Station, senders: string, takers: string, takes: string }} StoryView
 */

const most = 64; // chains of one place, those of the longest queues: each is looked for among all waits

// ways are the two ends of what is no queue of ours: from the StreamWatcher to the reflector, and from it to a client.
/** @type {{ [queue: string]: { name: string, station: probe.Station, senders: string, takers: string } }} */
const ways = {
  stream: {
    name: "the hand-over to the reflector of", station: "reflector", senders: "StreamWatcher.receive",
    takers: "reflector.Run",
  },
  wire: {
    name: "the stream to", station: "wire", senders: "handlers.WatchServer", takers: "StreamWatcher.receive",
  },
};

// waitsFor says what a goroutine waits for instead of taking something.
/** @type {{ [kind: string]: string }} */
const waitsFor = {
  room: "room at the next one", taker: "the next one to take it", version: "a newer version",
  client: "its client to read", return: "its own code to return", work: "something to do",
};

/** @param {fold.Wait[]} waits */
const oldest = (waits) => waits.reduce((/** @type {fold.Wait | null} */ a, b) => (a && a.seq <= b.seq ? a : b), null);
/** @param {string} names */
const orAny = (names) => names.replaceAll(" ", " or ") || "any goroutine";

// newWhy returns {why(res, queue, subject), chains(res, t, place, titles)} for the infos of a fold.
/** @param {Infos} infos */
export function newWhy(infos) {
  // why follows the waiting from a queue of a subject. The goroutine that takes from the queue waits at another queue,
  // whose receiver waits at a third. The last link's receiver can end all of it: it waits for a client or a
  // handler, or for nothing. The chain has at least one link, and no queue twice.
  /** @param {fold.Resource} res @param {string} queue @param {string} subject */
  function why(res, queue, subject) {
    /** @type {Link[]} */
    const chain = [];
    while (queue && !chain.some((l) => l.queue === queue && l.subject === subject)) {
      const { len = 0, cap = 0 } = res.subjects[subject]?.queues[queue] ?? {};
      const [sender, taker] = [senderOf(res, queue, subject), takerOf(res, queue, subject)];
      chain.push({ queue, subject, len, cap, sender, taker });
      [queue, subject] = next(res, taker);
    }
    return chain;
  }

  // takerOf returns the oldest wait of the goroutine that takes from a queue; null: it waits for nothing.
  /** @param {fold.Resource} res @param {string} queue @param {string} subject */
  const takerOf = (res, queue, subject) => oldest(Object.values(res.waits).map(([first]) => first)
    .filter((w) => infos.get(w.point)?.holds?.includes(queue) && takes(res, w, queue, subject)));

  // ends returns where a queue is, and the goroutines at its two ends.
  /** @param {string} queue */
  function ends(queue) {
    /** @param {fold.Point} info */
    const fill = (info) => info.op === "send" || info.op === "push";
    const all = [...infos.values()].filter((info) => info.queue === queue);
    /** @param {fold.Point[]} list */
    const names = (list) => [...new Set(list.flatMap((info) => (info.lane ?? "").split(" ")))].join(" ").trim();
    return {
      station: all.find(fill)?.station, senders: names(all.filter(fill)), takers: names(all.filter((i) => !fill(i))),
    };
  }

  // chains puts the chains from the queues at a place {station, queue, subject} into words, the longest queue first:
  // each has links, {name, queue, station, subject, len, cap, takes}, whether it is full, and what it says. t is the
  // picture's time, and titles has the names of the queues.
  /** @param {fold.Resource | undefined} res @param {number} t @param {Place} place @param {Titles} titles */
  function chains(res, t, { station, queue, subject }, titles) {
    const here = [...infos.values()].filter((i) => (queue ? i.queue === queue : i.station === station && i.queue));
    const names = new Set(here.map((info) => info.queue));
    if (!res) return [];
    const found = Object.keys(res.subjects).filter((id) => !subject || id === subject).sort()
      .flatMap((id) => Object.entries(res.subjects[id].queues).map(([name, q]) => ({ name, id, q })))
      .filter(({ name }) => names.has(name)).sort((a, b) => b.q.len - a.q.len);
    return found.slice(0, most).map(({ name, id }) => tell(why(res, name, id).map((l) => linkOf(l, t, titles)), t));
  }

  /** @param {Link} link @param {number} t @param {Titles} titles */
  function linkOf(link, t, titles) {
    const { queue, subject, taker } = link;
    const way = ways[queue] ?? { name: `${titles[queue]} of`, ...ends(queue) };
    const takes = taker
      ? `${orAny(way.takers)} takes nothing: for ${since(taker, t)} it has waited for ${waitsFor[taker.kind]}` : "";
    return { ...link, ...way, name: `${way.name} ${subject}`, queue: ways[queue] ? "" : queue, takes };
  }

  return { why, chains };
}

/** @param {fold.Resource} res @param {fold.Wait | null} w @returns {[queue: string, subject: string]} */
function next(res, w) {
  if (w?.kind !== "client") return [w?.on ?? "", w?.subject ?? ""];
  // into the client of a watcher, if it is one that reports, too
  const client = namesOf(res.subjects[w.subject]).find((id) => (res.subjects[id]?.counts.FrameDecoded ?? 0) > 0);
  return client ? ["wire", client] : ["", ""];
}

// senderOf returns the oldest wait of a goroutine that would put something into a queue; null: none does.
/** @param {fold.Resource} res @param {string} queue @param {string} subject */
const senderOf = (res, queue, subject) => oldest(Object.values(res.waits).flat()
  .filter((w) => w.on === queue && w.subject === subject && w.kind !== "work"));

// takes reports whether who waits is the receiver of this queue and not of another one's of that name. A watcher takes
// from its own input; the one dispatcher, whomever it waits for, takes from incoming; and the cacher's reflector takes
// from the youngest watch of etcd.
/** @param {fold.Resource} res @param {fold.Wait} w @param {string} queue @param {string} subject */
function takes(res, w, queue, subject) {
  if (queue === "etcd3-result") return res.subjects[subject] === youngest(res, "watchchan");
  return res.subjects[w.subject]?.kind !== res.subjects[subject]?.kind || w.subject === subject;
}

// tell says in a sentence or two why the first link's queue is as it is.
/** @param {StoryView[]} links @param {number} t */
function tell(links, t) {
  const { name, len, cap, sender, senders, takers } = links[0];
  const full = Boolean(sender) || (cap > 0 && len >= cap);
  const end = endOf(links[links.length - 1], t);
  let says = `${name} is empty: ${orAny(takers)} waits for something to come from ${orAny(senders)}.`;
  if (len > 0) says = `No goroutine waits to put something into ${name}. What it holds waits: ${end}`;
  if (full) {
    const waited = sender ? `${orAny(sender.lane)} has waited there for ${since(sender, t)}. ` : "";
    says = `${name} is full, ${len} of ${cap}. ${waited}${end}`;
  }
  return { links, full, says };
}

// endOf says which goroutine can end the waiting at the last queue of a chain.
/** @param {StoryView} link @param {number} t */
function endOf({ name, taker, takers }, t) {
  const who = orAny(takers);
  if (!taker) return `All of them wait for ${who} to take from ${name}.`;
  const { kind, subject, key } = taker;
  const spent = since(taker, t);
  /** @type {{ [kind: string]: string }} */
  const waits = {
    client: `the client of ${subject}: ${who} has been writing to it for ${spent}.`,
    return: `the code of ${subject}, which has been at ${objectKey(key)} for ${spent}.`,
  };
  return `All of them wait for ${waits[kind] ?? `${who}.`}`;
}

// since says how long a goroutine has waited, on the log's clock.
/** @param {fold.Wait} w @param {number} t */
function since(w, t) {
  const ms = Math.trunc((t - w.t) / 1e6);
  return ms < 10_000 ? `${ms} ms` : `${Math.trunc(ms / 1000)} s`;
}
