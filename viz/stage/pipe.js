// Pipes and shelves: queues with their tokens, slot by slot if the slots fit, and stores with their rows.

import { fitted, sans } from "../dom/canvas.js";
import { mark, part, parts, pool, put, say, svg } from "../dom/dom.js";
import { objectKey } from "../log/fold.js";
import { cellOf, drawnOf, leftward, stepOf } from "./ground.js";
import { shapeOf, shortKey, byTurn } from "./tokens.js";

/**
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {fold.Token & { at: Spot }} Held a token, and where it is drawn
 * @typedef {object} Standing a token that a pipe draws, and its place on the stage
 * @property {string} key
 * @property {string} rv
 * @property {string} owner
 * @property {string} in the queue
 * @property {number} x
 * @property {number} y
 * @property {boolean} left
 * @property {string} [type]
 * @property {boolean} again whether the next token shows the name instead
 */

const cellWidth = 24; // the maximum width of a cell with a name, in units
const readable = 12; // the minimum width, in units, at which names are shown
const rowFont = `15px ${sans}`; // a shelf's rows at the presenter's size
const digit = 9.6; // the width of the widest digit, in units
const unknown = { type: "", key: "", rv: "0" };

// heldIn returns the tokens that the pipes draw, with their queues and their places on the stage.
/** @param {Scene} scene @returns {Standing[]} */
export function heldIn(scene) {
  return parts(scene.root, "[data-queue]").flatMap((el) => {
    // A .named pipe shows the names in its cells; a shut pipe is not drawn.
    const skipped = el.matches(`.handshake, .named, .shut [data-queue]:not([data-queue="pending"])`);
    const { tokens = [], drawn } = el;
    if (!drawn || tokens.length === 0 || skipped) return [];
    const lane = el.closest(".lane")?.lane;
    const [dx, dy] = lane?.at ?? [0, 0];
    const name = el.dataset.queue ?? "";
    return tokens.map((token, i) => {
      const [x, y] = scene.place([token.at[0] + dx, token.at[1] + dy]);
      const key = objectKey(token.key ?? "");
      const next = tokens[i + 1]; // in a story only the last token shows its name, so that names do not overlap
      const again = Boolean(next) && (Boolean(scene.story) || (key === objectKey(next.key ?? "") && key !== ""));
      const owner = lane?.id ?? "";
      return { key, rv: token.rv ?? "0", owner, in: name, x, y, left: leftward.has(name), type: token.type, again };
    });
  });
}

/** @param {Scene} scene @param {"store" | "indexer"} name @param {fold.Shelf | undefined} shelf */
export function showShelf(scene, name, shelf) {
  const rows = parts(scene.station(name), ".row");
  const n = shelf?.n ?? 0;
  scene.text(`${name}.n`, n);
  const known = shelf?.rows ?? [];
  const shown = known.slice(-(n > rows.length ? rows.length - 1 : rows.length));
  const newest = shown.at(-1)?.key;
  shown.sort((a, b) => (a.key < b.key ? -1 : 1));
  // The number of objects without a row: those that do not fit, and those that the fold has counted but not seen.
  const rest = n - shown.length;
  const missing = (name === "indexer" && scene.story?.missing(known)) || [];
  rows.forEach((row, i) => {
    const lost = missing[i - shown.length];
    const object = shown[i] ?? lost ?? null;
    const stands = i === shown.length + missing.length && rest > 0;
    for (const look of ["struck", "lacks"]) mark(row, look, lost?.look === look);
    mark(row, "newest", Boolean(object) && object.key === newest);
    showRow(scene, row, { object, rest: stands ? rest : 0, box: scene.geometry.boxes[name] });
  });
}

/**
 * @param {Scene} scene @param {HTMLElement} row
 * @param {{ object: fold.Row | null, rest: number, box: stage.Box }} what
 */
function showRow(scene, row, { object, rest, box }) {
  mark(row, "empty", !object && !rest);
  mark(row, "rest", rest > 0);
  mark(row, "followed", Boolean(object && scene.followed(object)));
  put(row, "data-key", object ? objectKey(object.key) : "");
  row.object = object;
  const rv = object?.rv ?? "";
  const room = box.W - 20 - digit * rv.length; // keeps the name off the version
  const name = object ? fitted(shortKey(object.key), rowFont, room) : rest ? `+${rest} more` : "";
  call(part(row, ".key"), name, scene.story?.names.get(rv));
  say(part(row, ".rv"), rv !== "0" ? rv : "");
}

// call writes a name or, for a version that a story has named, the pod's name and, in small type, the version's number.
/** @param {Element} el @param {string} name @param {string} [version] */
function call(el, name, version) {
  if (version === undefined) return say(el, name);
  if (el.textContent === version && el.firstElementChild) return;
  const [its, turn] = byTurn(version);
  el.replaceChildren(its, svg("tspan", { class: "turn" }, turn));
}

/** @param {Element} el @param {number} len @param {number} cap */
function nameOf(el, len, cap) {
  const name = `${el.closest(".lane")?.lane?.id ?? ""} ${el.dataset.queue}`.trim();
  if (el.classList.contains("handshake")) return `${name}: unbuffered${len > 0 ? ", handing over" : ""}`;
  if (cap === 0) return `${name}: ${len}`;
  return `${name}: ${len} of ${cap}${len >= cap ? ", full" : ""}`;
}

