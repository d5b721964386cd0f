// The zoom: the whole path, one station, one cell of it. Coming closer, the station fills the stage, its neighbours are
// what is left and right of it, and what was too small to be written is written. The glyphs are the same. A story frames the
// stations that a beat is about: the others are dimmed, and the camera goes there.

import { cut, put, say, toMiddle } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";
import { clockText, milliseconds } from "../lib/times.js";

const flight = 380; // ms from one view to another
const margin = 34; // units around a station
const nearest = 0.55; // of the stage's width that is framed, at least: what surrounds a beat's stations stays in sight

export function newZoom(stage) {
  const { scene, follow, player } = stage;
  const frame = document.querySelector("#stage");
  const out = document.querySelector("#zoom-out");
  const card = document.querySelector("#cell");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const all = () => ({ x: 0, y: 0, w: scene.width, h: scene.height });
  let whole = all();
  let station = "";
  let from = whole;
  let to = whole;
  let began = 0;
  let cell = null; // {token, where} that is looked at
  let base = whole; // what is in sight when no station is zoomed to
  let framed = ""; // the stations of a story's beat

  // viewOf is a box with its surroundings, in the proportions of the stage.
  function viewOf(box, least = 0) {
    const h = Math.max(box.H + margin + 24, ((box.W + 2 * margin) * whole.h) / whole.w, least * whole.h);
    const w = (h * whole.w) / whole.h;
    const x = Math.min(whole.w - w + 8, Math.max(-8, box.X + box.W / 2 - w / 2));
    const y = Math.min(whole.h - h + 6, Math.max(-6, box.Y - 12 + box.H / 2 - h / 2));
    return { x, y, w, h };
  }

  // boxAround is the smallest box that has all the stations in it. The wire, which goes from top to bottom, is as high as the others.
  function boxAround(names) {
    const boxes = names.map(scene.boxOf);
    const long = names.length > 1 && !scene.tall ? names.indexOf("wire") : -1;
    if (long >= 0) boxes[long] = { ...boxes[long], Y: boxes[long ? 0 : 1].Y, H: boxes[long ? 0 : 1].H };
    const [X, Y] = [Math.min(...boxes.map((b) => b.X)), Math.min(...boxes.map((b) => b.Y))];
    return { X, Y, W: Math.max(...boxes.map((b) => b.X + b.W)) - X, H: Math.max(...boxes.map((b) => b.Y + b.H)) - Y };
  }

  // frameOn lights some stations and goes there; none: everything, from afar. Where the stage is wider than its place, it is the
  // place that goes there.
  function frameOn(names) {
    if (names.join() === framed) return;
    framed = names.join();
    for (const [name, el] of scene.stations) el.classList.toggle("bright", names.includes(name));
    frame.classList.toggle("dimmed", names.length > 0);
    const ground = frame.parentElement;
    const scrolls = scene.tall || ground.scrollWidth > ground.clientWidth + 1;
    if (scrolls && names.length > 0) requestAnimationFrame(() => toMiddle(ground, ...names.map((name) => scene.stations.get(name))));
    const view = names.length > 0 && !scrolls ? viewOf(boxAround(names), nearest) : whole;
    const next = view.w < 0.95 * whole.w ? view : whole;
    if (base.x === next.x && base.y === next.y && base.w === next.w) return;
    base = next;
    if (station) go("");
    else [from, to, began] = [{ ...scene.view }, base, performance.now()];
  }

  function go(name) {
    if (name === station) return;
    station = name;
    [from, to, began] = [{ ...scene.view }, name ? viewOf(scene.boxOf(name)) : base, performance.now()];
    put(frame, "data-zoom", name ? "station" : "overview");
    put(frame, "data-station-shown", name);
    for (const [other, el] of scene.stations) el.classList.toggle("shown", other === name);
    out.hidden = !name;
    if (!name) lookAt(null);
    if (name) scene.stations.get(name)?.focus?.({ preventScroll: true });
  }

  function draw(now) {
    if (scene.view.x === to.x && scene.view.w === to.w && scene.view.y === to.y) return;
    const t = still.matches ? 1 : Math.min(1, Math.max(0, (now - began) / flight)); // a frame may be older than what it draws
    const e = 1 - (1 - t) ** 3;
    for (const side of ["x", "y", "w", "h"]) scene.view[side] = t === 1 ? to[side] : from[side] + (to[side] - from[side]) * e;
    const { x, y, w, h } = scene.view;
    put(scene.root, "viewBox", [x, y, w, h].map((v) => v.toFixed(2)).join(" "));
    stage.motion.touch();
    if (t < 1) return;
    scene.stale = true; // what stands beside the drawing stands there again
    for (const [name, el] of scene.stations) el.classList.toggle("cut", cuts(name));
    frame.classList.toggle("near", to.w < whole.w);
  }

  // cuts reports whether an edge of the stage goes through a station: what is written there would be cut.
  function cuts(name) {
    const { X, Y, W, H } = scene.boxOf(name);
    const within = X >= to.x && X + W <= to.x + to.w && Y - 26 >= to.y && Y + H <= to.y + to.h;
    return !within && name !== station && !framed.split(",").includes(name);
  }

  // lookAt shows one cell: what stands in a slot of the ring, or of a queue.
  function lookAt(found) {
    cell = found;
    card.hidden = !found;
    if (station) put(frame, "data-zoom", found ? "cell" : "station");
    if (found) fill();
  }

  function fill() {
    const { token, where } = cell;
    say(card.querySelector("h3"), `${cut(token.type || "event", 12)} ${cut(objectKey(token.key), 48)}`);
    const rows = [["resource version", token.rv], ...where];
    const list = card.querySelector("dl");
    list.replaceChildren();
    for (const [name, value] of rows) {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.textContent = name;
      dd.textContent = value;
      list.append(dt, dd);
    }
  }

  // cellOf finds what a person pointed at: a place in the ring, a token in a queue.
  function cellOf(el) {
    const res = stage.state.resources[stage.resource];
    const pos = el.closest(".cell")?.dataset.pos;
    if (pos) {
      const token = res.ring.cells.find((each) => each.pos === Number(pos));
      if (!token) return null;
      const age = `${milliseconds(stage.state.t - token.t)}, since ${clockText(token.t, 1)}`;
      return { token, where: [["position", pos], [`slot, % ${res.ring.capacity}`, String(token.pos % res.ring.capacity)], ["age", age]] };
    }
    const held = el.closest(".held use");
    const pipe = el.closest("[data-queue]");
    if (!held || !pipe) return null;
    const index = [...held.parentNode.children].indexOf(held);
    const lane = el.closest("[data-watcher], [data-listener], [data-workqueue]");
    const id = lane?.dataset.watcher ?? lane?.dataset.listener ?? lane?.dataset.workqueue;
    const queue = id ? res.subjects[id]?.queues[pipe.dataset.queue] : Object.values(res.subjects).map((s) => s.queues[pipe.dataset.queue]).find((q) => q?.tokens.length > index);
    const token = queue?.tokens[index];
    return token && { token, where: [["queue", `${pipe.dataset.queue}${id ? ` of ${id}` : ""}`], ["place from the exit", String(index)], ["filled", `${queue.len}${queue.cap ? ` of ${queue.cap}` : ""}`]] };
  }

  scene.relaid(() => {
    whole = base = from = to = all();
    stage.motion.clear();
    scene.stale = true;
  });

  const target = () => document.activeElement?.closest?.("[data-station]")?.dataset.station ?? document.querySelector(".station.told")?.dataset.station;

  scene.root.addEventListener("dblclick", (event) => {
    const name = event.target.closest("[data-station]")?.dataset.station;
    if (!name) return go("");
    stage.inspector.close();
    go(name === station ? "" : name);
  });
  scene.root.addEventListener("click", (event) => {
    if (!station) return;
    const found = cellOf(event.target);
    if (!found) return;
    event.stopImmediatePropagation(); // it is looked at more closely, not into its station
    lookAt(found);
  }, true);
  out.addEventListener("click", () => go(""));
  card.querySelector(".close").addEventListener("click", () => lookAt(null));
  card.querySelector(".follow").addEventListener("click", () => cell && follow.set(objectKey(cell.token.key)));
  card.querySelector(".since").addEventListener("click", async () => {
    const rv = cell?.token.rv;
    const seq = rv && (await player.tape.find(player.cursor, -1, player.oldest + 1, player.head, (r) => r.rv === rv && stage.here(r)).catch(() => 0));
    return seq ? player.seek(seq) : stage.tell("its moment has left the log");
  });
  return {
    frameOn, go, draw,
    shown: () => cell && fill(),
    resource: () => lookAt(null),
    escape: () => (cell ? (lookAt(null), true) : station ? (go(""), true) : false),
    keys: [[["z"], "come closer to the station that has the focus, or back", () => {
      if (document.body.dataset.view === "space-time") return stage.tell("come closer on the stage: V changes the view");
      const name = station ? "" : target();
      return name === undefined ? stage.tell("choose a station first: Tab walks through them") : go(name);
    }]],
  };
}
