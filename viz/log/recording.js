// Recordings: a file that was dropped onto the page, read in the page. It is gzip over lines of JSON: a header, then
// one record a line (internal/observe/recording). What it may hold is bounded as there: all of it is kept in memory.

import { queryOf, refusal, split } from "../lib/api.js";
import { bound, complete, isCount, isVersion, newState } from "./fold.js";

/**
 * @typedef {import("./fold.js").Fold} Fold
 * @typedef {import("./tape.js").Tape} Tape
 * @typedef {object} Header
 * @property {string} format
 * @property {number} version
 * @property {unknown} [keyframe]
 * @property {{ [name: string]: string }} [switches] with which the program ran
 * @property {string} [points] which table of points it had
 * @property {string} [reason] why it was written
 * @property {{ [point: string]: string }} [table] the args of its points
 * @property {string} started
 * @typedef {{ at: number, log: string, recording: string, key: string, rv: string }} Link
 */

const version = 1;
const maxRecords = 2_000_000;
const maxBytes = 512 * 2 ** 20; // of the whole file, unpacked
const maxLine = 64 * 2 ** 20; // characters of one line: a header may hold a picture
export const maxResources = 512; // in the picture (internal/observe/fold/bounds.go)
export const maxParts = 50_000; // subjects, stores and waits
const maxNames = maxParts + 256 * maxResources; // in the maps of the resources
const maxValues = 4_000_000; // in the JSON form of a picture
const maxQuoted = 4096; // of a text there
const together = 512; // records that are folded at once

// readRecording reads a recording onto an empty tape, with a picture every now and then, and returns {header, records,
// state, first, hash}: state is the picture after the last record, first the number of the one before the first. An
// error says what is wrong with the file.
/** @param {File} file @param {Fold} fold @param {Tape} tape */
export async function readRecording(file, fold, tape) {
  const bytes = await file.arrayBuffer();
  const reader = new Reader(fold, tape);
  for await (const line of unpack(bytes)) reader.line(line);
  return { ...reader.end(), hash: await hashOf(bytes) };
}

// A Reader reads a recording line by line. Of another version it is read if every line of it can be. tape has put and
// keep.
export class Reader {
  /** @param {Fold} fold @param {Pick<Tape, "put" | "keep">} tape */
  constructor(fold, tape) {
    this.fold = fold;
    this.tape = tape;
    /** @type {probe.Record[]} */
    this.records = [];
    /** @type {Header | null} */
    this.header = null;
    this.state = newState();
    this.pictured = false; // the recording begins with a picture
    this.folded = 0;
    this.lines = 0;
  }

  /** @param {string} text */
  begin(text) {
    measure(text);
    const written = parse(text);
    need(written?.format === "listwatch recording", "the file is not a recording of this program");
    this.header = { ...written, keyframe: undefined };
    this.pictured = written.keyframe !== undefined;
    try {
      if (this.pictured) this.state = complete(written.keyframe);
    } catch {
      throw new Error("the recording does not begin with a picture");
    }
  }

  /** @param {string} text */
  take(text) {
    const { records } = this;
    const r = parse(text);
    need(
      r !== null && typeof r === "object",
      `line ${this.lines} of the recording is not a record: the file is cut off, or was not written by this program`
    );
    checkRecord(r, records.at(-1), this.lines);
    this.adapt(r);
    if (records.length === 0) this.start(r.seq - 1);
    need(records.length < maxRecords, `the recording has more than the ${maxRecords} records that can be shown`);
    records.push(r);
    if (records.length - this.folded === together) this.foldOn();
  }

  // adapt makes a record of another version one of this: args have their names from the recording's table, and a moment
  // of a point that is unknown here says only that point's name.
  /** @param {probe.Record} r */
  adapt(r) {
    const info = this.fold.infos.get(r.point);
    const names = this.header?.table?.[r.point];
    if (!info) Object.assign(r, { point: "Unknown", texts: { name: bound(r.point) }, args: [] });
    else if (typeof names === "string" && names !== info.args.join(" ")) {
      const there = names.split(" ");
      r.args = info.args.map((name) => r.args?.[there.indexOf(name)] ?? 0);
    }
  }

