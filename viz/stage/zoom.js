// The zoom moves the camera to the stations of a story's beat, or to the presenter's station, and dims the others.

import { $, put } from "../dom/dom.js";

/**
 * @typedef {import("./ground.js").View} View
 * @typedef {import("./ground.js").Box} Box
 */

const flight = 380; // ms from one view to another
const handsOff = 4000; // ms after the viewer's last scroll or key press during which the page follows no token
const margin = 34; // units around a station
/** @param {View} a @param {View} b */
const same = (a, b) => a.x === b.x && a.y === b.y && a.w === b.w && a.h === b.h;
const nearest = 0.55; // the minimum share of the stage in a view, so that a beat's stations keep some surroundings

export class Zoom {
  /** @param {{ scene: page.Scene, motion: page.Motion }} stage */
  constructor({ scene, motion }) {
    this.scene = scene;
    this.motion = motion;
    this.frame = $("#stage");
    this.ground = $(".ground");
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.ratio = 1; // the frame's width divided by its height; every view has this ratio, to fill the frame
    this.whole = this.all();
    this.from = this.to = this.whole;
    this.aim = () => this.whole; // the view that the camera aims at
    this.began = 0;
    this.eye = 0; // the y of the camera while it follows a token
    this.framed = ""; // the lit stations
    this.touched = -handsOff; // when the viewer last scrolled or pressed a key
    this.scrolled = 0; // when the page last scrolled along
    this.own = ""; // the state of the viewer's own change
    this.rests = false; // set from that change's end until any input, or the next change
    /** @type {Element[]} */
    this.sought = []; // stations to scroll to if the stage is larger than its frame
    scene.relaid(() => {
      motion.clear();
      this.lay();
    });
    new ResizeObserver(() => {
      const { width, height } = this.frame.getBoundingClientRect();
      if (height > 0 && Math.abs(width / height - this.ratio) > 1e-3) this.lay();
    }).observe(this.frame);
    new ResizeObserver(() => this.center()).observe(this.ground);
    for (const by of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      addEventListener(by, () => {
        if (by !== "pointerdown") this.touched = performance.now();
        this.rests = false;
      }, { passive: true });
    }
    this.lay();
  }

  // all returns the view of the whole stage and of empty ground around it or, in a phone's first view, of one part.
  /** @returns {View} */
  all() {
    const { scene } = this;
    const { width, height } = this.frame.getBoundingClientRect();
    const ratio = (this.ratio = width > 0 && height > 0 ? width / height : scene.width / scene.height);
    if (this.goesAlong) {
      const h = scene.width / ratio;
      return { x: 0, y: Math.max(0, Math.min(scene.height - h, this.eye - h / 2)), w: scene.width, h };
    }
    const [w, h] = [Math.max(scene.width, scene.height * ratio), Math.max(scene.height, scene.width / ratio)];
    return { x: (scene.width - w) / 2, y: (scene.height - h) / 2, w, h };
  }

  /** @param {Box} box @param {number} [least] @returns {View} */
  viewOf(box, least = 0) {
    const { whole, ratio } = this;
    const h = Math.max(box.H + margin + 24, (box.W + 2 * margin) / ratio, least * whole.h);
    const w = h * ratio;
    const x = Math.min(whole.x + whole.w - w + 8, Math.max(whole.x - 8, box.X + box.W / 2 - w / 2));
    const y = Math.min(whole.y + whole.h - h + 6, Math.max(whole.y - 6, box.Y - 12 + box.H / 2 - h / 2));
    return { x, y, w, h };
  }

  // goesAlong reports whether the camera follows the moving token, as it does in a phone's first view.
  get goesAlong() { return this.scene.plain && this.scene.tall; }

  // boxAround returns the box around some stations. The wire, which spans the stage, counts only at the others' height.
  /** @param {probe.Station[]} names @returns {Box} */
  boxAround(names) {
    const { scene } = this;
    const { guest } = scene.geometry; // the client at the end of a lane
    const boxes = names.map(scene.boxOf).map((b, i) => (names[i] === "watcher" ? { ...b, W: guest.X + guest.W } : b));
    const long = names.length > 1 && !scene.tall ? names.indexOf("wire") : -1;
    const { Y: top, H: high } = boxes[long ? 0 : 1] ?? boxes[0];
    if (long >= 0) boxes[long] = { ...boxes[long], Y: top, H: high };
    return around([...boxes, ...(scene.story?.beside ?? [])]);
  }

  /** @param {() => View} next */
  fly(next) {
    this.aim = next;
    if (same(next(), this.to)) return;
    [this.from, this.to, this.began] = [{ ...this.scene.view }, next(), performance.now()];
  }

  // frameOn lights some stations and moves the camera there; without names, it shows the whole stage. If the stage is
  // larger than its frame, the frame scrolls to the stations.
  /** @param {string[]} names */
  frameOn(names) {
    this.sought = names.map((name) => this.scene.station(name));
    requestAnimationFrame(() => this.center());
    const asked = [...names, this.scene.story?.beside.length].join();
    if (asked === this.framed) return;
    this.framed = asked;
    for (const [name, el] of this.scene.stations) el.classList.toggle("bright", names.includes(name));
    this.frame.classList.toggle("dimmed", names.length > 0);
    this.fly(() => { // called again after each new layout
      const { whole } = this;
      const near = names.length > 0 && !this.scrolls();
      const view = near ? this.viewOf(this.boxAround(/** @type {probe.Station[]} */ (names)), nearest) : whole;
      return view.w < 0.95 * whole.w ? view : whole;
    });
  }

