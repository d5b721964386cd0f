// @ts-nocheck
// Stories: a gallery by symptom. A story is played on the running pipeline at the machine's own speed, and told at the
// viewer's, beat by beat (teller.js): with a light on the stations it is about, a guess before what decides, and rest
// at its end. A link commands nothing: /?story=ID waits at the first beat, and the machine plays when the viewer goes
// on. What was not played, or did not show a beat, is told from the recording that the program brings along, and the
// page says so.

import { $, address, below, elementOf, make, mark, put, say, when } from "../dom/dom.js";
import { ask, get } from "../lib/api.js";
import { newTold } from "../stage/told.js";
import { Teller } from "./teller.js";

const storage = "stories";
const addressOf = (id) => `/viz/scenario/${encodeURIComponent(id)}`;
const verdicts = { right: "Right", wrong: "Not so", told: "It is so" };

export function newScenarios(stage) {
  const { player } = stage;
  const dialog = $("#stories-dialog");
  const rows = [...dialog.querySelectorAll("[data-story]")];
  const rowOf = (id) => rows.find((li) => li.dataset.story === id);
  const panel = $("#story");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  // what is told: {id, title, …, beats, take, recorded}. recorded says where its beats stand in the recording called
  // take; alone, why it is not played on the machine
  let story = null;
  let teller = null;
  let run = null; // {log, beats, saw} of the machine's run; null: it is told from the recording, or not played yet
  let live = false; // it is to be played, or was
  let onTake = ""; // the recording that is on stage for a story
  let playing = null; // {abort, began} while the machine plays
  let symptom = ""; // in a lab: the record for which the machine's run has waited in vain
  let remark = ""; // why it is not told from the machine's run: the rest of a sentence, or another one
  let resource = ""; // what was on stage before
  let seen = []; // by beat: what is seen where it rests
  const known = () => (localStorage.getItem(storage) ?? "").split(" ").filter(Boolean); // stories seen to their ends

  // openStory turns to a beat of a story and waits there. Played means: go on at once.
  async function openStory(id, { beat = 0, played = false } = {}) {
    const none = ({ message }) => stage.banner.notice(`There is no story ${id}: ${message}`);
    const found = await get(addressOf(id)).catch(none);
    if (!found) return;
    if (teller) end();
    else resource = stage.resource;
    story = found;
    symptom = "";
    [run, remark, seen, playing] = [null, found.alone ? `, because ${found.alone}` : "", [], null];
    beat = Math.min(Math.max(0, beat), story.beats.length - 1);
    live = document.body.dataset.plays === "true" && !story.alone && beat === 0;
    const paced = story.beats.map((each, i) => ({ ...each, pace: story.pace[i] }));
    teller = new Teller(paced, { range, play, seek: (seq) => player.seek(seq), changed: show, trouble: stage.banner.trouble });
    teller.still = calm.matches;
    if (live) await toProgram();
    player.freeze();
    dialog.close();
    below(panel);
    introduce();
    await teller.open(beat, !live);
    if (played) teller.next();
  }

  // ---- what the teller asks for

  // range returns where a beat stands, and sees to it that its records are on stage.
  async function range(i) {
    const mine = teller;
    if (live && !run) await playLive();
    let place = run?.beats[i];
    if (place?.to) await toProgram();
    if (run && place.to && run.log !== stage.shown.log) fall("The program has restarted since it played the story");
    if (run && !place.to) remark = `. The machine's run does not show beat ${i + 1}`;
    if (!run || !place.to) {
      place = story.recorded[i];
      if (onTake !== story.take && (await stage.visit.layTake(story.take, () => mine === teller))) onTake = story.take;
    }
    if (mine !== teller) return place;
    const about = place.resource || "pods";
    if (about !== stage.resource) stage.setResource(about);
    const beginning = (run && place === run.beats[i] ? run.beats : story.recorded).find((each) => each.to).from;
    const records = player.tape.between(beginning + 1, place.to + 1);
    stage.scene.front = place.subject; // the client on whose moment the beat rests
    stage.scene.tell(newTold(stage.scene, story, records, place.from));
    seen[i] = place.seen;
    return place;
  }

  async function toProgram() {
    if (onTake) await stage.visit.home();
    onTake = "";
  }

  // playLive plays the story on the machine. If that cannot be, it is told from the recording.
  async function playLive() {
    const mine = teller;
    playing = { abort: new AbortController(), began: performance.now() };
    try {
      const answer = await ask("POST", addressOf(story.id), undefined, { signal: playing.abort.signal });
      if (mine !== teller) return;
      symptom = answer.symptom ?? "";
      run = { log: stage.shown.log, beats: answer.beats ?? [], saw: answer.saw };
      const places = run.beats.filter((each) => each.to);
      if (places.length === 0) fall(answer.untold ?? "The machine's run shows no beat.");
      else await player.tape.load(places[0].from + 1, places.at(-1).to + 1); // it may have left the log when it is told
      // the answer may overtake the feed: a player goes no further than the newest record that the feed has brought
      const come = () => !(player.head < places.at(-1)?.to);
      while (mine === teller && !come()) await new Promise(requestAnimationFrame);
    } catch (problem) {
      if (mine === teller) fall(problem.message);
    } finally {
      playing = null;
    }
  }

  function fall(why) {
    [run, live] = [null, false];
    remark = `. ${why.replace(/\.+$/, "")}`;
  }

  const play = ({ to }, ms) => (teller.still ? player.seek(to) : player.playTo(to, { within: ms }));

  // ---- what is seen

  function introduce() {
    say($("#story-title"), story.title);
    say($("#story-symptom"), story.symptom);
    $("#story-beat").replaceChildren(...elementOf(story.panel).children);
    put($("#story-chapter"), "href", rowOf(story.id).querySelector(".buttons a").getAttribute("href"));
    $("#story-beats").replaceChildren(...story.beats.map((_, i) => make("li", { title: `Beat ${i + 1}` })));
    put(document.body, "data-story", story.id);
    put(document.body, "data-beats", story.beats.length);
  }

  function show() {
    const { beat, phase, over } = teller;
    put(document.body, "data-beat", beat + 1);
    put(document.body, "data-rest", teller.resting || null);
    put(panel, "data-phase", phase);
    mark(panel, "over", over);
    if (over && !known().includes(story.id)) localStorage.setItem(storage, [...known(), story.id].join(" "));
    showBeats();
    showWords();
    showButtons();
    // a phone shows the end of a long card: the answers
    panel.scrollTop = story.beats[beat].question && !over ? panel.scrollHeight : 0;
    stage.zoom.frameOn(story.beats[beat].look);
    nameBeat();
  }

  function showBeats() {
    [...$("#story-beats").children].forEach((li, i) => {
      mark(li, "shown", teller.shown.has(i));
      li.ariaCurrent = i === teller.beat ? "step" : null;
    });
    say($("#story-count"), `${teller.beat + 1} of ${story.beats.length}`);
  }

  // showWords shows the beat's part of the panel, as far as it has been told: what was shown, and nothing else.
  function showWords() {
    const parts = $("#story-beat").children;
    for (const [i, each] of [...parts].entries()) each.hidden = i !== teller.beat;
    const part = parts[teller.beat];
    const guess = teller.guesses[teller.beat];
    const verdict = teller.verdict();
    put(part, "data-verdict", verdict);
    part.querySelectorAll("[data-answer]").forEach((button, i) => {
      button.disabled = teller.phase !== "ready" || guess !== undefined;
      put(button, "aria-pressed", String(i === guess));
    });
    if (verdict) say(part.querySelector(".verdict b"), verdicts[verdict]);
    part.querySelectorAll("[data-seen]").forEach((el) => {
      const i = (el.value || teller.beat + 1) - 1;
      el.hidden = teller.phase !== "rests" || !seen[i] || !teller.shown.has(i);
      say(el, el.hidden ? "" : seen[i]);
    });
    if (!teller.over) return;
    const all = run && !onTake && run.beats.every((each, i) => each.to && teller.shown.has(i));
    part.querySelector(".run").hidden = !all;
    if (all) say(part.querySelector(".run span"), run.saw);
  }

  // next is the row of the gallery after the story's own, the first one after the last.
  const next = () => rows[(rows.indexOf(rowOf(story.id)) + 1) % rows.length];

  function openGallery() {
    for (const li of rows) {
      li.querySelector(".seen").hidden = !known().includes(li.dataset.story);
    }
    dialog.showModal();
  }

  function showButtons() {
    const { phase, auto, over, beat } = teller;
    $("#story-next").hidden = over;
    $("#story-another").hidden = !over;
    if (over) put($("#story-another"), "title", next().querySelector("h4").firstChild.textContent.trim());
    $("#story-next").disabled = phase === "busy";
    $("#story-back").disabled = phase === "busy" || (beat === 0 && phase === "ready");
    const first = phase === "ready" && beat === 0 && live && !run;
    const words = { plays: "To its end", away: "This beat again" };
    say($("#story-next"), words[phase] ?? (first ? "Play it" : "Next"));
    put($("#story-auto"), "aria-pressed", String(auto));
    say($("#story-auto"), auto ? "Pause" : over ? "Tell it again" : "Auto-play");
    showState();
  }

  function showState() {
    if (!teller) return;
    const seconds = playing && Math.floor((performance.now() - playing.began) / 1000);
    const told = live && !run ? "the machine plays it when you press Play it" : "from a recording";
    const source = run && !onTake ? "from the machine's run, just now" : told;
    $("#story-lab").hidden = !symptom;
    say($("#story-lab span"), symptom);
    say($("#story-state"), playing ? `the machine plays it, ${seconds} s` : `${source}${remark}`);
  }

  // nameBeat names the beat in the address, so that it can be linked to. The first one of a story is where the machine
  // is asked.
  const nameBeat = () => address({ story: teller && story.id, beat: teller?.beat > 0 && teller.beat + 1 });

  // ---- hands

  function end() {
    playing?.abort.abort();
    teller.leave();
    teller = null;
  }

  async function leave() {
    if (!teller) return;
    end();
    for (const name of ["data-story", "data-beat", "data-beats", "data-rest"]) put(document.body, name, null);
    nameBeat();
    stage.zoom.frameOn([]);
    stage.scene.front = null;
    stage.scene.tell(null);
    below(null);
    if (stage.resource !== resource) stage.setResource(resource);
    if (onTake) await toProgram();
    else await player.live();
  }

  // guide gives the arrows, a clicker, Space and the numbers of answers to the story.
  function guide() {
    if (!teller) return null;
    const { next, back, toggle } = Object.fromEntries(["next", "back", "toggle"].map((name) => [name, () => teller[name]()]));
    const answer = (i) => () => teller.guess(i);
    return {
      ArrowRight: next, PageDown: next, ArrowLeft: back, PageUp: back, " ": toggle,
      1: answer(0), 2: answer(1), 3: answer(2), 4: answer(3),
    };
  }

  // openAsked opens the story that the address names, and returns whether it names one.
  function openAsked() {
    const asked = new URLSearchParams(location.search);
    if (asked.get("story") && !teller) openStory(asked.get("story"), { beat: (Number(asked.get("beat")) || 1) - 1 });
    return asked.has("story");
  }

  when("#story-another", "click", () => openStory(next().dataset.story, { played: true }));
  when(document, "click", ({ target }) => {
    const { play, firstStory, tourStory } = target.dataset;
    const id = play ?? firstStory ?? tourStory;
    if (id) openStory(id, { played: Boolean(play) });
  });
  when("#story-leave", "click", leave);

  return {
    openAsked, openStory, begin: openAsked, guide,
    draw(now, ms) {
      if (!teller) return;
      // one guide at a time
      if (document.body.dataset.tour && document.body.dataset.tour !== "end") return void leave();
      teller.at(player.cursor);
      teller.tick(ms);
      if (playing) showState();
    },
    escape: () => Boolean(teller) && (leave(), true),
    keys: [[["y"], "stories: what has happened to you?", openGallery]],
  };
}
