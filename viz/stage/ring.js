// The ring: the history of the watchCache, with its two hands, the range that is served, and where each watcher began.
// Unrolled it is a tape: the same cells in a row, slot 0 first.

import { pool, put, say, svg } from "../lib/dom.js";
import { laterRV } from "../log/fold.js";
import { twin } from "./pipe.js";
import { shapeOf } from "./tokens.js";

const fresh = 75e9; // ns: the history the ring tries to keep
const named = 6; // of the newest cells, as many have their resource version beside them when one looks closer
const tape = { y: 84, h: 26, margin: 10 }; // where the cells are when unrolled, within the station's box

// turnOf is where a position lies, from 0 at slot 0 to 1 behind the last slot.
function turnOf(ring, pos) {
  return ring.capacity > 0 ? ((((pos % ring.capacity) + ring.capacity) % ring.capacity)) / ring.capacity : 0;
}

// seat is a point of the ring or of the tape: turn along it, depth 0 at its inner edge, 1 at its outer one.
function seat(scene, turn, depth) {
  const { geometry, unrolled } = scene;
  const g = geometry.ring;
  if (unrolled) {
    const box = geometry.boxes.ring;
    return [box.X + tape.margin + turn * (box.W - 2 * tape.margin), tape.y + (1 - depth) * tape.h];
  }
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  const r = g.in + (g.out - g.in) * depth;
  return [g.x + r * Math.cos(angle), g.y + r * Math.sin(angle)];
}

// ringSpot is where a position of the ring is drawn.
export function ringSpot(scene, ring, pos) {
  return seat(scene, turnOf(ring, pos) + 0.5 / Math.max(1, ring.capacity), 0.5);
}

export function showRing(scene, res, now) {
  const ring = res.ring;
  const station = scene.stations.get("ring");
  scene.ring = ring;
  put(station, "data-start", ring.start);
  put(station, "data-end", ring.end);
  put(station, "data-capacity", ring.capacity);
  put(station, "data-oldest-rv", ring.oldest);
  put(station, "data-newest-rv", ring.newest);
  put(station, "data-unrolled", String(Boolean(scene.unrolled)));
  scene.text("ring.newest", ring.newest === "0" ? "–" : ring.newest);
  scene.text("ring.range", `[${ring.start}, ${ring.end})`);
  const held = ring.capacity < 10_000 ? ring.end - ring.start : ""; // more digits do not fit into the ring
  scene.text("ring.capacity", ring.capacity ? `${held} of ${ring.capacity}` : "");
  if (!(ring.capacity > 0)) return;
  showCells(scene, ring, now);
  const followed = ring.cells.filter(scene.followed);
  const rings = pool(scene.root.querySelector("#ring-followed"), followed.length, twin);
  followed.forEach((cell, i) => place(rings[i], ringSpot(scene, ring, cell.pos)));
  showHands(scene, ring);
  showStarts(scene, res);
}

function showCells(scene, ring, now) {
  const bins = Math.min(ring.capacity, 128);
  const cells = pool(scene.root.querySelector("#ring-cells"), bins, () => svg("path", { class: "cell" }));
  const layout = `${bins} ${Boolean(scene.unrolled)}`;
  if (scene.layout !== layout) {
    scene.layout = layout;
    for (let i = 0; i < bins; i++) cells[i].setAttribute("d", cellPath(scene, i / bins, (i + 1) / bins));
  }
  const filled = new Array(bins).fill(null);
  const perBin = ring.capacity / bins;
  if (perBin > 1) {
    for (let i = 0; i < bins; i++) if (holds(ring, i * perBin, (i + 1) * perBin)) filled[i] = { type: "", t: now };
  }
  for (const cell of ring.cells) filled[Math.floor((cell.pos % ring.capacity) / perBin)] = cell;
  const newestBin = ring.end > ring.start ? Math.floor(((ring.end - 1) % ring.capacity) / perBin) : -1;
  for (let i = 0; i < bins; i++) {
    const cell = filled[i];
    let name = "cell";
    if (cell) name += now - cell.t > fresh ? " held stale" : ` held ${cell.type ? shapeOf(cell.type) : ""}`;
    if (i === newestBin) name += " newest";
    put(cells[i], "class", name.trim());
    put(cells[i], "data-pos", cell?.pos ?? "");
  }
  showNames(scene, ring);
}

// showNames writes the resource versions of the newest cells, for those who look closer.
function showNames(scene, ring) {
  const newest = ring.capacity <= 128 ? ring.cells.slice(-named) : [];
  const names = pool(scene.root.querySelector("#ring-names"), newest.length, () => svg("text", { class: "fine mid" }));
  newest.forEach((cell, i) => {
    place(names[i], seat(scene, turnOf(ring, cell.pos) + 0.5 / ring.capacity, scene.unrolled ? 1.5 + (i % 2) * 0.4 : 1.3 + (i % 2) * 0.42));
    say(names[i], cell.rv);
  });
}

