// @ts-nocheck
// The tour: one change is followed from kubectl to a controller, one station a step. What is not reached yet is dimmed
// and has no name. It is a story of steps (../stories/teller.js), which goes on as the visitor does: when asked to, the
// program does what the next steps tell of, and finds in its log where they rest and what they say. The tour moves this
// page's cursor and no other page's; the program is told that it is open, and lets the demo's traffic rest.
//
// It begins from the page's first view; ?tour=1 asks for that, ?tour=0 for none. It is resumed where it was left, as
// long as the program has not forgotten.

import { ask, get } from "../lib/api.js";
import { $, address, mark, put, say, when } from "../dom/dom.js";
import { newTold } from "../stage/told.js";
import { Teller } from "../stories/teller.js";

const storage = "tour";
const slowly = 0.6; // times the reading pace: a step is a few hops
// ms from the press to the last change of the act, which takes one more second; at least so many are for the picture
const act = 6300;
const overview = [2000, 4500];
const quiet = /^[^tak? ]$/; // of the page's single keys: theme, presenter, machinery and the list of keys go on

/** @param {object} stage @returns {page.Part} */
export function newTour(stage) {
  const { player, follow, scene } = stage;
  const panel = $("#tour");
  const next = $("#tour-next");
  if (document.body.classList.contains("figure") || $("#open-tour").hidden) return {};
  const steps = JSON.parse(panel.dataset.steps);
  const half = steps.findIndex((step) => step.act); // so many come before the visitor acts
  let teller = null; // while a step is shown
  let shown = -1; // that step
  let run = null; // the tour as the program knows it (tour.go)
  let acted = false; // the visitor has stopped the client
  let ticket = 0;
  let pressed = 0; // when the step was asked for
  let coming = null; // told when the client has come back
  let busy = false; // the tour is about to begin
  let saved = JSON.parse(localStorage.getItem(storage) ?? "null"); // {run, step, open}: of the newest tour

  function save(open, step) {
    saved = { run, step, open };
    localStorage.setItem(storage, JSON.stringify(saved));
  }

  // ---- what is shown

  // show shows a step, the end, or, with "", neither.
  function show(part) {
    if (part !== "step") {
      teller?.leave();
      if (teller) scene.tell(null);
      [teller, shown] = [null, -1];
      rest(part === "end");
    }
    const step = steps[teller?.beat];
    panel.hidden = part === "";
    for (const each of panel.children) each.hidden = each.dataset.part !== part;
    put(document.body, "data-tour", step ? teller.beat + 1 : part || null);
    // The page's own voice is silent meanwhile (telling.js).
    panel.querySelector(".words").ariaLive = step ? "polite" : null;
    const reached = new Set(steps.slice(0, step ? teller.beat + 1 : 0).flatMap((each) => each.look));
    for (const [name, el] of scene.stations) {
      mark(el, "reached", reached.has(name));
      mark(el, "visited", Boolean(step?.look.includes(name)));
    }
    mark($("#stage"), "tour-client", reached.has("reflector"));
    put($("#stage"), "data-tour-queue", step?.queue ?? "");
    frame();
  }

  // frame lets what has to be read in the lanes fill the stage, and for a presenter what each step is about. It brings
  // the step's stations into sight.
  function frame() {
    const { act: acts, look = [] } = steps[teller?.beat] ?? {};
    const near = (name) => name !== "http" || look.length < 3; // it is far from the others
    const large = acts || teller?.beat === half + 2 || document.documentElement.dataset.presenter;
    stage.zoom.frameOn(large ? look.filter(near) : [], scene.tall ? look : look.slice(-1));
  }

  const rest = (on) => put(document.body, "data-tour-rest", String(on));

  // changed shows where the teller is; what happened is told when the cursor has come there.
  function changed() {
    const { beat, phase } = teller;
    const { title, act: acts } = steps[beat];
    if (beat !== shown) {
      shown = beat;
      show("step");
      cast();
      // Where all of the pod's changes are shown at once, none is marked.
      if (beat >= half && beat <= half + 2) follow.clear();
      else if (beat > half) follow.set("", run.last, "tour"); // and not the many before it
      else if (!follow.has()) follow.set(run.key, "", "tour");
    }
    const { asks, purpose, happened } = run.steps[beat];
    const seen = phase === "rests" ? happened : "";
    say($("#tour-n"), `${beat + 1} of ${steps.length}`);
    say($("#tour-title"), title);
    scene.text("tour.pod", run.name);
    say($("#tour-purpose"), (!seen && asks) || purpose);
    say($("#tour-happened"), seen);
    say(next, acts && !acted ? `Stop ${run.who} from reading` : teller.last ? "Finish" : "Next");
    next.disabled = phase === "busy";
    $("#tour-back").disabled = phase === "busy" || beat === 0;
    const rests = teller.resting || phase === "away";
    rest(rests);
    if (!rests) return;
    save(true, beat + 1);
    next.focus({ preventScroll: true });
  }

  // cast puts the visitor's client on the stage as a story's is: with a flag that says what it knows, and, where that
  // matters, a pin at the ring.
  function cast() {
    const pin = teller.beat === half + 1 || teller.beat === half + 2;
    const member = { name: run.who, is: { agent: run.agent }, pin };
    const records = player.tape.between(run.from + 1, end() + 1).filter(stage.here);
    scene.tell(newTold(scene, { id: "tour", cast: [member] }, records, 0));
  }

  // count says how many of the changes are in the picture, while they are shown.
  function count() {
    if (teller?.phase !== "plays" || !steps[teller.beat].act) return;
    const { changes } = run;
    say($("#tour-happened"), `${changes.filter((seq) => seq <= player.cursor).length} of ${changes.length}`);
    say(next, "To its end");
  }

  // ---- the records, and what the teller asks for

  const end = () => run.steps.at(-1).rest || player.head; // of what it is about

  // deed lets the program do a part of a tour, and waits until this page has its records. In a recording it is done.
  async function deed(name, tour = run) {
    if (!stage.source) return;
    Object.assign(tour, await ask("POST", "/viz/tour", { ...tour, do: name }));
    const last = Math.max(...tour.steps.map(({ rest }) => rest));
    while (stage.source && player.head < last) await new Promise(requestAnimationFrame);
  }

  // range returns where a step plays: from where the cursor is to where the step rests. What the visitor does is done
  // before; its picture begins where the client does not read any more.
  async function range(i) {
    pressed = performance.now();
    if (i === half && !acted) {
      await deed("stop");
      acted = true;
      coming = deed("back"); // while the picture of that is shown
      coming.catch(() => (coming = null)); // it is tried again when its step comes
    }
    if (i > half && !run.steps[i].rest) await (coming ?? deed("back"));
    const { rest } = run.steps[i];
    cast();
    const from = i === half ? Math.max(player.cursor, run.stalled) : player.cursor;
    return { from: Math.min(from, rest), to: rest };
  }

  const seek = (seq) => seq === player.cursor || player.seek(seq);
  async function play({ to }) {
    const within = Math.min(overview[1], Math.max(overview[0], pressed + act - performance.now()));
    const { act: acts } = steps[teller.beat];
    const stops = run.mended > player.cursor && run.mended < to ? [run.mended, to] : [to];
    const many = acts || teller.beat === half + 1;
    for (const stop of stops) {
      if (!(await player.playTo(stop, many || stop !== to ? { within } : { pace: slowly }))) return false;
    }
    return true; // and where the visitor went elsewhere meanwhile, this does not call the cursor back
  }

  // enter tells the tour from a step on.
  async function enter(mine, step) {
    follow.set(run.key, "", "tour");
    await player.seek(run.asked - 1);
    if (mine !== ticket) return;
    teller = new Teller(steps, { range, play, seek, changed, trouble: stage.banner.trouble });
    teller.still = true; // words and picture come together
    if (step === 0) teller.turnTo(0);
    else if (run.steps[step].rest) teller.restAt(step);
    else teller.open(step, false);
  }

  // ---- what the visitor does

  async function start() {
    if (busy) return;
    if (stage.hold.held) return stage.banner.notice("The program is held. Resume it, then start the tour.");
    if (stage.resource !== "pods") stage.setResource("pods");
    stage.first.leave();
    busy = true;
    await list;
    const mine = ++ticket; // a tour that was left may still close its client
    stage.attend(true);
    if (saved?.run?.key) await deed("end", saved.run).catch(() => {}); // of a tour that was not ended
    [coming, acted] = [null, false];
    player.freeze();
    try {
      const told = stage.source ? { from: player.head, informer: scene.informer } : await get("/viz/scenario/tour");
      run = { ...told, log: stage.shown.log };
      if (player.recording) await player.seek(player.oldest);
      await deed("begin");
      await enter(mine, 0);
    } catch (problem) {
      stage.banner.trouble(problem);
    } finally {
      busy = false;
    }
  }

  function go() {
    if (!teller) return;
    if (teller.over) finish();
    else if (teller.phase === "rests" && teller.beat === half - 1 && !acted) teller.open(half, false);
    else teller.next();
  }

  function back() {
    if (teller?.beat > 0 && teller.phase !== "busy") teller.back();
  }

  // close ends the tour, for the program, too, and shows what comes after it; the picture stays. It can be resumed at
  // a step, if that is not 0. The wish for a tour in the address is fulfilled.
  function close(part, step) {
    save(false, step);
    show(part);
    address({ tour: "" });
    const mine = ++ticket;
    // The program closes the clients of tours with the last page that gives one: this page's client goes before the
    // page does.
    const left = run?.key ? deed("end") : Promise.resolve();
    left.catch(() => {}).then(() => mine === ticket && stage.attend(false));
    if (player.mode !== "live" && stage.source) player.live();
  }

  function finish() {
    close("end", 0);
    follow.clear(); // what kubectl writes now is followed
    panel.querySelector("[data-part=end] .main").focus({ preventScroll: true });
  }

  function leave() {
    if (!teller) return show("");
    close("", teller.beat + 1);
    if (follow.by === "tour") follow.clear();
  }

  // resume goes on where the tour was left, if the records of it are still there.
  async function resume() {
    ({ run } = saved);
    [coming, acted] = [null, run.steps[half].rest > 0];
    stage.first.leave();
    stage.attend(true);
    const mine = ++ticket;
    try {
      await player.tape.load(run.from + 1, end() + 1);
      if (!(await player.seek(run.from))) return;
      await enter(mine, Math.max(0, saved.step - 1));
    } catch {
      stage.attend(false);
      run = null;
      await start();
    }
  }
  const resumable = () => Boolean(
    saved?.run?.steps && saved.step > 0 && stage.source && saved.run.log === stage.shown.log
      && saved.run.from >= player.oldest
  );

  // begin opens the tour, when the page's list was taken, if nothing else was asked for.
  let asked = false;
  let begun = null;
  const list = new Promise((done) => (begun = done)); // the page has taken its list
  function begin() {
    begun();
    if (teller && run?.log !== stage.shown.log) {
      stage.attend(false); // another program, or the same one in another mode
      show("");
    }
    const wanted = !asked && saved?.open && new URLSearchParams(location.search).get("tour") !== "0";
    asked = true;
    if (wanted && resumable()) resume();
  }

  when("#tour-start", "click", start);
  when("#open-tour", "click", () => {
    if (teller) leave();
    else if (resumable() && !saved.open) resume();
    else start();
  });
  when(panel, "click", ({ target }) => {
    const { tourLeave, tourStory, tourTry } = target.dataset;
    if ((tourLeave ?? tourStory ?? tourTry) !== undefined) leave();
    if (tourTry) $(tourTry).click();
  });

  const keys = { ArrowRight: go, PageDown: go, ArrowLeft: back, PageUp: back, Escape: leave, quiet };
  return {
    begin, guide: () => teller && keys,
    jumped: () => player.recording && begin(),
    draw: count, restyle: () => teller && frame(),
    escape: () => document.body.dataset.tour === "end" && (leave(), true),
  };
}