// showPipe shows a queue's length and, if drawn, tokens, oldest at the exit. If queue is unknown, expected is its cap.
/**
 * @param {Scene} scene @param {HTMLElement | undefined} el @param {fold.Queue | undefined} queue
 * @param {number} expected @param {boolean} [drawn]
 */
export function showPipe(scene, el, queue, expected, drawn = true) {
  if (!el) return;
  const cap = queue?.cap ?? expected ?? 0;
  const len = queue?.len ?? 0;
  put(el, "data-len", len);
  put(el, "data-cap", cap);
  if (!drawn) {
    if (el.drawn !== false) el.querySelector(".slots")?.replaceChildren();
    [el.drawn, el.tokens] = [false, []];
    return;
  }
  el.drawn = true;
  put(el, "aria-label", nameOf(el, len, cap));
  const tokens = queue?.tokens ?? [];
  if (el.classList.contains("handshake")) {
    el.tokens = tokens.slice(-1).map((token) => ({ ...token, at: [0, 0] }));
    mark(el, "met", len > 0);
  } else fillPipe(scene, el, { len, cap, tokens });
}

/** @param {Scene} scene @param {HTMLElement} el @param {{ len: number, cap: number, tokens: fold.Token[] }} queue */
function fillPipe(scene, el, { len, cap, tokens: known }) {
  const name = /** @type {import("./ground.js").Pipe} */ (el.dataset.queue);
  const g = scene.geometry.pipes[name];
  mark(el, "full", cap > 0 && len >= cap);
  const number = el.querySelector(".num");
  const whole = cap > 0 && !(el.closest(".lane") && document.documentElement.dataset.presenter === "on");
  if (number && name !== "pending") say(number, whole ? `${len}/${cap}` : len);
  const slots = cap <= scene.geometry.maxSlots ? cap : 0;
  showSlots(el, g, slots);
  const { names } = scene.story ?? {};
  const n = slots ? Math.min(len, slots) : drawnOf(g, len);
  const step = stepOf(g, len, slots);
  // For tokens from before a gap in the log, and for all but the newest 32, only the number is known.
  const tokens = [...Array.from({ length: Math.max(0, n - known.length) }, () => unknown), ...known.slice(-n || n)];
  el.tokens = tokens.map((token, i) => ({ ...token, at: cellOf(g, i, leftward.has(name), step) }));
  showHeld(scene, el, Math.min(g.H - 1, step * 1.25), Math.min(g.H - 1, Math.max(8, step * 1.25)));
  const called = (/** @type {fold.Token} */ token) => (token.type.endsWith("All") ? "all" : names?.get(token.rv)) ?? "";
  const wraps = name === "fifo"; // the FIFO's names wrap into rows
  if (cap === 0) showNames(el, g, names && step * (wraps ? 2 : 1) >= readable ? tokens.map(called) : [], wraps);
}

/** @param {HTMLElement} el @param {stage.Pipe} g @param {number} n */
function showSlots(el, g, n) {
  const slots = part(el, ".slots");
  if (slots.childElementCount === n) return;
  const width = g.W / n;
  slots.replaceChildren(...Array.from({ length: n }, (_, i) => (
    svg("rect", { class: "slot", x: (g.X + i * width).toFixed(2), y: g.Y, width: width.toFixed(2), height: g.H })
  )));
}

// showNames writes a story's names for versions into a queue's cells. If they wrap, the older names are above the pipe.
/** @param {HTMLElement} el @param {stage.Pipe} g @param {string[]} names @param {boolean} wraps */
function showNames(el, g, names, wraps) {
  const cells = pool(part(el, ".names"), names.length, () => (
    svg("g", {}, svg("rect", { height: g.H }), svg("text", { class: "mid", y: g.H / 2 + 5 }))
  ));
  const columns = wraps ? Math.floor(g.W / cellWidth) : names.length;
  const step = Math.min(cellWidth, g.W / columns);
  names.forEach((name, i) => {
    const [box, text] = cells[i].children;
    const up = Math.floor((names.length - 1) / columns) - Math.floor(i / columns);
    put(cells[i], "transform", `translate(${g.X + (i % columns) * step} ${g.Y - up * g.H})`);
    put(box, "width", step);
    put(text, "x", step / 2);
    call(text, "", name);
  });
  mark(el, "named", names.some(Boolean));
}

/** @param {Scene} scene @param {HTMLElement} el @param {number} width @param {number} size */
function showHeld(scene, el, width, size) {
  const { tokens = [] } = el;
  const held = pool(part(el, ".held"), tokens.length, () => svg("use"));
  tokens.forEach((token, i) => {
    /** @type {{ [name: string]: number }} */
    const box = { x: token.at[0] - width / 2, y: token.at[1] - size / 2, width, height: size };
    for (const [name, value] of Object.entries(box)) put(held[i], name, value.toFixed(1));
    put(held[i], "href", `#token-${shapeOf(token.type)}`);
    put(held[i], "data-key", objectKey(token.key));
    held[i].object = token;
    mark(held[i], "followed", scene.followed(token));
  });
}