function place(el, [x, y]) {
  put(el, "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
}

// holds reports whether any of the slots [from, to) is between the hands.
function holds(ring, from, to) {
  const n = ring.end - ring.start;
  if (n <= 0) return false;
  const first = ring.start % ring.capacity;
  const last = first + n;
  return (from < last && to > first) || from + ring.capacity < last;
}

function showHands(scene, ring) {
  const start = turnOf(ring, ring.start);
  const end = turnOf(ring, ring.end);
  for (const [id, turn] of [["hand-start", start], ["hand-end", end]]) {
    const [x, y] = seat(scene, turn, 1.03);
    const angle = scene.unrolled ? 0 : turn * 360;
    put(scene.root.querySelector(`#${id}`), "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${angle.toFixed(1)})`);
  }
  const words = (pos) => `${pos} % ${ring.capacity} = ${pos % ring.capacity}`;
  for (const [id, pos] of [["start", ring.start], ["end", ring.end]]) say(scene.root.querySelector(`#hand-${id}-words`), `${id} ${words(pos)}`);
  scene.text("ring.start", `start ${words(ring.start)}`);
  scene.text("ring.end", `end ${words(ring.end)}`);
  scene.text("ring.serves", `serves a watch from ${ring.oldest} on`);
  const span = Math.min(0.9999, (ring.end - ring.start) / ring.capacity);
  put(scene.root.querySelector("#ring-served"), "d", span > 0 ? servedPath(scene, start, start + span) : "");
}

// showStarts marks on the served range where each watcher began: at the first event that is newer than its version.
function showStarts(scene, res) {
  const { ring } = res;
  const list = Object.entries(res.subjects).filter(([, s]) => s.kind === "watcher").map(([id, s]) => [id, startOf(ring, s)]).filter(([, pos]) => pos !== null);
  const ticks = pool(scene.root.querySelector("#ring-starts"), list.length, () => svg("path", { class: "start-tick" }));
  const names = pool(scene.root.querySelector("#ring-start-names"), list.length, () => svg("text", { class: "fine mid" }));
  const taken = new Map(); // several may have begun at the same place
  list.forEach(([id, pos], i) => {
    const turn = turnOf(ring, pos);
    const n = taken.get(pos) ?? 0;
    taken.set(pos, n + 1);
    const [[ax, ay], [bx, by]] = [seat(scene, turn, -0.42), seat(scene, turn, -0.06)];
    put(ticks[i], "d", `M${ax.toFixed(1)} ${ay.toFixed(1)}L${bx.toFixed(1)} ${by.toFixed(1)}`);
    place(names[i], seat(scene, turn, -0.72 - n * 0.4));
    say(names[i], id);
  });
}

// startOf returns the position at which a watcher began, null if the ring does not tell: what is not drawn cell by cell, and
// what has left it.
function startOf(ring, subject) {
  const rv = subject.began ?? "";
  if (!rv || rv === "0" || ring.cells.length === 0) return null;
  const later = ring.cells.find((cell) => laterRV(cell.rv, rv));
  if (!later) return ring.end;
  const missed = BigInt(rv) + 1n < BigInt(ring.oldest); // what came next has left the ring
  return missed || (later === ring.cells[0] && later.pos > ring.start) ? null : later.pos;
}

function spot(g, r, turn) {
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  return `${(g.x + r * Math.cos(angle)).toFixed(2)} ${(g.y + r * Math.sin(angle)).toFixed(2)}`;
}

function servedPath(scene, from, to) {
  const g = scene.geometry.ring;
  if (!scene.unrolled) return arc(g, g.in - 4, from, to);
  const piece = (a, b) => `M${seat(scene, a, -0.15).join(" ")}L${seat(scene, b, -0.15).join(" ")}`;
  return to <= 1 ? piece(from, to) : piece(from, 1) + piece(0, to - 1);
}

function arc(g, r, from, to) {
  return `M${spot(g, r, from)}A${r} ${r} 0 ${to - from > 0.5 ? 1 : 0} 1 ${spot(g, r, to)}`;
}

function cellPath(scene, from, to) {
  const gap = Math.min(0.0012, (to - from) * 0.2);
  const [a, b] = [from + gap, to - gap];
  if (scene.unrolled) return `M${[[a, 0], [a, 1], [b, 1], [b, 0]].map(([t, d]) => seat(scene, t, d).map((v) => v.toFixed(2)).join(" ")).join("L")}Z`;
  const g = scene.geometry.ring;
  return `M${spot(g, g.in, a)}L${spot(g, g.out, a)}A${g.out} ${g.out} 0 0 1 ${spot(g, g.out, b)}L${spot(g, g.in, b)}A${g.in} ${g.in} 0 0 0 ${spot(g, g.in, a)}Z`;
}
