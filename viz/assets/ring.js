// The ring: the history of the watchCache as an annulus, with its two hands and the range that is served.

import { pool, put, svg } from "./dom.js";
import { twin } from "./pipe.js";
import { shapeOf } from "./tokens.js";

const fresh = 75e9; // ns: the history the ring tries to keep

// ringSpot is where a position of the ring is drawn.
export function ringSpot(geometry, ring, pos) {
  const g = geometry.ring;
  const at = ring.capacity > 0 ? ((((pos % ring.capacity) + ring.capacity) % ring.capacity) + 0.5) / ring.capacity : 0;
  const angle = 2 * Math.PI * at - Math.PI / 2;
  const r = (g.out + g.in) / 2;
  return [g.x + r * Math.cos(angle), g.y + r * Math.sin(angle)];
}

export function showRing(scene, ring, now) {
  const station = scene.stations.get("ring");
  scene.ring = ring;
  put(station, "data-start", ring.start);
  put(station, "data-end", ring.end);
  put(station, "data-capacity", ring.capacity);
  put(station, "data-oldest-rv", ring.oldest);
  put(station, "data-newest-rv", ring.newest);
  scene.text("ring.newest", ring.newest === "0" ? "–" : ring.newest);
  scene.text("ring.range", `[${ring.start}, ${ring.end})`);
  scene.text("ring.capacity", ring.capacity ? `of ${ring.capacity}` : "");
  if (!ring.capacity) return;
  const bins = Math.min(ring.capacity, 128);
  const cells = pool(scene.root.querySelector("#ring-cells"), bins, () => svg("path", { class: "cell" }));
  if (scene.bins !== bins) {
    scene.bins = bins;
    for (let i = 0; i < bins; i++) cells[i].setAttribute("d", wedge(scene.geometry.ring, i / bins, (i + 1) / bins));
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
  }
  const followed = ring.cells.filter(scene.followed);
  const rings = pool(scene.root.querySelector("#ring-followed"), followed.length, twin);
  followed.forEach((cell, i) => {
    const [x, y] = ringSpot(scene.geometry, ring, cell.pos);
    put(rings[i], "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
  });
  showHands(scene, ring);
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
  const g = scene.geometry.ring;
  const start = (ring.start % ring.capacity) / ring.capacity;
  const end = (ring.end % ring.capacity) / ring.capacity;
  for (const [id, turn] of [["hand-start", start], ["hand-end", end]]) {
    const angle = 2 * Math.PI * turn - Math.PI / 2;
    const [x, y] = [g.x + (g.out + 1) * Math.cos(angle), g.y + (g.out + 1) * Math.sin(angle)];
    put(scene.root.querySelector(`#${id}`), "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${(turn * 360).toFixed(1)})`);
  }
  const span = Math.min(0.9999, (ring.end - ring.start) / ring.capacity);
  put(scene.root.querySelector("#ring-served"), "d", span > 0 ? arc(g, g.in - 4, start, start + span) : "");
}

function spot(g, r, turn) {
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  return `${(g.x + r * Math.cos(angle)).toFixed(2)} ${(g.y + r * Math.sin(angle)).toFixed(2)}`;
}

function arc(g, r, from, to) {
  return `M${spot(g, r, from)}A${r} ${r} 0 ${to - from > 0.5 ? 1 : 0} 1 ${spot(g, r, to)}`;
}

function wedge(g, from, to) {
  const gap = Math.min(0.0012, (to - from) * 0.2);
  const [a, b] = [from + gap, to - gap];
  return `M${spot(g, g.in, a)}L${spot(g, g.out, a)}A${g.out} ${g.out} 0 0 1 ${spot(g, g.out, b)}L${spot(g, g.in, b)}A${g.in} ${g.in} 0 0 0 ${spot(g, g.in, a)}Z`;
}
