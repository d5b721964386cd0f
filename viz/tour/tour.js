// The tour: one change is followed from kubectl to a controller, one station a step. What is not reached yet is dimmed
// and has no name. The tour moves this page's cursor and no other page's; the program is told that it is open, and lets
// the demo's traffic rest.
//
// It begins from the page's first view; ?tour=1 asks for that, ?tour=0 for none. It is resumed where it was left, as
// long as the program has not forgotten.

import { mark, put, say, toMiddle } from "../lib/dom.js";
import { serves } from "../stage/lanes.js";
import { recorded, running, until } from "./play.js";
import { half, plotOf, restsOf, steps, stopped } from "./steps.js";

const storage = "tour";
const slowly = 0.6; // times the reading pace: a step is a few hops
const overview = 7000; // ms that the many changes of the act take
const onward = new Set(["ArrowRight", "PageDown"]);
const backward = new Set(["ArrowLeft", "PageUp"]);
const allowed = new Set(["t", "a", "k", "?"]); // of the page's single keys

export function newTour(stage) {
  const { player, follow, scene } = stage;
  const $ = (selector) => document.querySelector(selector);
  const panel = $("#tour");
  const frame = $("#stage");
  const next = $("#tour-next");
  if (document.body.classList.contains("figure") || $("#open-tour").hidden) return {};
  let at = ""; // "": closed; "end", or the number of a step, from 1
  let run = null; // {key, agent, log, from, to}
  let plot = null;
  let rests = [];
  let ticket = 0;
  let busy = false; // the program is being asked
  let saved = JSON.parse(localStorage.getItem(storage) ?? "null"); // {run, step, open}: of the newest tour

  const doer = () => (stage.source ? running : recorded);
  const resting = () => document.body.dataset.tourRest === "true";

  function save(open) {
    saved = { run, step: typeof at === "number" ? at : 0, open };
    localStorage.setItem(storage, JSON.stringify(saved));
  }

  // ---- what is shown

  function show(part) {
    at = part;
    const step = typeof part === "number" ? steps[part - 1] : null;
    panel.hidden = part === "";
    for (const each of panel.children) each.hidden = each.dataset.part !== (step ? "step" : part);
    if (part === "") document.body.removeAttribute("data-tour");
    else put(document.body, "data-tour", part);
    rest(part !== "" && !step);
    const words = panel.querySelector(".words");
    if (step) put(words, "aria-live", "polite"); // the page's own voice is silent meanwhile (spoken.js)
    else words.removeAttribute("aria-live");
    const reached = new Set(steps.slice(0, step ? part : 0).flatMap((each) => each.look));
    for (const [name, el] of scene.stations) {
      mark(el, "reached", reached.has(name));
      mark(el, "visited", Boolean(step?.look.includes(name)));
    }
    mark(frame, "tour-client", reached.has("reflector"));
    put(frame, "data-tour-queue", step?.queue ?? "");
    stage.zoom.frameOn(step?.act ? step.look : []); // the lanes fill the stage
    requestAnimationFrame(center);
  }

  // center brings the step's stations into sight where the stage is larger than its place.
  function center() {
    if (typeof at === "number") {
      toMiddle(
        $(".ground"),
        ...(scene.tall ? steps[at - 1].look : steps[at - 1].look.slice(-1)).map((name) => scene.stations.get(name))
      );
    }
  }

  function rest(on) {
    put(document.body, "data-tour-rest", String(on));
  }

  // speak fills the panel of a step; what happened is told when the cursor has come there.
  function speak(happened = "") {
    const step = steps[at - 1];
    const acts = step.act && !happened;
    say($("#tour-n"), `${at} of ${steps.length}`);
    say($("#tour-title"), step.title);
    scene.text("tour.pod", plot.name);
    say($("#tour-purpose"), step.purpose(plot, Boolean(happened)));
    say($("#tour-happened"), happened);
    say(next, acts ? `Stop ${plot.who} from reading` : at === steps.length ? "Finish" : "Next");
    next.disabled = busy;
    $("#tour-back").disabled = busy || at === 1;
  }

  // count says how many of the changes are in the picture, while they are shown.
  function count() {
    if (!steps[at - 1]?.act || !run?.acted || resting()) return;
    const { changes } = stopped(plot);
    if (changes === 0) return;
    say($("#tour-happened"), `${stopped(plot, player.cursor + 1).changes} of ${changes}`);
    say(next, "To its end");
  }

  const trouble = (problem) => {
    if (at === "") return;
    rest(true);
    busy = false;
    next.disabled = false;
    stage.banner.notice(problem.message);
  };

  // ---- the records

  const records = () => player.tape.between(run.from + 1, (run.to || player.head) + 1).filter(stage.here);
  const seen = (fact) => until(() => fact(records()));

  function replot() {
    const reader = [...scene.lanes.watchers].find(([, el]) => el.lane && serves(scene, el.lane.subject))?.[0] ?? "";
    plot = plotOf(records(), { ...run, reader: run.reader ?? reader, informer: scene.informer });
    run.reader ??= reader || undefined;
    scene.front = [plot.client, plot.back];
    rests = restsOf(plot).map((seq, i) => (i < half || run.acted ? seq : 0));
  }

  // enter comes to a step, at reading pace or at once.
  async function enter(n, at1 = false) {
    const mine = ++ticket;
    show(n);
    const step = steps[n - 1];
    // Where all of the pod's changes are shown at once, none is marked.
    if (n === half + 1 || n === half + 2) follow.clear();
    else if (!follow.has()) follow.set(run.key, "", "tour");
    follow.about = step.act ? "" : n <= half ? plot.first : plot.last; // later revisions may be under way already
    if (step.act && !rests[n - 1]) {
      speak();
      rest(true); // it waits for the visitor
      save(true);
      next.focus({ preventScroll: true });
      return;
    }
    speak();
    const to = rests[n - 1];
    const forward = !at1 && to > player.cursor;
    const there = forward ? await player.playTo(to, step.act ? { within: overview } : { pace: slowly })
      : await player.seek(to);
    if (mine !== ticket) return;
    if (!there) await player.seek(to);
    if (mine === ticket) told();
  }

  // told says what happened, now that it is in the picture.
  function told() {
    const step = steps[at - 1];
    const r = step.act ? null : step.rest(plot);
    speak(step.happened(plot, player.state.resources[stage.resource], r));
    rest(true);
    save(true);
    next.focus({ preventScroll: true });
  }

  // ---- what the visitor does

  async function start() {
    if (busy) return;
    if (stage.hold.held) return stage.banner.notice("The program is held. Resume it, then start the tour.");
    if (stage.resource !== "pods") stage.setResource("pods");
    stage.first.leave();
    busy = true;
    await list;
    ticket++; // a tour that was left may still close its client
    stage.attend(true);
    if (saved?.run?.key && stage.source) await doer().leave(saved.run).catch(() => {}); // of a tour that was not ended
    run = { log: stage.shown.log, from: stage.source ? player.head : player.oldest, to: 0, key: "", agent: "" };
    plot = null;
    player.freeze();
    if (player.recording) await player.seek(player.oldest);
    try {
      Object.assign(run, await doer().begin(seen));
      follow.set(run.key, "", "tour");
      await until(() => (replot(), rests.slice(0, half).every(Boolean)));
      busy = false;
      await player.seek(plot.asked - 1);
      await enter(1);
    } catch (problem) {
      trouble(problem);
    }
  }

  async function act() {
    busy = true;
    speak();
    rest(false);
    try {
      Object.assign(run, await doer().stop(run, seen), { acted: true });
      await until(() => (replot(), rests.every(Boolean)));
      run.to = Math.max(...rests);
      busy = false;
      await enter(at);
    } catch (problem) {
      trouble(problem);
    }
  }

  function go() {
    if (at === "end" || busy) return;
    const step = steps[at - 1];
    if (!resting()) return enter(at, true); // the rest of the way at once
    if (step.act && !rests[at - 1]) return act();
    if (at === steps.length) return finish();
    enter(at + 1);
  }

  function back() {
    if (typeof at === "number" && at > 1 && !busy) enter(at - 1, true);
  }

  // close ends the tour for the program; the page stays at what is shown.
  function close() {
    const mine = ++ticket;
    busy = false;
    // The program closes the clients of tours with the last page that gives one: this page's client goes before the
    // page does.
    const left = run ? doer().leave(run) : Promise.resolve();
    left.catch(() => {}).then(() => mine === ticket && stage.attend(false));
    if (player.mode !== "live" && stage.source) player.live();
  }

  // save and forget the wish for a tour in the address: it is fulfilled.
  function done() {
    save(false);
    const url = new URL(location.href);
    url.searchParams.delete("tour");
    window.history.replaceState(null, "", url);
  }

  function finish() {
    show("end");
    done();
    say($("#tour-kubectl"), `kubectl -s ${location.origin} get pods -w`);
    close();
    follow.clear(); // what kubectl writes now is followed
    panel.querySelector("[data-part=end] .main").focus({ preventScroll: true });
  }

  function leave() {
    const step = typeof at === "number";
    if (step) done();
    show("");
    if (!step) return;
    close();
    if (follow.by === "tour") follow.clear();
  }

  // resume goes on where the tour was left, if the records of it are still there.
  async function resume() {
    ({ run } = saved);
    stage.attend(true);
    const mine = ++ticket;
    try {
      await player.tape.load(run.from + 1, (run.to || player.head) + 1);
      if (!(await player.seek(run.from))) return;
      follow.set(run.key, "", "tour");
      replot();
      if (mine !== ticket) return;
      if (!rests[Math.max(1, saved.step) - 1] && saved.step !== half + 1) throw new Error("gone");
      await enter(Math.max(1, saved.step), true);
    } catch {
      stage.attend(false);
      run = null;
      await start();
    }
  }

  const resumable = () => Boolean(
    saved?.run?.key && saved.step > 0 && stage.source && saved.run.log === stage.shown.log
      && saved.run.from >= player.oldest
  );

  // begin opens the tour, when the page's list was taken, if nothing else was asked for.
  let asked = false;
  let begun = null;
  const list = new Promise((done) => (begun = done)); // the page has taken its list
  function begin() {
    begun();
    if (asked) {
      if (typeof at !== "number" || run?.log === stage.shown.log) return;
      stage.attend(false); // another program, or the same one in another mode
      show("");
      return;
    }
    asked = true;
    if (new URLSearchParams(location.search).get("tour") === "0" || !saved?.open || !resumable()) return;
    stage.first.leave();
    resume();
  }

  document.addEventListener("keydown", (event) => {
    if (at === "" || at === "end" || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
    const act = onward.has(event.key) ? go : backward.has(event.key) ? back : event.key === "Escape" ? leave : null;
    if (act) {
      event.preventDefault();
      act();
    } else if (allowed.has(event.key.toLowerCase()) || event.key.length > 1 || event.key === " ") return;
    event.stopPropagation(); // one path: the page's other keys come after the tour
  }, true);
  $("#tour-start").addEventListener("click", start);
  next.addEventListener("click", go);
  $("#tour-back").addEventListener("click", back);
  $("#open-tour").addEventListener(
    "click", () => (at !== "" && at !== "end" ? leave() : resumable() && !saved.open ? resume() : start())
  );
  for (const button of panel.querySelectorAll("[data-tour-leave]")) button.addEventListener("click", leave);
  panel.querySelector("[data-tour-story]").addEventListener("click", (event) => {
    leave();
    stage.scenarios.openStory(event.currentTarget.dataset.tourStory);
  });
  for (const button of panel.querySelectorAll("[data-tour-try]")) {
    button.addEventListener("click", () => {
      leave();
      $(button.dataset.tourTry).click();
    });
  }

  return {
    begin,
    jumped: () => player.recording && begin(),
    shown: () => typeof at === "number"
      && scene.lanes.watchers.forEach((el, id) => mark(el, "yours", [plot?.client, plot?.back].includes(id))),
    draw: count,
    escape: () => at === "end" && (leave(), true),
  };
}
