// The ring: the watchCache's event history. Two hands point to its start and its end; the events between can be served.

import { mark, part, pool, put, say, svg } from "../dom/dom.js";
import { laterRV } from "../log/fold.js";
import { made } from "./lanes.js";
import { atTurn, few, innerOf, ringSpot, seat, turnOf } from "./ground.js";
import { shapeOf } from "./tokens.js";

/** @typedef {import("./scene.js").Scene} Scene */

const fresh = 75e9; // ns of history that the ring tries to keep
const drawn = 128; // the maximum number of cells; in a larger ring a cell covers several slots
const fewest = 8; // up to this many cells, the versions are larger
const deep = 38; // the maximum width of a version, in units
const level = 12; // up to this many cells, the versions are horizontal; with more, they run along the radius

/** @param {Scene} scene @param {fold.Resource} res @param {number} now */
export function showRing(scene, res, now) {
  const { ring } = res;
  const station = scene.station("ring");
  scene.ring = ring;
  for (const name of /** @type {const} */ (["start", "end", "capacity"])) put(station, `data-${name}`, ring[name]);
  put(station, "data-oldest-rv", ring.oldest);
  put(station, "data-newest-rv", ring.newest);
  scene.text("ring.newest", ring.newest === "0" ? "–" : ring.newest);
  mark(station, "long", ring.newest.length > 5);
  scene.text("ring.range", `[${ring.start}, ${ring.end})`);
  const held = ring.capacity < 10_000 ? ring.end - ring.start : ""; // more digits do not fit into the ring
  scene.text("ring.capacity", ring.capacity ? `${held} of ${ring.capacity}` : "");
  showCells(scene, ring, now);
  showHands(scene, ring);
  showPins(scene, ring);
}

/** @param {Scene} scene @param {fold.Ring} ring @param {number} now */
function showCells(scene, ring, now) {
  const bins = Math.min(ring.capacity, drawn);
  const before = part(scene.root, "#ring-cells").childElementCount;
  const cells = pool(part(scene.root, "#ring-cells"), bins, () => svg("path", { class: "cell" }));
  if (before !== bins) {
    const g = scene.geometry.ring;
    const from = innerOf(g, ring);
    for (let i = 0; i < bins; i++) put(cells[i], "d", cellPath(g, from, i / bins, (i + 1) / bins));
    const track = part(scene.station("ring"), ".track");
    put(track, "r", (g.out + from) / 2);
    put(track, "stroke-width", g.out - from);
    mark(scene.station("ring"), "few", bins <= few);
  }
  const perBin = ring.capacity / bins;
  /** @type {(Partial<fold.Cell> & { t: number } | null)[]} */
  const filled = Array.from({ length: bins }, (_, i) => (
    perBin > 1 && holds(ring, i * perBin, (i + 1) * perBin) ? { type: "", t: now } : null));
  const binOf = (/** @type {number} */ pos) => Math.floor((pos % ring.capacity) / perBin);
  for (const cell of ring.cells) filled[binOf(cell.pos)] = cell;
  const newest = ring.end > ring.start ? binOf(ring.end - 1) : -1;
  filled.forEach((cell, i) => {
    const look = !cell ? "" : now - cell.t > fresh ? " held stale" : ` held ${cell.type ? shapeOf(cell.type) : ""}`;
    const followed = (cell?.rv && scene.followed(cell) ? " followed" : "")
      + (cell?.rv && scene.story?.now.sent.has(cell.rv) ? " sent" : "");
    put(cells[i], "class", `cell${look}`.trim() + (i === newest ? " newest" : "") + followed);
    put(cells[i], "data-pos", cell?.pos ?? "");
  });
  showVersions(scene, ring);
}