  scrolls() { return this.scene.tall || this.ground.scrollWidth > this.ground.clientWidth + 1; }

  // center scrolls the sought stations as close to the middle of the frame as possible. If the frame is as high as the
  // drawing, center scrolls the page, and keeps the stations above the story's panel.
  center() {
    const { sought, ground } = this;
    if (sought.length === 0 || !this.scrolls()) return;
    const { X, Y, W, H } = around(sought.map((el) => el.getBoundingClientRect())
      .map((spot) => ({ X: spot.x, Y: spot.y, W: spot.width, H: spot.height })));
    const root = document.scrollingElement ?? document.body;
    const page = ground.scrollHeight <= ground.clientHeight + 1 && root.scrollHeight > innerHeight + 1;
    const over = document.querySelector("#story:not([hidden])");
    const lowest = over?.getBoundingClientRect().top ?? innerHeight;
    const place = page ? { left: 0, right: innerWidth, top: 0, bottom: lowest } : ground.getBoundingClientRect();
    (page ? root : ground).scrollBy({
      left: X + (W - place.left - place.right) / 2,
      top: Math.min(Y + (H - place.top - place.bottom) / 2, Y - place.top - 8),
      behavior: this.still.matches ? "instant" : "smooth",
    });
  }

  // around moves the camera to one whole station. For the wire, it also shows the watchers that write to it.
  /** @param {string} name */
  around(name) {
    const names = /** @type {probe.Station[]} */ (name === "wire" ? ["watcher", name] : [name]);
    this.fly(() => this.viewOf(this.boxAround(names)));
  }

  /** @param {number} now */
  draw(now) {
    const [flies] = this.scene.tall ? this.motion.flying(this.motion.clock).slice(-1) : [];
    const { own = "" } = document.body.dataset;
    if (own !== this.own) [this.own, this.rests] = [own, own === "arrived"];
    if (flies?.followed && !this.goesAlong && !this.rests) this.scrollAlong(flies.now[1], now);
    if (flies && this.goesAlong) {
      this.eye += (flies.now[1] - this.eye) / 12;
      this.from = this.to = this.whole = this.all();
      return this.show({ ...this.to });
    }
    const { from, to } = this;
    if (same(this.scene.view, to)) return;
    // now, the beginning of the frame, may be before began
    const t = this.still.matches ? 1 : Math.min(1, Math.max(0, (now - this.began) / flight));
    const e = 1 - (1 - t) ** 3;
    const at = (/** @type {keyof View} */ side) => (t === 1 ? to[side] : from[side] + (to[side] - from[side]) * e);
    this.show({ x: at("x"), y: at("y"), w: at("w"), h: at("h") });
    if (t === 1) this.settle();
  }

  // scrollAlong keeps the token of a followed change in sight on the tall stage, unless the viewer has just scrolled.
  /** @param {number} y @param {number} now */
  scrollAlong(y, now) {
    if (now - this.touched < handsOff || now - this.scrolled < flight || this.sought.length > 0) return;
    this.scrolled = now;
    const matrix = this.scene.root.getScreenCTM();
    const place = matrix ? matrix.f + y * matrix.d : 0;
    if (place > 0.25 * innerHeight && place < 0.55 * innerHeight) return;
    scrollBy({ top: place - 0.45 * innerHeight, behavior: this.still.matches ? "instant" : "smooth" });
  }

  settle() {
    const { scene, to } = this;
    scene.stale = true; // the scene measures its texts again: cut and near hide some
    for (const [name, el] of scene.stations) el.classList.toggle("cut", this.cuts(/** @type {probe.Station} */ (name)));
    this.frame.classList.toggle("near", to.w < this.whole.w);
  }

  /** @param {View} view */
  show(view) {
    this.scene.view = view;
    put(this.scene.root, "viewBox", [view.x, view.y, view.w, view.h].map((v) => v.toFixed(2)).join(" "));
    this.motion.stale = true;
  }

  /** @param {probe.Station} name */
  cuts(name) {
    const { to, scene } = this;
    const { X, Y, W, H } = scene.boxOf(name);
    const [right, low] = name === "wire" && !scene.tall ? scene.geometry.turns["wire-texts"] : [X + W, Y + H];
    const within = X >= to.x && right <= to.x + to.w && Y - 26 >= to.y && low <= to.y + to.h;
    return !within && (name === "wire" || !this.framed.split(",").includes(name)); // a view may cut the wire
  }

  // lay applies the current view to a new layout or frame size.
  lay() {
    this.whole = this.all();
    this.from = this.to = this.aim();
    this.show({ ...this.to });
    this.settle();
  }
}

/** @param {Box[]} boxes @returns {Box} */
function around(boxes) {
  const [X, Y] = [Math.min(...boxes.map((b) => b.X)), Math.min(...boxes.map((b) => b.Y))];
  return { X, Y, W: Math.max(...boxes.map((b) => b.X + b.W)) - X, H: Math.max(...boxes.map((b) => b.Y + b.H)) - Y };
}
