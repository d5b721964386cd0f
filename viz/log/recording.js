// Recordings: a file that was dropped onto the page, read in the page. It is gzip over lines of JSON: a header, then one
// record a line (internal/recording).

const version = 1;
const most = 2_000_000; // records

// readRecording returns {header, records, hash}. An error says what is wrong with the file.
export async function readRecording(file, infos) {
  const bytes = await file.arrayBuffer();
  return { ...parseRecording(await unzip(bytes), infos), hash: await hashOf(bytes) };
}

// parseRecording returns {header, records} of a recording's text, in which every number is one that the page can count with. One
// of another version is shown if every line of it can be read.
export function parseRecording(text, infos) {
  const lines = text.split("\n");
  const header = parse(lines[0]);
  if (header?.format !== "listwatch recording") throw new Error("the file is not a recording of this program");
  try {
    return { header: checkHeader(header), records: recordsOf(lines, infos, header) };
  } catch (problem) {
    if (header.version === version) throw problem;
    throw new Error(`the recording is of version ${String(header.version).slice(0, 20)}, and this page, which knows version ${version}, cannot read it: ${problem.message}`);
  }
}

function recordsOf(lines, infos, header) {
  const records = [];
  for (let i = 1; i < lines.length; i++) {
    if (lines[i] === "") continue;
    const r = parse(lines[i]);
    if (r === null || typeof r !== "object") throw new Error(`line ${i + 1} of the recording is not a record: the file is cut off, or was not written by this program`);
    if (!infos.has(r.point)) throw new Error(`line ${i + 1} speaks of ${String(r.point).slice(0, 40)}, which this version of the program does not know`);
    checkRecord(r, records.at(-1), i + 1);
    if (records.length === most) throw new Error(`the recording has more than the ${most} records that can be shown`);
    records.push(r);
  }
  if (records.length === 0) throw new Error("the recording is empty");
  const at = header.keyframe?.seq ?? records[0].seq - 1;
  if (header.keyframe && at !== records[0].seq - 1) throw new Error(`the recording's picture is of record ${at}, but its records begin with ${records[0].seq}`);
  return records;
}

const counts = (n) => Number.isSafeInteger(n) && n >= 0;
const texts = ["resource", "subject", "type", "key", "text"];

function checkRecord(r, before, line) {
  if (!counts(r.seq) || r.seq === 0) throw new Error(`line ${line} has no sequence number that can be counted with`);
  if (!counts(r.t ?? 0)) throw new Error(`record ${r.seq} has no time that can be counted with`);
  r.t ??= 0;
  if (before && r.seq !== before.seq + 1) throw new Error(`record ${before.seq + 1} is missing`);
  if (before && r.t < before.t) throw new Error(`record ${r.seq} is earlier than the one before it`);
  if (r.args !== undefined && !(Array.isArray(r.args) && r.args.length <= 4 && r.args.every(Number.isSafeInteger))) throw new Error(`record ${r.seq} has args that cannot be counted with`);
  if (r.rv !== undefined && !version64(r.rv)) throw new Error(`record ${r.seq} has no resource version`);
  for (const name of texts) if (r[name] !== undefined && typeof r[name] !== "string") throw new Error(`the ${name} of record ${r.seq} is not text`);
}

const version64 = (rv) => typeof rv === "string" && /^\d{1,20}$/.test(rv);

// checkHeader checks the picture before the first record: what is not there is filled in (fold.js), what is there has to fit.
function checkHeader(header) {
  if (header.keyframe !== undefined && !fits(header.keyframe, picture)) throw new Error("the recording does not begin with a picture");
  return header;
}

// A shape is a function that tells whether a value fits, a list of one shape, an object of shapes by name, or { each: shape }.
const text = (value) => typeof value === "string";
const number = Number.isSafeInteger;
const token = { type: text, key: text, rv: version64 };
const moment = { seq: counts, t: counts, point: text, subject: text, type: text, key: text, rv: version64, text };
const picture = {
  seq: counts, t: counts, lost: counts,
  resources: { each: {
    stations: { each: { count: counts, rv: version64, vars: { each: number }, last: moment } },
    subjects: { each: {
      kind: text, opened: counts, began: version64, rv: version64, vars: { each: number }, texts: { each: text }, counts: { each: counts }, last: moment,
      queues: { each: { len: counts, cap: counts, sent: number, received: number, high: counts, tokens: [token] } },
    } },
    points: { each: counts },
    ring: { start: counts, end: counts, capacity: counts, oldest: version64, newest: version64, cells: [{ ...token, pos: number, t: counts }] },
    shelves: { each: { n: counts, rows: [{ ...token, seq: counts }] } },
    waits: { each: [{ ...token, seq: counts, t: counts, point: text, kind: text, subject: text, lane: text, on: text }] },
  } },
};

const whole = (value, shape) => value !== null && typeof value === "object" && Object.keys(shape).every((name) => value[name] !== undefined);

// fits tells whether what is there of a value has a shape. What stands in a list is there as a whole.
function fits(value, shape) {
  if (typeof shape === "function") return shape(value);
  if (Array.isArray(shape)) return Array.isArray(value) && value.length <= 4096 && value.every((each) => whole(each, shape[0]) && fits(each, shape[0]));
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  if (shape.each) return Object.values(value).every((each) => fits(each, shape.each));
  return Object.keys(shape).every((name) => value[name] === undefined || fits(value[name], shape[name]));
}

async function unzip(bytes) {
  try {
    return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  } catch {
    throw new Error("the file is not a recording: it is not compressed as one, or is cut off");
  }
}

function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

// hashOf names a file as the program does; "" where a browser cannot hash, which is on pages that are neither local nor
// encrypted.
async function hashOf(bytes) {
  if (!globalThis.crypto?.subtle) return "";
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(sum.slice(0, 8), (b) => b.toString(16).padStart(2, "0")).join("");
}

// ---- links

// linkTo returns the part of an address that names a moment: the log or the recording it is of, the cursor, and who is
// followed.
export function linkTo({ log, recording, cursor, follow }) {
  const parts = new URLSearchParams();
  if (recording) parts.set("recording", recording);
  else parts.set("log", log);
  parts.set("at", cursor);
  if (follow.key) parts.set("key", follow.key);
  if (follow.rv) parts.set("rv", follow.rv);
  return `#${parts}`;
}

// readLink returns what an address names, or null.
export function readLink(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const at = Number(parts.get("at"));
  if (!parts.has("at") || !Number.isSafeInteger(at) || at < 0) return null;
  return { log: parts.get("log") ?? "", recording: parts.get("recording") ?? "", at, key: parts.get("key") ?? "", rv: parts.get("rv") ?? "" };
}

// misfit says why a link does not fit what is shown, or returns "".
export function misfit(link, shown) {
  if (link.recording && link.recording !== shown.recording) {
    return `This link is to record ${link.at} of the recording ${link.recording.slice(0, 16)}, which is not shown here: drop its file onto the page, or start with -replay.`;
  }
  if (!link.recording && link.log !== shown.log) {
    return `This link is to record ${link.at} of another run of the program, which has ended. What you see is the present one.`;
  }
  if (link.at < shown.oldest) return `Record ${link.at} has left the log, whose oldest picture is that at ${shown.oldest}.`;
  if (link.at > shown.head) return `There is no record ${link.at} yet; the newest is ${shown.head}.`;
  return "";
}