  /** @param {number} seq */
  start(seq) {
    const fits = !this.pictured || this.state.seq === seq;
    need(fits, `the recording's picture is of record ${this.state.seq}, but its records begin with ${seq + 1}`);
    this.state.seq = seq;
    room(this.state);
    this.tape.keep(this.state, true);
  }

  foldOn() {
    const list = this.records.slice(this.folded);
    this.folded = this.records.length;
    this.tape.put(list);
    this.fold.apply(this.state, list);
    room(this.state);
    this.tape.keep(this.state);
  }

  // guarded says of another version what it is before what is wrong.
  /** @param {() => void} act */
  guarded(act) {
    try {
      act();
    } catch (problem) {
      if (!this.header || this.header.version === version) throw problem;
      throw new Error(
        `the recording is of version ${String(this.header.version).slice(0, 20)}, and this page, which knows version ` +
          `${version}, cannot read it: ${refusal(problem).message}`
      );
    }
  }

  /** @param {string} text */
  line(text) {
    this.lines++;
    need(text.length <= maxLine, tooMany.bytes);
    if (this.lines === 1) this.guarded(() => this.begin(text));
    else if (text !== "") this.guarded(() => this.take(text));
  }

  end() {
    const { header, records, state } = this;
    const none = header ? "the recording is empty" : "the file is not a recording of this program";
    if (!header || records.length === 0) throw new Error(none);
    this.guarded(() => this.foldOn());
    return { header, records, state, first: records[0].seq - 1 };
  }
}

// partsOf counts what of a picture takes memory.
/** @param {fold.State} state */
export function partsOf(state) {
  let n = 0;
  for (const res of Object.values(state.resources)) {
    n += Object.keys(res.subjects).length + Object.keys(res.shelves).length;
    for (const waits of Object.values(res.waits)) n += waits.length;
  }
  return n;
}

const tooMany = {
  resources: `the recording has more than the ${maxResources} resources that can be shown`,
  bytes: `the recording is longer than the ${maxBytes / 2 ** 20} MB that can be shown`,
  parts: `the recording has more than the ${maxParts} subjects, stores and waits that can be shown`,
};

/** @param {unknown} holds @param {string} problem @returns {asserts holds} */
function need(holds, problem) {
  if (!holds) throw new Error(problem);
}

// room throws if a picture is too large to be shown.
/** @param {fold.State} state */
function room(state) {
  need(Object.keys(state.resources).length <= maxResources, tooMany.resources);
  need(partsOf(state) <= maxParts, tooMany.parts);
}

// measure throws if reading a header would take too much memory. It looks at brackets, commas and quotes alone (measure
// in internal/observe/fold/bounds.go); a header's picture lies one deeper.
/** @param {string} text */
function measure(text) {
  const at = new Array(8).fill(0); // values by depth
  let [depth, all, quote] = [0, 0, -1];
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quote >= 0) {
      if (c === "\\") i++;
      else if (c === '"') {
        need(i - quote <= maxQuoted, `the recording's picture has a text of more than ${maxQuoted} bytes`);
        quote = -1;
      }
    } else if (c === '"') quote = i;
    else if (c === "}" || c === "]") depth--;
    else if (c === "{" || c === "[" || c === ",") {
      if (c !== ",") depth++;
      all++;
      at[Math.max(0, Math.min(depth, 7))]++;
    }
  }
  need(at[3] <= maxResources, tooMany.resources);
  need(at[5] <= maxNames && all <= maxValues, tooMany.parts);
}

const texts = /** @type {const} */ (["resource", "subject", "type", "key"]);
const maxTexts = 8; // of a record

