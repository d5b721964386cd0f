// The inspector: what a station, a queue or one watcher is, how it stands, and the lines of code behind it. Each leaf
// is a piece of HTML with an address of its own (/viz/part/), made by the program; what follows from the picture at
// the cursor is filled in here.
//
// The code leaf goes with the records: stepping lights the line that reported the record, whatever file it is in; live,
// it goes with what is followed, or shows what was reported here last.

import { $, copied, elementOf, make, mark, part, parts, put, say, when } from "../dom/dom.js";
import { program, queryOf, refusal, text } from "../lib/api.js";
import { stateOf } from "./state.js";
import { newWhy } from "./why.js";

const renewal = 700; // ms between two readings of the same leaf while records come
const pace = 420; // ms that a line stays lit, live
const living = new Set(["history", "bytes"]); // leaves that the program makes for a record

/**
 * @typedef {import("./state.js").Place} Place
 * @typedef {{ point?: string, q?: string }} Extra
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Infos} infos
 * @property {page.Scene} scene
 * @property {page.Follow} follow
 * @property {() => string} resource on stage
 * @property {() => { log: string }} shown
 * @property {() => boolean} program is there one, and is it on stage?
 * @property {(r: { resource?: string }) => boolean} here
 * @property {(words: string) => void} tell in passing
 */