// showVersions writes the versions into the cells of a ring with few cells, along the radius if they are narrow.
/** @param {Scene} scene @param {fold.Ring} ring */
function showVersions(scene, ring) {
  const cells = ring.capacity <= few ? ring.cells : [];
  const texts = pool(part(scene.root, "#ring-versions"), cells.length, () =>
    svg("text", { class: "mid", lengthAdjust: "spacingAndGlyphs" }));
  cells.forEach((cell, i) => {
    const turn = turnOf(ring, cell.pos) + 0.5 / ring.capacity;
    const along = turn * 360 + (turn < 0.5 ? -90 : 90);
    place(texts[i], seat(scene.geometry.ring, ring, turn, 0.5), ring.capacity > level ? along : 0);
    put(texts[i], "dy", ring.capacity > level ? 4 : 5);
    say(texts[i], cell.rv);
    const wants = cell.rv.length * (ring.capacity > fewest ? 7.2 : 8.8);
    put(texts[i], "textLength", wants > deep ? deep : null);
  });
}

// showPins marks the versions that a story's pinned clients have reached: at their cells or, if dropped, outside.
/** @param {Scene} scene @param {fold.Ring} ring */
function showPins(scene, ring) {
  const pinned = (scene.story?.members ?? []).filter(({ pin, rv }) => pin && rv !== "0" && ring.capacity > 0);
  const pins = pool(part(scene.root, "#ring-pins"), pinned.length, () => made("ring-pin"));
  mark(scene.root, "pinning", pinned.length > 0);
  pinned.forEach(({ name, rv, open }, i) => {
    const cell = ring.cells.findLast((each) => !laterRV(each.rv, rv));
    const gone = !cell && ring.start > 0 && BigInt(rv) + 1n < BigInt(ring.oldest);
    const turn = turnOf(ring, cell?.pos ?? ring.start) + (cell ? 0.5 / Math.max(1, ring.capacity) : 0);
    const [head, words] = pins[i].children;
    mark(pins[i], "gone", gone);
    place(head, seat(scene.geometry.ring, ring, turn, gone ? 1.25 : 1), turn * 360);
    const ahead = laterRV(rv, ring.newest);
    const past = !open || laterRV(ring.newest, rv) ? " was here" : "";
    const { boxes: { ring: { X, W } }, turns } = scene.geometry;
    put(words, "x", scene.tall ? X + W + 20 : turns["tray-words"][0]);
    put(words, "text-anchor", scene.tall ? "end" : "start");
    put(words, "y", turns["tray-words"][1] + 16 * i + (scene.tall ? 24 : 0)); // below the tray if tall
    const far = gone ? " (gone)" : ahead ? " (to come)" : ""; // the note for a version outside the ring
    say(words, far ? `${name}: ${rv}${far}` : `${name}${past}: ${rv}`);
  });
}

/** @param {Element} el @param {import("./ground.js").Spot} at @param {number} [turned] */
function place(el, [x, y], turned = 0) {
  const turn = turned ? ` rotate(${turned.toFixed(1)})` : "";
  put(el, "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})${turn}`);
}

// holds reports whether any of the slots [from, to) is in use, that is, between ring.start and ring.end.
/** @param {fold.Ring} ring @param {number} from @param {number} to */
function holds(ring, from, to) {
  const n = ring.end - ring.start;
  const first = ring.start % ring.capacity;
  return n > 0 && ((from < first + n && to > first) || from + ring.capacity < first + n);
}

/** @param {Scene} scene @param {fold.Ring} ring */
function showHands(scene, ring) {
  for (const id of /** @type {const} */ (["start", "end"])) {
    const turn = turnOf(ring, ring[id]);
    place(part(scene.root, `#hand-${id}`), seat(scene.geometry.ring, ring, turn, 1.03), turn * 360);
  }
}

/** @param {stage.Geometry["ring"]} g @param {number} r @param {number} turn */
const spot = (g, r, turn) => atTurn(g, r, turn).map((v) => v.toFixed(2)).join(" ");

/** @param {stage.Geometry["ring"]} g @param {number} inside @param {number} from @param {number} to */
function cellPath(g, inside, from, to) {
  const gap = Math.min(0.0012, (to - from) * 0.2);
  const [a, b] = [from + gap, to - gap];
  const outer = `L${spot(g, g.out, a)}A${g.out} ${g.out} 0 0 1 ${spot(g, g.out, b)}`;
  return `M${spot(g, inside, a)}${outer}L${spot(g, inside, b)}A${inside} ${inside} 0 0 0 ${spot(g, inside, a)}Z`;
}
