// Recordings, embedded or dropped onto the page, and links. internal/observe/recording has the same format and limits.

import { refusal, split } from "../lib/api.js";
import { bound, boundAs, complete, isCount, isVersion, need, newState } from "./fold.js";

/**
 * @typedef {import("./fold.js").Fold} Fold
 * @typedef {import("./tape.js").Tape} Tape
 * @typedef {object} Header
 * @property {string} format
 * @property {number} version
 * @property {boolean} pictured whether it begins with a picture
 * @property {{ [name: string]: string }} [switches] the program's switches
 * @property {string} [reason] the reason for writing it
 * @property {{ [point: string]: string }} [table] the names of each point's args
 * @property {string} started
 * @typedef {{ at: number, log: string, recording: string, key: string, rv: string }} Link
 */

const version = 1;
const maxRecords = 2_000_000;
const maxBytes = 512 * 2 ** 20; // the uncompressed file
const maxLine = 64 * 2 ** 20; // characters of one line, which may be a header with a picture
export const maxResources = 512; // resources in a picture (internal/observe/fold/state.go)
export const maxParts = 50_000; // subjects, stores and waits in a picture
const together = 512; // records folded at once

// readRecording reads a recording onto an empty tape, with occasional pictures. In its result, state is the picture
// after the last record, and first is one less than the first record's number. An error names the fault in the file.
/** @param {File} file @param {Fold} fold @param {Tape} tape */
export async function readRecording(file, fold, tape) {
  const bytes = await file.arrayBuffer();
  const reader = new Reader(fold, tape);
  for await (const line of unpack(bytes)) reader.line(line);
  return { ...reader.end(), hash: await hashOf(bytes) };
}

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
    this.lines = 0;
  }

  /** @param {string} text */
  begin(text) {
    const { keyframe, ...header } = parse(text) ?? {};
    need(header.format === "listwatch recording", "the file is not a recording of this program");
    need(header.version === version,
      `the recording is of version ${String(header.version).slice(0, 20)}, and this page reads version ${version}`);
    this.header = { ...header, pictured: keyframe !== undefined };
    this.state = complete(keyframe);
    room(this.state);
  }

  /** @param {Header} header @param {string} text */
  take({ table, pictured }, text) {
    const { records, state, fold: { infos } } = this;
    const r = recordOf(parse(text), records.at(-1), this.lines);
    // Args in the recording's order are put into ours. A record of an unknown point loses its args and texts.
    const [info, names] = [infos.get(r.point), table?.[r.point]];
    if (!info) Object.assign(r, { point: "Unknown", texts: { name: bound(r.point) }, args: [] });
    else if (typeof names === "string" && names !== info.args.join(" ")) {
      r.args = info.args.map((name) => r.args?.[names.split(" ").indexOf(name)] ?? 0);
    }
    if (records.length === 0) {
      need(!pictured || state.seq === r.seq - 1,
        `the recording's picture is of record ${state.seq}, but its records begin with ${r.seq}`);
      state.seq = r.seq - 1;
      this.tape.keep(state, true);
    }
    need(records.length < maxRecords, `the recording has more than the ${maxRecords} records that can be shown`);
    records.push(r);
    if (records.length % together === 0) this.foldOn();
  }

  foldOn() {
    const list = this.records.slice(this.state.seq + 1 - this.records[0].seq);
    this.tape.put(list);
    this.fold.apply(this.state, list);
    room(this.state);
    this.tape.keep(this.state);
  }

  /** @param {string} text */
  line(text) {
    const { header } = this;
    this.lines++;
    need(text.length <= maxLine, tooLong);
    if (!header) this.begin(text);
    else if (text !== "") this.take(header, text);
  }

  end() {
    const { header, records, state } = this;
    need(header, "the file is not a recording of this program");
    need(records.length > 0, "the recording is empty");
    this.foldOn();
    return { header, records, state, first: records[0].seq - 1 };
  }
}

/** @param {fold.State} state */
export const partsOf = (state) => Object.values(state.resources).reduce((n, { subjects, shelves, waits }) => n +
  Object.keys(subjects).length + Object.keys(shelves).length + Object.values(waits).flat().length, 0);

