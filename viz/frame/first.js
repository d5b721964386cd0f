// @ts-nocheck
// The first view: the stage with five names, a question, and three ways on. It is a look of the same page, which ends
// with Escape and with everything that puts something else on the stage. A later visit says where the viewer was.

import { $, copied, put, say, when } from "../dom/dom.js";

const storage = { seen: "first", last: "last-time" };
const recent = 2000; // records
const patience = 60000; // ms without a watch, after which the page says what to check

export function newFirst(stage) {
  const { player } = stage;
  const root = document.documentElement;
  const [commands, state] = ["#first-commands", "#first-state"].map($);
  const on = () => Boolean(root.dataset.first);
  let asked = 0; // when the commands were shown

  function show() {
    root.dataset.first = "asks";
    stage.scene.relay();
    player.single = true;
    $("#tour-start").focus({ preventScroll: true });
  }

  // again lets the newest change that began with a new object travel once more: a new viewer need not wait for the
  // next one.
  async function again() {
    const from = Math.max(player.oldest + 1, player.head - recent);
    await player.tape.load(from, player.head + 1).catch(() => {});
    const begins = (r) => r.point === "TxnCommitted" && r.type === "ADDED" && stage.here(r);
    const begun = player.tape.between(from, player.head + 1).findLast(begins);
    if (begun && on()) await player.seek(begun.seq - 1, "live");
  }

  function leave() {
    if (!on()) return false;
    delete root.dataset.first;
    player.single = false;
    localStorage.setItem(storage.seen, "seen");
    stage.scene.relay();
    stage.touch();
    return true;
  }

  function wait() {
    root.dataset.first = commands.hidden ? "kubectl" : "asks";
    commands.hidden = !commands.hidden;
    $("#first-kubectl").ariaExpanded = String(!commands.hidden);
    asked = performance.now();
    if (!commands.hidden) commands.querySelector("button").focus({ preventScroll: true });
  }

  async function copy(button) {
    const code = button.previousElementSibling;
    const done = await copied(code.textContent);
    if (!done) getSelection().selectAllChildren(code);
    say(button, done ? "Copied" : "Selected");
  }

  // greet looks for a watch of kubectl among the watchers on stage.
  function greet(now) {
    const theirs = [...stage.scene.places.watchers.lanes.values()].some(
      ({ subject }) => subject.texts.WireOpened?.startsWith("kubectl")
    );
    if (theirs || state.dataset.watch !== "here") {
      put(state, "data-watch", theirs ? "here" : now - asked > patience ? "late" : "waits");
    }
  }

  // where is what a later visit can go back to.
  function where() {
    const { tour, story, beat } = document.body.dataset;
    if (Number(tour)) return { words: `the tour, step ${tour}` };
    return story ? { words: `the story ${story}, beat ${beat}`, story, beat: Number(beat) - 1 } : null;
  }

  const last = JSON.parse(localStorage.getItem(storage.last) ?? "null");
  const back = $("#last-time");
  if (last) {
    say(back, `Last time: ${last.words}. Go on`);
    back.hidden = false;
  }

  when("#first-kubectl", "click", wait);
  when("#first", "click", ({ target }) => {
    if ("copy" in target.dataset) copy(target);
  });
  when(back, "click", () => {
    back.hidden = true;
    if (last.story) stage.scenarios.openStory(last.story, { beat: last.beat });
    else $("#open-tour").click();
  });
  for (const el of document.querySelectorAll("[data-here]")) say(el, el.dataset.here.replace("HERE", location.origin));
  $("#first").inert = false;
  if (on()) show();

  let told = "";
  return {
    again, leave, escape: leave,
    draw(now) {
      if (root.dataset.first === "kubectl") greet(now);
      const place = where();
      if (!place || place.words === told) return;
      leave();
      back.hidden = true;
      told = place.words;
      localStorage.setItem(storage.last, JSON.stringify(place));
    },
  };
}
