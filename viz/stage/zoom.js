// The zoom: the whole path, or the stations that a story or a presenter is about. The others are dimmed then,
// and the camera goes there. The glyphs are the same.

import { $, mark, parts, put } from "../dom/dom.js";

/**
 * @typedef {import("./ground.js").View} View
 * @typedef {import("./ground.js").Box} Box
 */

const flight = 380; // ms from one view to another
const margin = 34; // units around a station
const flags = 90; // units beside the lanes of a story's cast
/** @param {View} a @param {View} b */
const same = (a, b) => a.x === b.x && a.y === b.y && a.w === b.w && a.h === b.h;
const nearest = 0.55; // of the stage's width that is framed, at least: what surrounds a beat's stations stays in sight

export class Zoom {
  /** @param {{ scene: page.Scene, motion: page.Motion }} stage */
  constructor({ scene, motion }) {
    this.scene = scene;
    this.motion = motion;
    this.frame = $("#stage");
    this.ground = $(".ground");
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.ratio = 1; // of the place in which the stage is shown: every view has it, so that a view fills that place
    this.whole = this.all();
    this.from = this.to = this.whole;
    this.aim = () => this.whole; // what is looked at
    this.began = 0;
    this.framed = ""; // the stations that are lit
    /** @type {Element[]} */
    this.sought = []; // those that come into sight where the stage is larger than its place
    scene.relaid(() => {
      motion.clear();
      this.lay();
    });
    new ResizeObserver(() => {
      const { width, height } = this.frame.getBoundingClientRect();
      if (height > 0 && Math.abs(width / height - this.ratio) > 1e-3) this.lay();
    }).observe(this.frame);
    new ResizeObserver(() => this.center()).observe(this.ground);
    this.lay();
  }

  // all is the view of everything. A place that has not the stage's proportions shows some ground beside it.
  /** @returns {View} */
  all() {
    const { scene } = this;
    const { width, height } = this.frame.getBoundingClientRect();
    const ratio = (this.ratio = width > 0 && height > 0 ? width / height : scene.width / scene.height);
    const [w, h] = [Math.max(scene.width, scene.height * ratio), Math.max(scene.height, scene.width / ratio)];
    return { x: (scene.width - w) / 2, y: (scene.height - h) / 2, w, h };
  }

  // viewOf is a box with its surroundings.
  /** @param {Box} box @param {number} [least] @returns {View} */
  viewOf(box, least = 0) {
    const { whole, ratio } = this;
    const h = Math.max(box.H + margin + 24, (box.W + 2 * margin) / ratio, least * whole.h);
    const w = h * ratio;
    const x = Math.min(whole.x + whole.w - w + 8, Math.max(whole.x - 8, box.X + box.W / 2 - w / 2));
    const y = Math.min(whole.y + whole.h - h + 6, Math.max(whole.y - 6, box.Y - 12 + box.H / 2 - h / 2));
    return { x, y, w, h };
  }

  get casts() { return (this.scene.story?.members.length ?? 0) > 0; } // is a story's cast on the stage?

  // boxAround has all the stations in it. The wire, which goes from top to bottom, is as high as the others.
  /** @param {probe.Station[]} names @returns {Box} */
  boxAround(names) {
    const { scene } = this;
    const more = this.casts && !scene.tall ? flags : 0;
    const boxes = names.map(scene.boxOf).map((b, i) => (names[i] === "watcher" ? { ...b, W: b.W + more } : b));
    const long = names.length > 1 && !scene.tall ? names.indexOf("wire") : -1;
    const { Y: top, H: high } = boxes[long ? 0 : 1] ?? boxes[0];
    if (long >= 0) boxes[long] = { ...boxes[long], Y: top, H: high };
    const [X, Y] = [Math.min(...boxes.map((b) => b.X)), Math.min(...boxes.map((b) => b.Y))];
    return { X, Y, W: Math.max(...boxes.map((b) => b.X + b.W)) - X, H: Math.max(...boxes.map((b) => b.Y + b.H)) - Y };
  }

  // fly turns the camera to what is looked at from now on.
  /** @param {() => View} next */
  fly(next) {
    this.aim = next;
    if (same(next(), this.to)) return;
    [this.from, this.to, this.began] = [{ ...this.scene.view }, next(), performance.now()];
  }

  // frameOn lights some stations and goes there; none: everything, from afar. Where the stage is wider than its place,
  // its place scrolls to those that are to be seen.
  /** @param {string[]} names @param {string[]} [seen] */
  frameOn(names, seen = names) {
    this.sought = seen.map((name) => this.scene.station(name));
    requestAnimationFrame(() => this.center());
    const asked = [...names, this.casts].join();
    if (asked === this.framed) return;
    this.framed = asked;
    for (const [name, el] of this.scene.stations) el.classList.toggle("bright", names.includes(name));
    this.frame.classList.toggle("dimmed", names.length > 0);
    this.fly(() => { // asked again when the stage is laid out anew
      const { whole } = this;
      const near = names.length > 0 && !this.scrolls();
      const view = near ? this.viewOf(this.boxAround(/** @type {probe.Station[]} */ (names)), nearest) : whole;
      return view.w < 0.95 * whole.w ? view : whole;
    });
  }