const tooLong = `the recording is longer than the ${maxBytes / 2 ** 20} MB that can be shown`;

/** @param {fold.State} state */
function room(state) {
  need(Object.keys(state.resources).length <= maxResources,
    `the recording has more than the ${maxResources} resources that can be shown`);
  need(partsOf(state) <= maxParts,
    `the recording has more than the ${maxParts} subjects, stores and waits that can be shown`);
}

/** @param {unknown} text */
const isText = (text) => typeof text === "string";
const maxTexts = 8; // the maximum number of texts in a record
// fields maps a record's fields to their tests. All but the first two may be missing.
/** @type {{ [field: string]: (value: any) => boolean }} */
const fields = {
  seq: (n) => isCount(n) && n > 0, point: (name) => isText(name) && name !== "",
  t: isCount, resource: isText, subject: isText, type: isText, key: isText, rv: isVersion,
  args: (all) => Array.isArray(all) && all.length <= 4 && all.every(Number.isSafeInteger),
  texts: (all) => all !== null && typeof all === "object" && Object.values(all).every(isText),
};

// recordOf checks a record, which must follow the one before it, and bounds the length of its texts.
/** @param {any} r @param {probe.Record | undefined} before @param {number} line @returns {probe.Record} */
function recordOf(r, before, line) {
  const bad = Object.keys(fields).find((name, i) => (r?.[name] === undefined ? i < 2 : !fields[name](r[name])));
  need(!bad, `line ${line} of the recording is not a record with a valid ${bad}: the file is cut off, or was not ` +
    "written by this program");
  r.t ??= 0;
  need(!before || r.seq === before.seq + 1, `record ${(before?.seq ?? 0) + 1} is missing`);
  need(!before || r.t >= before.t, `record ${r.seq} is earlier than the one before it`);
  for (const name of ["resource", "subject", "type", "key"]) if (r[name]) r[name] = bound(r[name]);
  const texts = Object.entries(r.texts ?? {}).slice(0, maxTexts);
  if (r.texts) r.texts = Object.fromEntries(texts.map(([name, text]) => [bound(name), boundAs(name, text)]));
  return r;
}

/** @param {ArrayBuffer} bytes */
async function* unpack(bytes) {
  let all = 0;
  const bounded = new TransformStream({ transform: (piece, out) => ((all += piece.length) > maxBytes
    ? out.error(new Error(tooLong)) : out.enqueue(piece)) });
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).pipeThrough(bounded);
  try {
    yield* split(new Response(text), "\n", true);
  } catch (problem) {
    throw refusal(problem).message === tooLong ? problem
      : new Error("the file is not a recording: it is not compressed as one, or is cut off");
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

// hashOf returns the hash that names a file in links, or "" if the browser cannot hash, as on unencrypted pages.
/** @param {ArrayBuffer} bytes */
async function hashOf(bytes) {
  if (!globalThis.crypto?.subtle) return "";
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(sum.slice(0, 8), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** @param {string} hash @returns {Link | null} */
export function readLink(hash) {
  const { at, log = "", recording = "", key = "", rv = "" } = Object.fromEntries(new URLSearchParams(hash.slice(1)));
  return isCount(Number(at)) ? { at: Number(at), log, recording, key, rv } : null;
}

// misfit explains why a link leads to no moment of the shown log or recording. It returns "" if the link leads to one.
/** @param {Link} link @param {{ log: string, recording: string, oldest: number, head: number }} shown */
export function misfit({ at, log, recording }, shown) {
  if (recording && recording !== shown.recording) {
    return `This link is to record ${at} of the recording ${recording.slice(0, 16)}, which is not shown here: ` +
      "drop its file onto the page, or start with -replay.";
  }
  const another = "of another run of the program, which has ended. What you see is the present one";
  return !recording && log !== shown.log ? `This link is to record ${at} ${another}.`
    : at < shown.oldest ? `Record ${at} has left the log, whose oldest picture is that at ${shown.oldest}.`
      : at > shown.head ? `There is no record ${at} yet; the newest is ${shown.head}.` : "";
}