/** @param {probe.Record} r @param {probe.Record | undefined} before @param {number} line */
function checkRecord(r, before, line) {
  need(isCount(r.seq) && r.seq > 0, `line ${line} has no sequence number that can be counted with`);
  need(isCount(r.t ??= 0), `record ${r.seq} has no time that can be counted with`);
  need(!before || r.seq === before.seq + 1, `record ${(before?.seq ?? 0) + 1} is missing`);
  need(!before || r.t >= before.t, `record ${r.seq} is earlier than the one before it`);
  need(typeof r.point === "string" && String(r.point), `record ${r.seq} names no point`);
  const args = r.args ?? [];
  const few = Array.isArray(args) && args.length <= 4;
  need(few && args.every(Number.isSafeInteger), `record ${r.seq} has args that cannot be counted with`);
  need(r.rv === undefined || isVersion(r.rv), `record ${r.seq} has no resource version`);
  for (const name of texts.filter((each) => r[each] !== undefined)) {
    need(typeof r[name] === "string", `the ${name} of record ${r.seq} is not text`);
    r[name] = bound(r[name]);
  }
  if (r.texts === undefined) return;
  need(r.texts !== null && typeof r.texts === "object", `record ${r.seq} has no texts by name`);
  const said = Object.entries(r.texts).sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, maxTexts);
  need(said.every(([, text]) => typeof text === "string"), `a text of record ${r.seq} is not text`);
  r.texts = Object.fromEntries(said.map(([name, text]) => [bound(name), bound(text)]));
}

// unpack yields the lines of a file.
/** @param {ArrayBuffer} bytes */
async function* unpack(bytes) {
  let all = 0;
  const bounded = new TransformStream({
    transform(piece, out) {
      need((all += piece.length) <= maxBytes, tooMany.bytes);
      out.enqueue(piece);
    },
  });
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).pipeThrough(bounded);
  try {
    yield* split(new Response(text), "\n", true);
  } catch (problem) {
    if (refusal(problem).message === tooMany.bytes) throw problem;
    throw new Error("the file is not a recording: it is not compressed as one, or is cut off");
  }
}

/** @param {string} line */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

// hashOf names a file as the program does; "" where a browser cannot hash, which is on pages that are neither local nor
// encrypted.
/** @param {ArrayBuffer} bytes */
async function hashOf(bytes) {
  if (!globalThis.crypto?.subtle) return "";
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(sum.slice(0, 8), (b) => b.toString(16).padStart(2, "0")).join("");
}

// ---- links

// linkTo returns the part of an address that names a moment: the log or the recording it is of, the cursor, and who is
// followed.
/** @param {{ log: string, recording: string, cursor: number, follow: { key: string, rv: string } }} to */
export function linkTo({ log, recording, cursor, follow }) {
  const { key, rv } = follow;
  return `#${queryOf({ ...(recording ? { recording } : { log }), at: cursor, key, rv })}`;
}

// readLink returns what an address names, or null.
/** @param {string} hash @returns {Link | null} */
export function readLink(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const at = Number(parts.get("at"));
  if (!parts.has("at") || !isCount(at)) return null;
  const [log, recording, key, rv] = ["log", "recording", "key", "rv"].map((name) => parts.get(name) ?? "");
  return { at, log, recording, key, rv };
}

// misfit says why a link does not fit what is shown, or returns "".
/** @param {Link} link @param {{ log: string, recording: string, oldest: number, head: number }} shown */
export function misfit(link, shown) {
  if (link.recording && link.recording !== shown.recording) {
    return `This link is to record ${link.at} of the recording ${link.recording.slice(0, 16)}, which is not shown ` +
      "here: drop its file onto the page, or start with -replay.";
  }
  if (!link.recording && link.log !== shown.log) {
    return `This link is to record ${link.at} of another run of the program, which has ended. What you see is the ` +
      "present one.";
  }
  if (link.at < shown.oldest) {
    return `Record ${link.at} has left the log, whose oldest picture is that at ${shown.oldest}.`;
  }
  if (link.at > shown.head) return `There is no record ${link.at} yet; the newest is ${shown.head}.`;
  return "";
}
