// @ts-nocheck
// The tape: records and pictures that the page has at hand, and where to get those it has not.
//
// The picture at a cursor is always the same thing: the newest picture kept at or before it, and the records from there
// on, folded. What has left the page's memory is asked of the server by range; a recording that was dropped onto the
// page is all here.

import { get, queryOf } from "../lib/api.js";
import { agentOf } from "./fold.js";
import { partsOf } from "./recording.js";

const stride = 1024; // records that are asked for at once
const frameRoom = 16; // pictures kept when there is a server to ask again: as many as it keeps
const partsRoom = 200_000; // of all pictures kept
const namesRoom = 8192; // clients of which the name is kept
const frameEvery = 4096; // records between two of them, at least

// newTape returns an empty tape. source is {room, keyframe(at), records(from, to)} or null, when everything will be put
// in. room is how many records the source keeps, and the tape hardly more than those.
export function newTape(fold, source) {
  const room = source?.room ?? Infinity;
  const records = new Map(); // by sequence number, in the order in which they came
  let frames = []; // {seq, parts, state}, oldest first
  const names = new Map(); // of the clients of watchers: of those that have gone, too

  const get = (seq) => records.get(seq);

  function name(resource, subject, text) {
    names.set(`${resource ?? ""} ${subject}`, agentOf(text));
    if (names.size > namesRoom) names.delete(names.keys().next().value);
  }

  // called is what the subject of a record is called: a watcher as its client, where that is known.
  const called = (r) => names.get(`${r.resource ?? ""} ${r.subject}`) ?? r.subject ?? "";

  function put(list) {
    for (const r of list) {
      if (r.point === "WireOpened" && r.subject) name(r.resource, r.subject, r.text);
      records.set(r.seq, r);
      if (records.size > room + stride) records.delete(records.keys().next().value);
    }
  }

  // keep takes a picture, unless there is one close by. The state may go on being folded, unless it is given away.
  function keep(state, always = false, given = false) {
    let i = frames.length;
    while (i > 0 && frames[i - 1].seq > state.seq) i--;
    const before = frames[i - 1];
    if (before?.seq === state.seq) return;
    if (!always && before && state.seq - before.seq < Math.max(frameEvery, before.parts)) return;
    for (const [resource, { subjects }] of Object.entries(state.resources)) {
      for (const [id, { texts: { WireOpened: text } }] of Object.entries(subjects)) if (text) name(resource, id, text);
    }
    frames.splice(i, 0, { seq: state.seq, parts: partsOf(state), state: given ? state : structuredClone(state) });
    if (source && frames.length > frameRoom) frames.shift();
    const parts = frames.reduce((n, frame) => n + frame.parts, 0);
    // The older they are, the wider apart.
    if (parts > partsRoom) frames = frames.filter((_, i) => i % 2 === 0 || i === frames.length - 1);
  }

  const holds = (from, to) => between(from, to).length === to - from;

  // load makes sure that the records in [from, to) are at hand, as far as they exist.
  async function load(from, to) {
    while (from < to && get(from)) from++;
    while (to > from && get(to - 1)) to--;
    while (from < to && source) {
      const answer = await source.records(from, to);
      put(answer.records);
      if (answer.next <= from) return;
      from = answer.next;
    }
  }

  // stateAt returns the picture at a cursor. It is the caller's to fold on.
  async function stateAt(seq) {
    let base = frames.findLast((frame) => frame.seq <= seq);
    if (source && (!base || !holds(base.seq + 1, seq + 1))) {
      const frame = await source.keyframe(seq);
      keep(frame.state, true);
      base = { seq: frame.seq, state: frame.state };
      await load(frame.seq + 1, seq + 1);
    }
    if (!base) throw Object.assign(new Error("there is no picture of that moment"), { gone: true });
    const state = structuredClone(base.state);
    fold.apply(state, between(base.seq + 1, seq + 1));
    return state;
  }

  // between returns the records at hand in [from, to).
  function between(from, to) {
    const list = [];
    for (let seq = from; seq < to; seq++) if (get(seq)) list.push(get(seq));
    return list;
  }

  // find returns the number of the first record from `from` on, forwards or backwards, that match accepts; 0: none.
  async function find(from, direction, oldest, last, match) {
    for (let seq = from; seq >= Math.max(1, oldest) && seq <= last; seq += direction) {
      if (!get(seq)) {
        await (direction > 0 ? load(seq, Math.min(last + 1, seq + stride))
          : load(Math.max(oldest, seq - stride + 1), seq + 1));
      }
      const r = get(seq);
      if (r && match(r)) return seq;
    }
    return 0;
  }

  return { called, get, put, keep, load, stateAt, between, find, holds, room };
}

// serverSource asks the server whose log it is, of so many records.
export function serverSource(log, room) {
  const ask = (path) => get(`${path}&${queryOf({ log })}`);
  return {
    room,
    keyframe: (at) => ask(`/viz/keyframe?at=${at}`),
    records: (from, to) => ask(`/viz/records?from=${from}&to=${to}`),
    of: (query) => ask(`/viz/records?${query}`),
  };
}
