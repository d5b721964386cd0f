// @ts-nocheck
// The zoom: the whole path, or the stations that a story, the tour or a presenter is about. The others are dimmed then,
// and the camera goes there. The glyphs are the same.

import { $, mark, put } from "../dom/dom.js";

const flight = 380; // ms from one view to another
const margin = 34; // units around a station
const sides = ["x", "y", "w", "h"]; // of a view
const same = (a, b) => sides.every((side) => a[side] === b[side]);
const nearest = 0.55; // of the stage's width that is framed, at least: what surrounds a beat's stations stays in sight

export function newZoom(stage) {
  const { scene } = stage;
  const frame = $("#stage");
  const ground = frame.parentElement;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let whole, from, to; // views
  let ratio = 1; // of the place in which the stage is shown: every view has it, so that a view fills that place
  let aim = () => whole; // what is looked at
  let began = 0;
  let framed = ""; // the stations that are lit
  let sought = []; // those that come into sight where the stage is larger than its place

  // all is the view of everything. A place that has not the stage's proportions shows some ground beside it.
  function all() {
    const { width, height } = frame.getBoundingClientRect();
    ratio = width > 0 && height > 0 ? width / height : scene.width / scene.height;
    const [w, h] = [Math.max(scene.width, scene.height * ratio), Math.max(scene.height, scene.width / ratio)];
    return { x: (scene.width - w) / 2, y: (scene.height - h) / 2, w, h };
  }

  // viewOf is a box with its surroundings.
  function viewOf(box, least = 0) {
    const h = Math.max(box.H + margin + 24, (box.W + 2 * margin) / ratio, least * whole.h);
    const w = h * ratio;
    const x = Math.min(whole.x + whole.w - w + 8, Math.max(whole.x - 8, box.X + box.W / 2 - w / 2));
    const y = Math.min(whole.y + whole.h - h + 6, Math.max(whole.y - 6, box.Y - 12 + box.H / 2 - h / 2));
    return { x, y, w, h };
  }

  // boxAround has all the stations in it. The wire, which goes from top to bottom, is as high as the others.
  function boxAround(names) {
    const flags = scene.told?.members.length > 0 && !scene.tall ? 96 : 0; // beside the lanes of a story's cast
    const boxes = names.map(scene.boxOf).map((b, i) => (names[i] === "watcher" ? { ...b, W: b.W + flags } : b));
    const long = names.length > 1 && !scene.tall ? names.indexOf("wire") : -1;
    const { Y: top, H: high } = boxes[long ? 0 : 1] ?? {};
    if (long >= 0) boxes[long] = { ...boxes[long], Y: top, H: high };
    const [X, Y] = [Math.min(...boxes.map((b) => b.X)), Math.min(...boxes.map((b) => b.Y))];
    return { X, Y, W: Math.max(...boxes.map((b) => b.X + b.W)) - X, H: Math.max(...boxes.map((b) => b.Y + b.H)) - Y };
  }

  // fly turns the camera to what is looked at from now on.
  function fly(next) {
    aim = next;
    if (!same(aim(), to)) [from, to, began] = [{ ...scene.view }, aim(), performance.now()];
  }

  // frameOn lights some stations and goes there; none: everything, from afar. Where the stage is wider than its place,
  // its place scrolls to those that are to be seen.
  function frameOn(names, seen = names) {
    sought = seen.map((name) => scene.stations.get(name));
    requestAnimationFrame(center);
    const asked = [...names, scene.told?.members.length > 0].join();
    if (asked === framed) return;
    framed = asked;
    for (const [name, el] of scene.stations) el.classList.toggle("bright", names.includes(name));
    frame.classList.toggle("dimmed", names.length > 0);
    const near = names.length > 0 && !scrolls();
    fly(() => {
      const view = near ? viewOf(boxAround(names), nearest) : whole;
      return view.w < 0.95 * whole.w ? view : whole;
    });
  }

  const scrolls = () => scene.tall || ground.scrollWidth > ground.clientWidth + 1;

  // center scrolls until what is sought is in the middle of its place, as far as that is possible. Where the place is
  // as high as the drawing it scrolls the page, and keeps that above what lies on its lower edge.
  function center() {
    if (sought.length === 0 || !scrolls()) return;
    const spots = sought.map((el) => el.getBoundingClientRect());
    const [left, top] = ["left", "top"].map((side) => Math.min(...spots.map((spot) => spot[side])));
    const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...spots.map((spot) => spot[side])));
    const root = document.scrollingElement;
    const page = ground.scrollHeight <= ground.clientHeight + 1 && root.scrollHeight > innerHeight + 1;
    const over = $("#tour:not([hidden]), #story:not([hidden])");
    const lowest = over?.getBoundingClientRect().top ?? innerHeight;
    const place = page ? { left: 0, right: innerWidth, top: 0, bottom: lowest } : ground.getBoundingClientRect();
    (page ? root : ground).scrollBy({
      left: (left + right - place.left - place.right) / 2,
      top: Math.min((top + bottom - place.top - place.bottom) / 2, top - place.top - 8),
      behavior: still.matches ? "instant" : "smooth",
    });
  }

  // around shows a station whole.
  const around = (name) => fly(() => viewOf(scene.boxOf(name)));

  function draw(now) {
    if (same(scene.view, to)) return;
    // a frame may be older than what it draws
    const t = still.matches ? 1 : Math.min(1, Math.max(0, (now - began) / flight));
    const e = 1 - (1 - t) ** 3;
    show(Object.fromEntries(sides.map((s) => [s, t === 1 ? to[s] : from[s] + (to[s] - from[s]) * e])));
    if (t === 1) settle();
  }

  function settle() {
    scene.stale = true; // what stands beside the drawing stands there again
    for (const [name, el] of scene.stations) el.classList.toggle("cut", cuts(name));
    frame.classList.toggle("near", to.w < whole.w);
    for (const [css, left] of [["#legend", 44], ['[data-text="server.state"]', 164]]) {
      put(scene.root.querySelector(css), "transform", `translate(${Math.max(0, to.x - left).toFixed(1)} 0)`);
    }
    const ends = ({ x, width }) => x + width + Math.max(0, to.x - 44);
    for (const el of scene.root.querySelector("#legend").children) mark(el, "cut", ends(el.getBBox()) > to.x + to.w);
  }

  // show turns the camera. What is painted on the canvas goes by the same view.
  function show(view) {
    scene.view = view;
    put(scene.root, "viewBox", Object.values(view).map((v) => v.toFixed(2)).join(" "));
    stage.motion.touch();
  }

  // cuts reports whether an edge of the stage goes through a station: what is written there would be cut.
  function cuts(name) {
    const { X, Y, W, H } = scene.boxOf(name);
    const within = X >= to.x && X + W <= to.x + to.w && Y - 26 >= to.y && Y + H <= to.y + to.h;
    return !within && !framed.split(",").includes(name);
  }

  // lay shows what is looked at as the stage and its place are now.
  function lay() {
    whole = all();
    from = to = aim();
    show({ ...to });
    settle();
  }

  scene.relaid(() => {
    stage.motion.clear();
    lay();
  });
  new ResizeObserver(() => {
    const { width, height } = frame.getBoundingClientRect();
    if (height > 0 && Math.abs(width / height - ratio) > 1e-3) lay();
  }).observe(frame);
  new ResizeObserver(center).observe(ground);
  lay();
  return { frameOn, around, draw };
}