export class Inspector {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.chains = newWhy(stage.infos).chains;
    this.panel = $("#inspector");
    this.leaf = $("#leaf");
    this.title = part(this.panel, "h2");
    this.search = part(this.panel, "[type=search]", HTMLInputElement);
    this.tabs = parts(this.panel, "[data-tab]");
    /** @type {Place | null} */
    this.place = null;
    this.tab = "what";
    /** @type {HTMLElement | null} */
    this.opener = null;
    this.awaited = ""; // the query for the leaf that is on its way
    this.renewedAt = 0;
    this.shownSeq = -1; // for which record the leaf was made
    this.litAt = 0;
    /** @type {probe.Record | null} */
    this.newest = null; // the newest record, of what is followed or of the place, that was not shown yet
    this.reading = false; // a line was chosen by hand: it stays until another place or record is
    this.keys = {
      Enter: () => this.enter(), i: () => this.enter("code"), b: () => this.enter("blocked"),
      e: () => /** @type {HTMLElement | null} */ (this.leaf.querySelector("a.button"))?.click(),
    };
    this.bind();
  }

  /** @param {Place} wanted @param {string} [leafName] @param {HTMLElement | null} [from] */
  inspect(wanted, leafName = this.tab, from = null) {
    this.place = wanted;
    this.opener = from ?? this.opener;
    [this.newest, this.reading] = [null, false];
    this.panel.hidden = false;
    put(document.body, "data-inspecting", wanted.station);
    this.stepAside(wanted);
    this.choose(wanted, leafName);
  }

  // stepAside puts the panel over the half that is not looked into.
  /** @param {Place} place */
  stepAside({ station }) {
    const { geometry } = this.stage.scene;
    mark(this.panel, "left", geometry.boxes[station].X > geometry.width * 0.55);
  }

  escape() {
    if (this.panel.hidden) return false;
    const inside = this.panel.contains(document.activeElement);
    this.panel.hidden = true;
    this.place = null;
    document.body.removeAttribute("data-inspecting");
    if (inside) this.opener?.focus();
    return true;
  }

  /** @param {Place} place @param {string} name @param {Extra} [extra] */
  choose(place, name, extra) {
    const wire = ["wire", "watcher", "reflector"].includes(place.station);
    this.tab = name === "bytes" && !wire ? "what" : name;
    for (const each of this.tabs) {
      if (each.dataset.tab === "bytes") each.hidden = !wire;
      put(each, "aria-pressed", String(each.dataset.tab === this.tab));
    }
    this.load(place, extra);
  }

  get res() { return this.stage.player.state.resources[this.stage.resource()]; }

  // lastPoint is what was reported at the place last, "" if it cannot be told.
  /** @param {Place} place */
  lastPoint(place) {
    const { subjects, stations } = this.res ?? {};
    const { point = "" } = (place.subject ? subjects?.[place.subject] : stations?.[place.station])?.last ?? {};
    return this.isAbout(place, point) ? point : "";
  }

  // query says what leaf of the place is wanted.
  /** @param {Place} place @param {Extra} extra */
  query(place, extra) {
    const { player, resource, shown } = this.stage;
    const at = player.mode === "live" && player.behind() === 0 ? "" : player.target(); // "": the present
    const point = this.tab === "code" ? this.lastPoint(place) : "";
    const { queue, subject } = place;
    return String(queryOf({ resource: resource(), queue, subject, at, log: shown().log, point, ...extra }));
  }

  /** @param {Place} place @param {Extra} [extra] */
  async load(place, extra = {}) {
    this.shownSeq = this.stage.player.target();
    const mine = this.query(place, { q: this.tab === "history" ? this.search.value : "", ...extra });
    this.awaited = mine;
    const wanted = () => mine === this.awaited && this.place;
    try {
      if (!this.stage.program() && program && living.has(this.tab)) {
        throw new Error("This recording lives in this page only: the program that serves the page does not know it.");
      }
      const article = elementOf(await text(`/viz/part/${place.station}/${this.tab}?${mine}`));
      if (wanted()) this.swap(place, article);
    } catch (problem) {
      const words = problem instanceof TypeError ? "The program does not answer." : refusal(problem).message;
      if (wanted()) this.refuse(place, words);
    }
    if (mine === this.awaited) this.awaited = "";
  }

  /** @param {Place} place @param {string} words */
  refuse(place, words) {
    this.leaf.replaceChildren(make("p", {}, words));
    say(this.title, place.subject || place.queue || place.station);
  }

  // swap puts a leaf in the place of the one before. If that was the same leaf, what a person did to it stays:
  // scrolling, what was unfolded, and what has the focus.
  /** @param {Place} place @param {HTMLElement} article */
  swap(place, article) {
    const { leaf } = this;
    const before = leaf.firstElementChild;
    const same = before?.className === article.className && before?.dataset.title === article.dataset.title;
    const top = same ? leaf.scrollTop : 0;
    const code = same ? leaf.querySelector("pre")?.scrollTop ?? 0 : 0;
    const focused = leaf.contains(document.activeElement) ? document.activeElement : null;
    const folds = article.querySelectorAll("details");
    if (same) before.querySelectorAll("details").forEach((d, i) => (folds[i].open = d.open));
    leaf.replaceChildren(article);
    leaf.scrollTop = top;
    if (code) part(leaf, "pre").scrollTop = code;
    leaf.querySelector(`button[data-point="${focused?.dataset.point}"]`)?.focus();
    say(this.title, article.dataset.title ?? "");
    this.fill(place);
    this.countHits(true);
    leaf.querySelector(".l.lit")?.scrollIntoView({ block: "nearest" });
  }

  // fill fills the leaf that says how the place stands, or who waits for whom, in the picture at the cursor.
  /** @param {Place} place */
  fill(place) {
    const box = this.leaf.querySelector(".filled");
    if (!box) return;
    const { state } = this.stage.player;
    this.shownSeq = state.seq;
    const titles = JSON.parse(box.dataset.titles ?? "{}");
    const stands = this.tab === "state";
    const made = stands ? stateOf(this.res, place, titles, (point) => this.isAbout(place, point)).map(table)
      : this.chains(this.res, state.t, place, titles).map(drawn);
    const none = stands ? "Nothing has happened here yet."
      : `${this.title.textContent} holds no queue: no goroutine waits at it for room or for something to come.`;
    box.replaceChildren(...(made.length > 0 ? made : [make("p", {}, none)]));
  }

  // ---- code

  // moveTo lets the whole inspector go to where a record was reported, and lights its line.
  /** @param {Place} place @param {probe.Record} r */
  moveTo(place, { point, subject }) {
    const { station } = this.stage.infos.get(point);
    if (station !== place.station || (place.subject && place.subject !== subject)) {
      const moved = { station, queue: "", subject: "" };
      this.place = moved;
      put(document.body, "data-inspecting", station);
      return this.load(moved, { point });
    }
    this.litAt = performance.now();
    if (this.leaf.querySelector("figure.decl")?.dataset.point !== point) this.load(place, { point });
  }

  /** @param {Place} place @param {string} point */
  isAbout(place, point) {
    const info = this.stage.infos.get(point);
    return place.queue ? info?.queue === place.queue : info?.station === place.station;
  }

  /** @param {boolean} quiet */
  countHits(quiet) {
    const points = this.res?.points ?? {};
    for (const el of parts(this.leaf, "[data-hits]")) {
      const text = String(points[/** @type {probe.PointName} */ (el.dataset.hits)] ?? 0);
      mark(el, "hot", !quiet && el.textContent !== text);
      say(el, text);
    }
  }

  // ---- by hand

  /** @param {string} [leafName] */
  enter(leafName = this.tab) {
    const focused = document.activeElement?.closest("[data-station], [data-queue]");
    const el = /** @type {HTMLElement | null} */ (focused ?? document.querySelector(".station.told"));
    const wanted = el && placeOf(el);
    if (!wanted) return this.stage.tell("choose a station first: Tab walks through them");
    this.inspect(wanted, leafName, el);
    this.title.focus();
  }

  bind() {
    const { scene, tell } = this.stage;
    const again = (/** @type {string} */ name, /** @type {Extra} */ extra = {}) =>
      this.place && this.choose(this.place, name, extra);
    when(scene.root, "click", ({ target }) => {
      if (target.closest("[data-key]:not([data-key=''])")) return; // that is followed instead
      const wanted = placeOf(target);
      if (wanted) this.inspect(wanted, this.tab, /** @type {HTMLElement | null} */ (target.closest("[tabindex]")));
    });
    when(this.leaf, "click", (event) => {
      const target = event.target.closest("[data-point], [data-copy], [data-place]");
      const { point, copy, place: station, queueName = "", subject = "" } = target?.dataset ?? {};
      if (target?.matches("button.point")) {
        this.reading = true;
        again("code", { point });
      } else if (copy) copied(copy).then((done) => tell(done ? "copied" : copy));
      else if (station) this.inspect({ station: /** @type {probe.Station} */ (station), queue: queueName, subject });
    });
    if (this.search.form) when(this.search.form, "submit", (event) => event.preventDefault());
    when(this.search, "input", () => this.place && this.load(this.place));
    for (const each of this.tabs) when(each, "click", () => again(each.dataset.tab ?? "what"));
    when(part(this.panel, ".close"), "click", () => this.escape());
  }

  // ---- as a part of the page

  /** @param {probe.Record[]} list */
  applied(list) {
    const { place, stage: { player, follow, here } } = this;
    if (!place || player.mode !== "live" || this.reading) return;
    const about = (/** @type {probe.Record} */ r) => (
      here(r) && (!place.subject || r.subject === place.subject) && this.isAbout(place, r.point));
    this.newest = list.findLast(follow.has() ? follow.matches : about) ?? this.newest;
  }

  /** @param {probe.Record} r */
  landed(r) {
    [this.newest, this.reading] = [null, false];
    if (!this.place || this.tab !== "code") return;
    this.moveTo(this.place, r);
    this.stepAside(this.place);
  }

  /** @param {number} now */
  draw(now) {
    const { place } = this;
    if (!place) return;
    if (this.tab === "code" && this.newest && now - this.litAt > pace) {
      this.moveTo(place, this.newest);
      this.newest = null;
    }
    if (now - this.renewedAt < renewal) return;
    this.renewedAt = now;
    this.countHits(false);
    // A leaf that takes long to come is waited for: the next one would be asked for before it is here, again and again.
    if (this.awaited || this.shownSeq === this.stage.player.target()) return;
    if (living.has(this.tab)) this.load(place);
    else this.fill(place);
  }

  resource() {
    if (this.place) this.load(this.place);
  }

  jumped() { this.renewedAt = 0; }
}

