// @ts-nocheck
// The inspector: what a station, a queue or one watcher is, how it stands, and the lines of code behind it. Each leaf
// is a piece of HTML with an address of its own (/viz/part/), made by the program; what follows from the picture at
// the cursor is filled in here.
//
// The code leaf goes with the records: stepping lights the line that reported the record, whatever file it is in; live,
// it goes with what is followed, or shows what was reported here last.

import { $, copied, elementOf, make, mark, put, say, when } from "../dom/dom.js";
import { program, queryOf, text } from "../lib/api.js";
import { stateOf } from "./state.js";
import { newWhy } from "./why.js";

const renewal = 700; // ms between two readings of the same leaf while records come
const pace = 420; // ms that a line stays lit, live
const living = new Set(["history", "bytes"]); // leaves that the program makes for a record

export function newInspector(stage) {
  const { player, infos, scene, follow } = stage;
  const { chains } = newWhy(infos);
  const panel = $("#inspector");
  const leaf = panel.querySelector("#leaf");
  const title = panel.querySelector("h2");
  const search = panel.querySelector("[type=search]");
  const tabs = [...panel.querySelectorAll("[data-tab]")];
  let place = null; // {station, queue, subject}
  let tab = "what";
  let opener = null;
  let awaited = null; // the query for the leaf that is on its way
  let renewedAt = 0;
  let shownSeq = -1; // for which record the leaf was made
  let litAt = 0;
  let newest = null; // the newest record, of what is followed or of the place, that was not shown yet
  let reading = false; // a line was chosen by hand: it stays until another place or record is

  function open(wanted, leafName = tab, from = null) {
    place = wanted;
    opener = from ?? opener;
    [newest, reading] = [null, false];
    panel.hidden = false;
    put(document.body, "data-inspecting", place.station);
    stepAside();
    choose(leafName);
  }

  // stepAside puts the panel over the half that is not looked into.
  const stepAside = () => mark(panel, "left", scene.geometry.boxes[place.station].X > scene.geometry.width * 0.55);

  function close() {
    if (panel.hidden) return false;
    const inside = panel.contains(document.activeElement);
    panel.hidden = true;
    place = null;
    document.body.removeAttribute("data-inspecting");
    if (inside) opener?.focus?.();
    return true;
  }

  function choose(name, extra) {
    const wire = ["wire", "watcher", "reflector"].includes(place.station);
    tab = name === "bytes" && !wire ? "what" : name;
    for (const each of tabs) {
      if (each.dataset.tab === "bytes") each.hidden = !wire;
      put(each, "aria-pressed", String(each.dataset.tab === tab));
    }
    load(extra);
  }

  // lastPoint is what was reported at the place last, "" if it cannot be told.
  function lastPoint() {
    const { subjects, stations } = player.state.resources[stage.resource] ?? {};
    const { point = "" } = (place.subject ? subjects?.[place.subject] : stations?.[place.station])?.last ?? {};
    return isAbout(point) ? point : "";
  }

  // query says what leaf of the place is wanted.
  function query(extra) {
    const at = player.mode === "live" && player.behind() === 0 ? "" : player.target(); // "": the present
    const point = tab === "code" ? lastPoint() : "";
    const { resource, shown: { log } } = stage;
    return queryOf({ resource, queue: place.queue, subject: place.subject, at, log, point, ...extra });
  }

  async function load(extra = {}) {
    shownSeq = player.target();
    const mine = (awaited = query({ q: tab === "history" ? search.value : "", ...extra }));
    const wanted = () => mine === awaited && place;
    try {
      if (!stage.source && program && living.has(tab)) {
        throw new Error("This recording lives in this page only: the program that serves the page does not know it.");
      }
      const article = elementOf(await text(`/viz/part/${place.station}/${tab}?${mine}`));
      if (wanted()) swap(article);
    } catch (problem) {
      if (wanted()) refuse(problem instanceof TypeError ? "The program does not answer." : problem.message);
    }
    if (mine === awaited) awaited = null;
  }

  function refuse(words) {
    leaf.replaceChildren(make("p", {}, words));
    say(title, place.subject || place.queue || place.station);
  }

  // swap puts a leaf in the place of the one before. If that was the same leaf, what a person did to it stays:
  // scrolling, what was unfolded, and what has the focus.
  function swap(article) {
    const before = leaf.firstElementChild;
    const same = before?.className === article.className && before?.dataset.title === article.dataset.title;
    const top = same ? leaf.scrollTop : 0;
    const code = same ? leaf.querySelector("pre")?.scrollTop : 0;
    const focused = leaf.contains(document.activeElement) ? document.activeElement : null;
    const folds = article.querySelectorAll("details");
    if (same) before.querySelectorAll("details").forEach((d, i) => (folds[i].open = d.open));
    leaf.replaceChildren(article);
    leaf.scrollTop = top;
    if (code) leaf.querySelector("pre").scrollTop = code;
    leaf.querySelector(`button[data-point="${focused?.dataset.point}"]`)?.focus();
    say(title, article.dataset.title);
    fill();
    countHits(true);
    leaf.querySelector(".l.lit")?.scrollIntoView({ block: "nearest" });
  }

  // fill fills the leaf that says how the place stands, or who waits for whom, in the picture at the cursor.
  function fill() {
    const box = leaf.querySelector(".filled");
    if (!box) return;
    shownSeq = player.state.seq;
    const res = player.state.resources[stage.resource];
    const titles = JSON.parse(box.dataset.titles);
    const made = tab === "state" ? stateOf(res, place, titles, isAbout).map(table)
      : chains(res, player.state.t, place, titles).map(drawn);
    const none = tab === "state" ? "Nothing has happened here yet."
      : `${title.textContent} holds no queue: no goroutine waits at it for room or for something to come.`;
    box.replaceChildren(...(made.length > 0 ? made : [make("p", {}, none)]));
  }

  const table = ({ title: name, rows }) => make("table", { className: "fields", data: { group: name } },
    make("caption", {}, name), make("tbody", {}, ...rows.map(([field, value]) => make("tr", { data: { field } },
      make("th", { scope: "row" }, field), make("td", {}, String(value))))));

  const drawn = ({ links, full, says }) => make("section", { className: `chain${full ? " full" : ""}` },
    make("p", {}, says), make("ol", {}, ...links.map(({ name, station, queue, subject, len, cap, takes }) => make("li", {},
      make("button", { type: "button", className: "place", data: { place: station, queueName: queue, subject } }, name),
      make("span", { className: "n" }, queue && `${len}/${cap}`), make("span", { className: "soft" }, takes),
    ))));

  // ---- code

  // moveTo lets the whole inspector go to where a record was reported, and lights its line.
  function moveTo({ point, subject }) {
    const { station } = infos.get(point);
    if (station !== place.station || (place.subject && place.subject !== subject)) {
      place = { station, queue: "", subject: "" };
      put(document.body, "data-inspecting", station);
      return load({ point });
    }
    litAt = performance.now();
    if (leaf.querySelector("figure.decl")?.dataset.point !== point) load({ point });
  }

  // about reports whether a record is about the place.
  const about = (r) => stage.here(r) && (!place.subject || r.subject === place.subject) && isAbout(r.point);

  function isAbout(point) {
    const info = infos.get(point);
    return place.queue ? info?.queue === place.queue : info?.station === place.station;
  }

  function countHits(quiet) {
    const points = player.state.resources[stage.resource]?.points ?? {};
    for (const el of leaf.querySelectorAll("[data-hits]")) {
      const text = String(points[el.dataset.hits] ?? 0);
      mark(el, "hot", !quiet && el.textContent !== text);
      say(el, text);
    }
  }

  // ---- by hand

  // placeOf finds what a glyph belongs to.
  function placeOf(el) {
    const station = el.closest("[data-station]")?.dataset.station;
    if (!station) return null;
    const lane = el.closest("[data-watcher], [data-listener], [data-handler-of], [data-workqueue]");
    const { watcher, listener, handlerOf, workqueue } = lane?.dataset ?? {};
    return {
      station, queue: el.closest("[data-queue]")?.dataset.queue ?? "",
      subject: watcher ?? listener ?? handlerOf ?? workqueue ?? "",
    };
  }

  when(scene.root, "click", (event) => {
    if (event.target.closest("[data-key]:not([data-key=''])")) return; // that is followed instead
    const wanted = placeOf(event.target);
    if (wanted) open(wanted, tab, event.target.closest("[tabindex]"));
  });

  function enter(leafName = tab) {
    const focused = document.activeElement?.closest?.("[data-station], [data-queue]");
    const el = focused ?? $(".station.told");
    const wanted = el && placeOf(el);
    if (!wanted) return stage.tell("choose a station first: Tab walks through them");
    open(wanted, leafName, el);
    title.focus();
  }

  when(leaf, "click", (event) => {
    const target = event.target.closest("[data-point], [data-copy], [data-place]");
    if (!target) return;
    const { point, copy, place: station } = target.dataset;
    if (target.matches("button.point")) {
      reading = true;
      choose("code", { point });
    } else if (copy) copied(copy).then((done) => stage.tell(done ? "copied" : copy));
    else if (station) open({ station, queue: target.dataset.queueName, subject: target.dataset.subject });
  });
  when(search.form, "submit", (event) => event.preventDefault());
  when(search, "input", () => load());

  for (const each of tabs) when(each, "click", () => choose(each.dataset.tab));
  when(panel.querySelector(".close"), "click", close);

  // ---- as a module of the stage

  function applied(list) {
    if (place && player.mode === "live" && !reading) {
      newest = list.findLast(follow.has() ? follow.matches : about) ?? newest;
    }
  }

  function landed(r) {
    [newest, reading] = [null, false];
    if (!place || tab !== "code") return;
    moveTo(r);
    stepAside();
  }

  function draw(now) {
    if (!place) return;
    if (tab === "code" && newest && now - litAt > pace) {
      moveTo(newest);
      newest = null;
    }
    if (now - renewedAt < renewal) return;
    renewedAt = now;
    countHits(false);
    // A leaf that takes long to come is waited for: the next one would be asked for before it is here, again and again.
    if (awaited || shownSeq === player.target()) return;
    if (living.has(tab)) load();
    else fill();
  }

  return {
    inspect: open, close,
    applied, landed, draw, resource: () => place && load(), jumped: () => (renewedAt = 0), escape: close,
    keys: [
      [["Enter"], "look into what has the focus", () => enter()],
      [["i"], "its code", () => enter("code")],
      [["b"], "why it is blocked", () => enter("blocked")],
      [["e"], "open the lit line in an editor", () => leaf.querySelector("a.button")?.click()],
    ],
  };
}
