// Presenter: the stage for the last row of a room. Type grows, what is only for the hand goes away, and one station at
// a time can stand in the light. The keys of a remote clicker, PageDown and PageUp, walk through the stations. What the
// speaker wants to know of it is told to another window of this browser: notes.js.

import { $, mark, put, toMiddle, when } from "../lib/dom.js";
import { shelf } from "../lib/api.js";

const word = 500; // ms at most between two words to the notes: they are not alone as long as they hear something

export function newPresenter(stage) {
  const root = document.documentElement;
  const button = $("#presenter");
  const ground = $(".ground");
  const picture = $("#stage");
  const stations = () => [...stage.scene.root.querySelectorAll(".station")];
  const on = () => root.dataset.presenter === "on";
  const notes = $("#notes");
  const channel = new BroadcastChannel("listwatch-notes");
  let lit = null;
  let told = ""; // to the notes
  let toldAt = 0;

  function toggle() {
    if (on()) delete root.dataset.presenter;
    else root.dataset.presenter = "on";
    put(button, "aria-pressed", String(on()));
    notes.hidden = !on() || !shelf.program;
    light(on() ? document.activeElement?.closest?.(".station") ?? null : null);
    stage.touch();
    stage.restyle();
  }

  // light puts a station into the light, or none, and comes nearer to it, unless a story says where to look.
  function light(station) {
    lit = station;
    for (const each of stations()) mark(each, "lit", each === lit);
    mark(picture, "spot", Boolean(lit));
    if (!document.body.dataset.story) stage.zoom.frameOn(lit ? [lit.dataset.station] : []);
    if (lit) requestAnimationFrame(center);
  }

  // center brings the station in the light to the middle, as far as the drawing is larger than its place.
  function center() {
    if (!lit) return;
    toMiddle(ground, lit);
  }

  function walk(step) {
    if (!on()) toggle();
    const all = stations();
    const next = all[(all.indexOf(lit) + (lit || step > 0 ? step : 0) + all.length) % all.length];
    light(next);
    next.focus({ preventScroll: true });
  }

  // openNotes is called by a hand: a browser opens no window for anybody else.
  function openNotes() {
    if (!on()) toggle();
    if (notes.hidden) return;
    window.open(shelf.page("/viz/notes"), "listwatch-notes", "popup,width=900,height=1000");
  }

  const text = (selector) => $(selector).textContent;
  const titleOf = (station) => station?.getAttribute("aria-label") ?? "";

  function draw(now) {
    if (!on()) return;
    const all = stations();
    const { mode } = document.body.dataset;
    const texts = {
      sentence: text("#sentence .words"), next: `then: ${titleOf(all[(all.indexOf(lit) + 1) % all.length])}`, ...story(),
    };
    const message = {
      presents: true, resource: stage.resource, station: lit?.dataset.station ?? "", title: titleOf(lit), texts,
    };
    const frozen = stage.player.mode === "frozen"; // live it is another record in every frame
    const key = JSON.stringify([message, mode, frozen && stage.player.cursor]);
    if (key === told && now - toldAt < word) return;
    [told, toldAt] = [key, now];
    texts.moment = `record ${stage.player.cursor}, ${mode}`;
    channel.postMessage(message);
  }

  // story is what is being told, by the names that the notes have for it.
  function story() {
    if ($("#story").hidden) return { "story-title": "" };
    const told = (name) => $(`#story-beat section:not([hidden]) .${name}`)?.textContent ?? "";
    return {
      "story-title": `${text("#story-title")}, beat ${text("#story-count")}`, "story-symptom": text("#story-symptom"),
      "story-said": told("say"), "story-asked": told("ask"),
    };
  }

  when(stage.scene.root, "focusin", (event) => {
    const station = event.target.closest(".station");
    if (on() && station && station !== lit) light(station);
  });
  new ResizeObserver(center).observe(ground);

  return {
    draw,
    escape: () => lit !== null && (light(null), true),
    keys: [
      [["a"], "presenter: large type, one station lit", toggle],
      [["q"], "notes for the speaker, in a window of their own", openNotes],
      [["PageDown"], "presenter: the next station; also on a remote clicker", () => walk(1)],
      [["PageUp"], "presenter: the station before", () => walk(-1)],
    ],
  };
}