/** @param {ReturnType<typeof stateOf>[number]} group */
const table = ({ title: name, rows }) => make("table", { className: "fields", data: { group: name } },
  make("caption", {}, name), make("tbody", {}, ...rows.map(([field, value]) => make("tr", { data: { field } },
    make("th", { scope: "row" }, field), make("td", {}, String(value))))));

/** @param {ReturnType<ReturnType<typeof newWhy>["chains"]>[number]} chain */
const drawn = ({ links, full, says }) => make("section", { className: `chain${full ? " full" : ""}` },
  make("p", {}, says), make("ol", {}, ...links.map(({ name, station, queue, subject, len, cap, takes }) =>
    make("li", {},
    make("button", {
      type: "button", className: "place", data: { place: station ?? "", queueName: queue, subject },
    }, name),
    make("span", { className: "n" }, queue && `${len}/${cap}`), make("span", { className: "soft" }, takes),
  ))));

// placeOf finds what a glyph belongs to.
/** @param {Element} el @returns {Place | null} */
function placeOf(el) {
  const station = el.closest("[data-station]")?.dataset.station;
  if (!station) return null;
  const lane = el.closest("[data-watcher], [data-listener], [data-handler-of], [data-workqueue]");
  const { watcher, listener, handlerOf, workqueue } = lane?.dataset ?? {};
  return {
    station: /** @type {probe.Station} */ (station), queue: el.closest("[data-queue]")?.dataset.queue ?? "",
    subject: watcher ?? listener ?? handlerOf ?? workqueue ?? "",
  };
}