  scrolls() { return this.scene.tall || this.ground.scrollWidth > this.ground.clientWidth + 1; }

  // center scrolls until what is sought is in the middle of its place, as far as that is possible. Where the place is
  // as high as the drawing it scrolls the page, and keeps that above what lies on its lower edge.
  center() {
    const { sought, ground } = this;
    if (sought.length === 0 || !this.scrolls()) return;
    const spots = sought.map((el) => el.getBoundingClientRect());
    const [left, top] = [Math.min(...spots.map((spot) => spot.left)), Math.min(...spots.map((spot) => spot.top))];
    const right = Math.max(...spots.map((spot) => spot.right));
    const bottom = Math.max(...spots.map((spot) => spot.bottom));
    const root = document.scrollingElement ?? document.body;
    const page = ground.scrollHeight <= ground.clientHeight + 1 && root.scrollHeight > innerHeight + 1;
    const over = document.querySelector("#story:not([hidden])");
    const lowest = over?.getBoundingClientRect().top ?? innerHeight;
    const place = page ? { left: 0, right: innerWidth, top: 0, bottom: lowest } : ground.getBoundingClientRect();
    (page ? root : ground).scrollBy({
      left: (left + right - place.left - place.right) / 2,
      top: Math.min((top + bottom - place.top - place.bottom) / 2, top - place.top - 8),
      behavior: this.still.matches ? "instant" : "smooth",
    });
  }

  // around shows a station whole.
  /** @param {string} name */
  around(name) { this.fly(() => this.viewOf(this.scene.boxOf(/** @type {probe.Station} */ (name)))); }

  /** @param {number} now */
  draw(now) {
    const { from, to } = this;
    if (same(this.scene.view, to)) return;
    // a frame may be older than what it draws
    const t = this.still.matches ? 1 : Math.min(1, Math.max(0, (now - this.began) / flight));
    const e = 1 - (1 - t) ** 3;
    const at = (/** @type {keyof View} */ side) => (t === 1 ? to[side] : from[side] + (to[side] - from[side]) * e);
    this.show({ x: at("x"), y: at("y"), w: at("w"), h: at("h") });
    if (t === 1) this.settle();
  }

  settle() {
    const { scene, to } = this;
    scene.stale = true; // what stands beside the drawing stands there again
    for (const [name, el] of scene.stations) el.classList.toggle("cut", this.cuts(/** @type {probe.Station} */ (name)));
    this.frame.classList.toggle("near", to.w < this.whole.w);
    const { X, W } = scene.boxOf("watcher"); // beside its lanes are the flags of a story's cast
    for (const name of ["wire.bytes", "wire.n", "wire.streams", "wire.others"]) {
      const el = scene.texts.get(name);
      if (el) mark(el, "cut", !scene.tall && Number(el.getAttribute("y")) + 4 > to.y + to.h);
    }
    mark($("#cast"), "cut", X + W < to.x + to.w && X + W + flags > to.x + to.w);
    for (const [css, left] of /** @type {const} */ ([["#legend", 44], ['[data-text="server.state"]', 164]])) {
      put($(css), "transform", `translate(${Math.max(0, to.x - left).toFixed(1)} 0)`);
    }
    for (const el of parts(scene.root, "#legend > *")) {
      const { x, width } = /** @type {SVGGraphicsElement} */ (/** @type {unknown} */ (el)).getBBox();
      mark(el, "cut", x + width + Math.max(0, to.x - 44) > to.x + to.w);
    }
  }

  // show turns the camera. What is painted on the canvas goes by the same view.
  /** @param {View} view */
  show(view) {
    this.scene.view = view;
    put(this.scene.root, "viewBox", [view.x, view.y, view.w, view.h].map((v) => v.toFixed(2)).join(" "));
    this.motion.touch();
  }

  // cuts reports whether an edge of the stage goes through a station: what is written there would be cut.
  /** @param {probe.Station} name */
  cuts(name) {
    const { to } = this;
    const { X, Y, W, H } = this.scene.boxOf(name);
    const within = X >= to.x && X + W <= to.x + to.w && Y - 26 >= to.y && Y + H <= to.y + to.h;
    return !within && !this.framed.split(",").includes(name);
  }

  // lay shows what is looked at as the stage and its place are now.
  lay() {
    this.whole = this.all();
    this.from = this.to = this.aim();
    this.show({ ...this.to });
    this.settle();
  }
}
