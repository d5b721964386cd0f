// Recordings: a file that was dropped onto the page, read in the page. It is gzip over lines of JSON: a header, then one
// record a line (internal/recording).

const version = 1;

// readRecording returns {header, records, hash}. An error says what is wrong with the file.
export async function readRecording(file, infos) {
  const bytes = await file.arrayBuffer();
  const lines = (await unzip(bytes)).split("\n");
  const header = parse(lines[0]);
  if (header?.format !== "listwatch recording") throw new Error("the file is not a recording of this program");
  if (header.version !== version) throw new Error(`the recording is of version ${header.version}, this page reads version ${version}`);
  const records = [];
  for (let i = 1; i < lines.length; i++) {
    if (lines[i] === "") continue;
    const r = parse(lines[i]);
    if (!r) throw new Error(`line ${i + 1} of the recording is no record: the file is cut off, or not ours`);
    if (!infos.has(r.point)) throw new Error(`line ${i + 1} speaks of ${String(r.point).slice(0, 40)}, which this version of the program does not know`);
    records.push(r);
  }
  if (records.length === 0) throw new Error("the recording is empty");
  for (let i = 1; i < records.length; i++) {
    if (records[i].seq !== records[i - 1].seq + 1) throw new Error(`record ${records[i - 1].seq + 1} is missing`);
  }
  return { header, records, hash: await hashOf(bytes) };
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
