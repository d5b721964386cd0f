// The inspector shows a station, a queue or one watcher. Each tab shows a leaf, which the program renders as a piece of
// HTML at its own address (/viz/part/); this module fills in what depends on the picture at the cursor.

import { $, elementOf, make, mark, part, parts, put, say, when } from "../dom/dom.js";
import { queryOf, refusal, text } from "../lib/api.js";
import { matches } from "../log/query.js";
import { meant, newWhy, stateOf } from "./why.js";

const renewal = 700; // ms between two updates of the open leaf

/**
 * @typedef {import("./why.js").Place} Place
 * @typedef {{ point?: string }} Extra
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Infos} infos
 * @property {page.Scene} scene
 * @property {page.Follow} follow
 * @property {() => string} resource the resource on stage
 * @property {() => { log: string }} shown
 * @property {(words: string) => void} tell shows words for a moment
 */

export class Inspector {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.chains = newWhy(stage.infos).chains;
    this.panel = $("#inspector");
    this.leaf = $("#leaf");
    this.title = part(this.panel, "h2");
    this.open = false;
    /** @type {Place} */
    this.place = { station: "etcd", queue: "", subject: "" };
    this.tab = "what";
    /** @type {HTMLElement | null} */
    this.opener = null;
    this.awaited = ""; // the address of the leaf that is loading
    this.renewedAt = 0;
    this.shownSeq = -1; // the record for which the leaf was made
    this.keys = { Enter: () => this.enter(), i: () => this.enter("code"), b: () => this.enter("blocked") };
    this.bind();
  }

  /** @param {Place} place @param {string} [leafName] @param {HTMLElement | null} [from] */
  inspect(place, leafName = this.tab, from = null) {
    [this.open, this.panel.hidden] = [true, false];
    this.opener = from ?? this.opener;
    this.goTo(place);
    this.choose(leafName);
  }

  // goTo turns to a place, and moves the panel over the other half of the stage.
  /** @param {Place} place */
  goTo(place) {
    this.place = place;
    const { scene, scene: { geometry } } = this.stage;
    if (place.station === "watcher" && place.subject) Object.assign(scene, { front: place.subject, stale: true });
    put(document.body, "data-inspecting", place.station);
    mark(this.panel, "left", geometry.boxes[place.station].X > geometry.width * 0.55);
  }

  escape() {
    if (!this.open) return false;
    const inside = this.panel.contains(document.activeElement);
    [this.open, this.panel.hidden] = [false, true];
    put(document.body, "data-inspecting", null);
    if (inside) this.opener?.focus();
    return true;
  }

  /** @param {string} name @param {Extra} [extra] */
  choose(name, extra) {
    this.tab = name;
    for (const each of parts(this.panel, "[data-tab]")) put(each, "aria-pressed", String(each.dataset.tab === name));
    this.load(extra);
  }

  get res() { return this.stage.player.state.resources[this.stage.resource()]; }

  about() {
    const { infos, resource } = this.stage;
    const query = meant(infos, resource(), this.place);
    return (/** @type {import("../log/query.js").Meant} */ r) => matches(query, r, infos.get(r.point ?? ""));
  }

  // query returns the parameters of the wanted leaf. The code leaf shows the point of the place's newest record.
  /** @param {Extra} extra */
  query(extra) {
    const { player, resource, shown } = this.stage;
    const at = player.mode === "live" && player.behind() === 0 ? "" : player.target(); // "" for the newest record
    const { station, queue, subject } = this.place;
    const last = (subject ? this.res?.subjects[subject] : this.res?.stations[station])?.last;
    const point = this.tab === "code" && last && this.about()(last) ? last.point : "";
    // "unknown" keeps the program from showing its own history for a dropped recording
    const log = shown().log || (this.tab === "history" ? "unknown" : "");
    return String(queryOf({ resource: resource(), queue, subject, at, log, point, ...extra }));
  }

  /** @param {Extra} [extra] */
  async load(extra = {}) {
    const { tab, title: { textContent: title } } = this;
    const mine = `/viz/part/${this.place.station}/${tab}?${this.query(extra)}`;
    [this.shownSeq, this.awaited] = [this.stage.player.target(), mine];
    const article = await text(mine).then(elementOf, (problem) =>
      make("article", { className: tab, data: { title: title ?? "" } }, make("p", {}, refusal(problem).message)));
    if (mine !== this.awaited) return;
    this.awaited = "";
    if (this.open) this.swap(article);
  }

  // swap replaces the leaf. If the same leaf was only reloaded, it keeps the viewer's scroll position and focus.
  /** @param {HTMLElement} article */
  swap(article) {
    const { leaf } = this;
    const before = leaf.firstElementChild;
    const same = before?.className === article.className && before?.dataset.title === article.dataset.title;
    const point = leaf.contains(document.activeElement) ? document.activeElement?.dataset.point : "";
    leaf.replaceChildren(article);
    if (!same) leaf.scrollTop = 0;
    if (point) leaf.querySelector(`button[data-point="${point}"]`)?.focus();
    say(this.title, article.dataset.title ?? "");
    this.fill();
    this.countHits(true);
    leaf.querySelector(".l.lit")?.scrollIntoView({ block: "nearest" });
  }

  fill() {
    const box = this.leaf.querySelector(".filled");
    if (!box) return;
    const { state } = this.stage.player;
    this.shownSeq = state.seq;
    const titles = JSON.parse(box.dataset.titles ?? "{}");
    const stands = this.tab === "state";
    const made = stands ? stateOf(this.res, this.place, titles, this.about()).map(table)
      : this.chains(this.res, state.t, this.place, titles).map(drawn);
    const none = stands ? "Nothing has happened here yet." : `${this.title.textContent} holds no queue.`;
    box.replaceChildren(...(made.length > 0 ? made : [make("p", {}, none)]));
  }

  // landed turns an open code leaf to the station of a record, and lights the line that reported the record.
  /** @param {probe.Record} r */
  landed({ point, subject }) {
    if (!this.open || this.tab !== "code") return;
    const { station } = this.stage.infos.get(point);
    const here = station === this.place.station && (!this.place.subject || this.place.subject === subject);
    if (!here) this.goTo({ station, queue: "", subject: "" });
    if (!here || this.leaf.querySelector("figure.decl")?.dataset.point !== point) this.load({ point });
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

  /** @param {string} [leafName] */
  enter(leafName) {
    const focused = document.activeElement?.closest("[data-station], [data-queue]");
    const el = /** @type {HTMLElement | null} */ (focused ?? document.querySelector(".station.told"));
    const wanted = el && placeOf(el);
    if (!wanted) return this.stage.tell("choose a station first: Tab walks through them");
    this.inspect(wanted, leafName, el);
    this.title.focus();
  }

  bind() {
    const { scene } = this.stage;
    when(scene.root, "click", ({ target }) => {
      if (target.closest("[data-key]:not([data-key=''])")) return; // this click follows the object instead
      const wanted = placeOf(target);
      if (wanted) this.inspect(wanted, this.tab, /** @type {HTMLElement | null} */ (target.closest("[tabindex]")));
    });
    when(this.panel, "click", (event) => {
      const target = event.target.closest(".close, [data-tab], button.point, [data-place]");
      const { tab, point, place: station, queueName: queue = "", subject = "" } = target?.dataset ?? {};
      if (tab) this.choose(tab);
      else if (point) this.choose("code", { point });
      else if (station) this.inspect({ station: /** @type {probe.Station} */ (station), queue, subject });
      else if (target) this.escape();
    });
  }

  /** @param {number} now */
  draw(now) {
    if (!this.open) return;
    if (now - this.renewedAt < renewal) return;
    this.renewedAt = now;
    this.countHits(false);
    // Wait for a slow leaf: otherwise the next request would replace it before it arrives, again and again.
    if (this.awaited || this.shownSeq === this.stage.player.target()) return;
    if (this.tab === "history") this.load(); // a history leaf ends at the cursor's record
    else this.fill();
  }

  resource() { if (this.open) this.load(); }
  jumped() { this.renewedAt = 0; }
}

/** @param {ReturnType<typeof stateOf>[number]} group */
const table = ({ title: name, rows }) => make("table", { className: "fields", data: { group: name } },
  make("caption", {}, name), make("tbody", {}, ...rows.map(([field, value]) => make("tr", { data: { field } },
    make("th", { scope: "row" }, field), make("td", {}, String(value))))));

/** @param {ReturnType<ReturnType<typeof newWhy>["chains"]>[number]} chain */
const drawn = (chain) => make("ol", { className: "chain" },
  ...chain.map(({ name, station, queue, subject, len, cap, waits }) => make("li", {}, make("button", {
    type: "button", className: "place", data: { place: station ?? "", queueName: queue, subject },
  }, name), make("span", { className: "n" }, queue && `${len}/${cap}`), make("span", { className: "soft" }, waits))));

/** @param {Element} el @returns {Place | null} */
function placeOf(el) {
  const station = el.closest("[data-station]")?.dataset.station;
  if (!station) return null;
  const queue = el.closest("[data-queue]")?.dataset.queue ?? "";
  return /** @type {Place} */ ({ station, queue, subject: el.closest(".lane")?.lane?.id ?? "" });
}
