// @ts-nocheck
// Pipes and shelves: queues with their tokens, slot by slot where they fit, and stores with their rows.

import { fitted } from "../dom/canvas.js";
import { mark, pool, put, say, svg } from "../dom/dom.js";
import { cut } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";
import { shapeOf } from "./tokens.js";

export const leftward = new Set(["fifo", "pending", "workqueue", "add", "next"]); // the client half runs right to left

const cellWidth = 24; // units of a cell with a name in it
const rowFont = "15px system-ui, sans-serif"; // of a shelf's rows, as a presenter has them
const digit = 9.6; // units, the widest
const unknown = { type: "", key: "", rv: "0" };

// twin is the double outline of what is followed.
export const twin = () => svg("g", { class: "twin" }, svg("circle", { r: 9.5 }), svg("circle", { r: 13 }));

let own = ""; // how the names of a story's pods begin

// callOwn leaves out the beginning that the names of a story's pods have in common; "": no story is told.
export const callOwn = (prefix) => (own = prefix);

// shortKey leaves out what goes without saying: the namespace, and the story.
export function shortKey(key) {
  const name = objectKey(key).replace(/^default\//, "");
  return own && name.startsWith(own) ? name.slice(own.length) : name;
}

// brief is a name of at most n letters. Of a longer one with dots the first part says enough: of a node, a definition.
export const brief = (name, n) => cut(name.length > n ? name.split(".")[0] : name, n);

// cellOf is where the n-th token of a queue stands, n from 0 at the exit: a token for each slot, or as many as fit.
export function cellOf(pipe, n, slots, left, step = slots > 0 ? pipe.W / slots : 15) {
  const along = (Math.min(n, slots > 0 ? slots - 1 : Math.floor(pipe.W / step) - 1) + 0.5) * step;
  return [left ? pipe.X + along : pipe.X + pipe.W - along, pipe.Y + pipe.H / 2];
}

// heldIn returns the tokens that the pipes draw, with the queue they are in and where on the stage that is.
export function heldIn(scene) {
  return [...scene.root.querySelectorAll("[data-queue]")].flatMap((el) => {
    const skipped = el.matches(".handshake, .named"); // what a story names has its name in its cell
    if (!el.drawn || !el.tokens?.length || skipped) return [];
    const { id: owner = "", at: [dx, dy] = [0, 0] } = el.closest(".lane")?.lane ?? {};
    const name = el.dataset.queue;
    return el.tokens.map((token, i) => {
      const [x, y] = scene.place([token.at[0] + dx, token.at[1] + dy]);
      const key = objectKey(token.key ?? "");
      const next = el.tokens[i + 1]; // in a story only the last one has its name, where it covers none
      const again = Boolean(next) && (Boolean(scene.told?.story) || (key === objectKey(next.key ?? "") && key !== ""));
      return { key, rv: token.rv ?? "0", owner, in: name, x, y, left: leftward.has(name), type: token.type, again };
    });
  });
}

export function showShelf(scene, name, shelf) {
  const station = scene.stations.get(name);
  const n = shelf?.n ?? 0;
  scene.text(`${name}.n`, n);
  const rows = station.querySelectorAll(".row");
  const known = shelf?.rows ?? [];
  const shown = known.slice(-(n > rows.length ? rows.length - 1 : rows.length));
  const newest = shown.at(-1)?.key;
  shown.sort((a, b) => (a.key < b.key ? -1 : 1));
  if (name === "store") scene.store = known;
  const width = scene.geometry.boxes[name].W;
  // Those without a row. Of some the picture knows how many, not which: they have not changed since the first list.
  const rest = n - shown.length;
  const { names, snapshot } = scene.told ?? {};
  const old = name === "store" && snapshot && !known.some((each) => each.rv === snapshot) ? snapshot : "";
  rows.forEach((row, i) => {
    const object = shown[i];
    const earlier = i === shown.length && old; // a version that a list was answered with
    const stands = i === shown.length + (old ? 1 : 0) && rest > 0;
    mark(row, "empty", !object && !stands && !earlier);
    mark(row, "rest", stands);
    mark(row, "earlier", Boolean(earlier));
    mark(row, "newest", Boolean(object) && object.key === newest);
    mark(row, "followed", Boolean(object) && scene.followed(object));
    put(row, "data-key", object ? objectKey(object.key) : "");
    row.object = object ?? null;
    const rv = earlier || object?.rv || "";
    const room = width - 20 - digit * rv.length; // the version never covers the name
    const name = object ? fitted(shortKey(object.key), rowFont, room) : stands ? `+${rest} more` : "";
    say(row.querySelector(".key"), names?.get(rv) ?? name);
    say(row.querySelector(".rv"), rv !== "0" ? rv : "");
  });
}

// nameOf says in words what a queue's drawing shows, and whose it is.
function nameOf(el, len, cap) {
  const lane = el.closest(".lane")?.dataset ?? {};
  const whose = lane.watcher ?? lane.listener ?? lane.workqueue ?? "";
  const name = `${whose} ${el.dataset.queue}`.trim();
  if (el.classList.contains("handshake")) return `${name}: unbuffered${len > 0 ? ", handing over" : ""}`;
  if (cap === 0) return `${name}: ${len}`;
  return `${name}: ${len} of ${cap}${len >= cap ? ", full" : ""}`;
}

// showPipe draws a queue as slots or as a gauge, with its tokens where they fit. The oldest stands at the exit. Of one
// in a lane that there is no room for nothing is drawn, and its attributes say how it is.
export function showPipe(scene, el, queue, expected, drawn = true) {
  if (!el) return;
  const name = el.dataset.queue;
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
  const g = scene.geometry.pipes[name];
  if (el.classList.contains("handshake")) {
    el.tokens = (queue?.tokens ?? []).slice(-1);
    mark(el, "met", len > 0);
    return;
  }
  mark(el, "full", cap > 0 && len >= cap);
  const number = el.querySelector(".num");
  const whole = cap > 0 && !(el.closest(".lane") && document.documentElement.dataset.presenter === "on");
  if (number && name !== "pending") say(number, whole ? `${len}/${cap}` : String(len));
  const slots = cap <= scene.geometry.maxSlots ? cap : 0;
  showSlots(el, g, slots);
  const { names } = scene.told ?? {};
  const fit = slots || Math.floor(g.W / (names ? 12 : 15));
  const step = slots ? g.W / slots : len > g.W / 15 ? 12 : 15;
  const known = queue?.tokens ?? [];
  // after a gap only their number is known
  const tokens = len <= fit ? [...new Array(Math.max(0, len - known.length)).fill(unknown), ...known] : [];
  el.tokens = tokens.map((token, i) => ({ ...token, at: cellOf(g, i, slots, leftward.has(name), step) }));
  showHeld(scene, el, Math.min(g.H - 1, Math.max(8, step * 1.25)));
  const called = (token) => (token.type.endsWith("All") ? "all" : names.get(token.rv)) ?? "";
  if (cap === 0) showNames(el, g, names ? tokens.map(called) : [], name === "fifo");
  const fill = el.querySelector(".fill");
  const width = slots || len <= fit ? 0 : cap > 0 ? Math.max(4, ((g.W - 4) * len) / cap) : g.W - 4;
  put(fill, "width", Math.min(g.W - 4, width).toFixed(1));
  put(fill, "x", leftward.has(name) ? g.X + 2 : g.X + g.W - 2 - width);
}

function showSlots(el, g, n) {
  const slots = el.querySelector(".slots");
  if (slots.childElementCount === n) return;
  const width = g.W / n;
  slots.replaceChildren(...Array.from({ length: n }, (_, i) => (
    svg("rect", { class: "slot", x: (g.X + i * width).toFixed(2), y: g.Y, width: width.toFixed(2), height: g.H })
  )));
}

// showNames writes into the cells of a queue of the client half what a story calls the versions in them. The FIFO has
// room for several rows, of which the newest stands in the pipe.
function showNames(el, g, names, wraps) {
  const cells = pool(el.querySelector(".names"), names.length, () => (
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
    say(text, name);
  });
  mark(el, "named", names.some(Boolean));
}

// showHeld draws the tokens of a queue, each so large, and a ring around what is followed.
function showHeld(scene, el, size) {
  const held = pool(el.querySelector(".held"), el.tokens.length, () => svg("use"));
  el.tokens.forEach((token, i) => {
    const box = { x: token.at[0] - size / 2, y: token.at[1] - size / 2, width: size, height: size };
    for (const [name, value] of Object.entries(box)) put(held[i], name, value.toFixed(1));
    put(held[i], "href", `#token-${shapeOf(token.type)}`);
    put(held[i], "data-key", objectKey(token.key));
    held[i].object = token;
    mark(held[i], "followed", scene.followed(token));
  });
  const followed = el.tokens.filter(scene.followed);
  const twins = pool(el.querySelector(".rings"), followed.length, twin);
  followed.forEach(({ at: [x, y] }, n) => {
    put(twins[n], "transform", `translate(${x.toFixed(1)} ${y}) scale(${(size / 20).toFixed(2)})`);
  });
}
