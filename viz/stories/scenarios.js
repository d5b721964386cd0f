// Stories: a gallery by symptom. The running pipeline plays a story at full speed; the viewer then steps through it,
// beat by beat (beatplayer.js). A link starts nothing: /?story=ID waits at the first beat. If a story was not played,
// or its run lacks a beat, the page uses the embedded recording and shows a note.

import { $, address, below, elementOf, mark, part, parts, put, say, when } from "../dom/dom.js";
import { ask, get, refusal } from "../lib/api.js";
import { StoryView } from "../stage/storyview.js";
import { BeatPlayer } from "./beatplayer.js";

/** @param {string} id */
const addressOf = (id) => `/viz/scenario/${encodeURIComponent(id)}`;

/**
 * @typedef {object} More additions to a story for the page
 * @property {string} take the name of the embedded recording
 * @property {import("./beatplayer.js").Pace[]} pace
 * @property {scenario.Range[]} recorded the places of its beats in the recording
 * @property {string} panel the words of the page, beat by beat, as HTML
 * @typedef {scenario.Story & More} Story
 * @typedef {{ log: string, beats: scenario.Range[], saw: string }} Run the pipeline's run of a story
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Scene} scene
 * @property {page.Zoom} zoom
 * @property {import("../frame/visit.js").Visit} visit
 * @property {() => string} resource the resource on stage
 * @property {(name: string) => void} setResource
 * @property {() => { log: string }} shown
 * @property {(text: string) => void} notice
 * @property {(problem: unknown) => void} trouble
 */

export class Scenarios {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.dialog = $("#stories-dialog", HTMLDialogElement);
    this.panel = $("#story");
    /** @type {Session | null} */
    this.session = null;
    this.before = ""; // the resource on stage before the story
    this.onTake = ""; // the recording on stage for a story
    this.keys = { y: () => this.dialog.showModal() };
    when(document, "click", ({ target: { dataset: { play, firstStory: id = play } } }) => {
      if (id) this.openStory(id, { played: Boolean(play) });
    });
  }

  // openStory turns to a beat of a story and waits there. With played, the beat begins at once.
  /** @param {string} id @param {{ beat?: number, played?: boolean }} [how] */
  async openStory(id, { beat = 0, played = false } = {}) {
    const { stage, panel } = this;
    /** @type {Story | null} */
    const story = await get(addressOf(id)).catch((problem) => {
      stage.notice(`There is no story ${id}: ${refusal(problem).message}`);
      return null;
    });
    if (!story) return;
    if (this.session) this.end(this.session);
    else this.before = stage.resource();
    const at = Math.min(Math.max(0, beat), story.beats.length - 1);
    const live = document.body.dataset.plays === "true" && !story.alone && at === 0;
    const { beatPlayer } = (this.session = new Session(this, story, live));
    beatPlayer.still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (live) await this.toProgram();
    stage.player.freeze();
    this.dialog.close();
    below(panel);
    panel.replaceChildren(...elementOf(story.panel).children);
    const link = part(this.dialog, `[data-story="${story.id}"] a`); // the gallery's link to the chapter
    put($("#story-chapter"), "href", link.getAttribute("href"));
    const about = { story: story.id, beats: story.beats.length, unfolds: story.unfolds };
    for (const [name, value] of Object.entries(about)) put(document.body, `data-${name}`, value || null);
    await beatPlayer.open(at, Infinity, !live);
    if (played) beatPlayer.next();
  }

  async toProgram() {
    if (this.onTake) await this.stage.visit.home();
    this.onTake = "";
  }

  // toTake puts a story's recording on the stage after it has loaded, if the story is still open.
  /** @param {Session} session */
  async toTake(session) {
    const { take } = session.story;
    if (this.onTake === take) return;
    if (await this.stage.visit.layTake(take, () => this.session === session)) this.onTake = take;
  }

  /** @param {Session} session */
  end(session) {
    session.playing?.abort.abort();
    session.beatPlayer.leave();
    this.session = null;
  }

  async leave() {
    const { session, stage } = this;
    if (!session) return;
    this.end(session);
    for (const name of ["story", "beat", "beats", "rest", "unfolds"]) put(document.body, `data-${name}`, null);
    address({ story: "", beat: "" });
    stage.zoom.frameOn([]);
    stage.scene.front = "";
    stage.scene.tell(null);
    below(null);
    if (stage.resource() !== this.before) stage.setResource(this.before);
    if (this.onTake) await this.toProgram();
    else await stage.player.live();
  }

  // guide returns the story's keys: the arrows, a clicker's keys, Space, and the numbers of answers.
  /** @returns {page.Guide | null} */
  guide() {
    const beatPlayer = this.session?.beatPlayer;
    if (!beatPlayer) return null;
    const [next, back] = [() => beatPlayer.next(), () => beatPlayer.back()];
    const answers = Object.fromEntries([1, 2, 3, 4].map((n) => [n, () => beatPlayer.guess(n - 1)]));
    const more = { " ": () => beatPlayer.toggle(), leave: () => this.leave(), ...answers };
    return { ArrowRight: next, PageDown: next, ArrowLeft: back, PageUp: back, ...more };
  }

  // begin opens the story that the address names, and returns whether it names one.
  begin() {
    const asked = new URLSearchParams(location.search);
    const story = asked.get("story");
    if (story && !this.session) this.openStory(story, { beat: (Number(asked.get("beat")) || 1) - 1 });
    return asked.has("story");
  }

  /** @param {number} _now @param {number} ms */
  draw(_now, ms) {
    const { session } = this;
    if (!session) return;
    session.beatPlayer.at(this.stage.player.cursor);
    session.beatPlayer.tick(ms);
    if (session.playing) session.showState();
  }

  escape() {
    if (!this.session) return false;
    this.leave();
    return true;
  }
}

class Session {
  /** @param {Scenarios} owner @param {Story} story @param {boolean} live whether the pipeline plays it */
  constructor(owner, story, live) {
    this.owner = owner;
    this.stage = owner.stage;
    this.story = story;
    this.live = live;
    /** @type {Run | null} */
    this.run = null; // the pipeline's run; null if not played yet, or told from the recording
    /** @type {{ abort: AbortController, began: number } | null} */
    this.playing = null; // set while the pipeline plays
    this.symptom = ""; // in a lab, the record for which the run has waited in vain
    // the reason to tell the story from the recording: the rest of a sentence, or a sentence of its own
    this.remark = story.alone ? `, because ${story.alone}` : "";
    /** @type {string[]} */
    this.seen = []; // the caption of each beat's end, by beat
    const { player, trouble } = this.stage;
    const paced = story.beats.map((each, i) => ({ ...each, pace: story.pace[i] }));
    /** @type {BeatPlayer<scenario.Range>} */
    this.beatPlayer = new BeatPlayer(paced, {
      range: (i) => this.range(i), changed: () => this.show(), trouble, seek: (seq) => player.seek(seq),
      play: ({ to }, ms) => (this.beatPlayer.still ? player.seek(to) : player.playTo(to, { within: ms })),
    });
  }

  get current() { return this.owner.session === this; } // whether the story is still open

  // range returns the place of a beat, and turns the stage to the log or recording that has the beat's records.
  /** @param {number} i @returns {Promise<scenario.Range>} */
  async range(i) {
    const { owner, story, stage } = this;
    if (this.live && !this.run) await this.playLive();
    let shows = Boolean(this.run?.beats[i].to);
    if (shows) await owner.toProgram();
    if (shows && this.run?.log !== stage.shown().log) {
      this.fall("The program has restarted since it played the story");
      shows = false;
    } else if (this.run && !shows) this.remark = `. The machine's run does not show beat ${i + 1}`;
    const beats = (shows && this.run?.beats) || story.recorded;
    const place = beats[i];
    if (!shows) await owner.toTake(this);
    if (!this.current) return place;
    const kindOf = (/** @type {scenario.Range} */ each) => each.resource || "pods";
    const several = new Set(beats.filter(({ to }) => to).map(kindOf)).size > 1;
    if (kindOf(place) !== stage.resource()) stage.setResource(kindOf(place));
    const beginning = beats.find((each) => each.to)?.from ?? 0;
    const records = stage.player.tape.between(beginning + 1, place.to + 1);
    stage.scene.front = place.subject ?? ""; // the client of the beat's last moment
    stage.scene.tell(new StoryView(stage.scene, { ...story, several }, records, place.from));
    this.seen[i] = place.seen;
    return place;
  }

  // playLive plays the story on the pipeline. If that fails, the story is told from the recording.
  async playLive() {
    const { player, shown } = this.stage;
    const playing = (this.playing = { abort: new AbortController(), began: performance.now() });
    try {
      /** @type {scenario.Seen} */
      const answer = await ask("POST", addressOf(this.story.id), undefined, { signal: playing.abort.signal });
      if (!this.current) return;
      this.symptom = answer.symptom ?? "";
      this.run = { log: shown().log, beats: answer.beats ?? [], saw: answer.saw };
      const places = this.run.beats.filter((each) => each.to);
      const last = places.at(-1)?.to ?? 0;
      if (places.length === 0) this.fall(answer.untold ?? "The machine's run shows no beat.");
      else await player.tape.load(places[0].from + 1, last + 1); // the records may leave the log before they are told
      // The answer may overtake the feed: the player goes no further than the newest record from the feed.
      while (this.current && player.head < last) await new Promise(requestAnimationFrame);
    } catch (problem) {
      if (this.current) this.fall(refusal(problem).message);
    } finally {
      this.playing = null;
    }
  }

  /** @param {string} why */
  fall(why) {
    [this.run, this.live] = [null, false];
    this.remark = `. ${why.replace(/\.+$/, "")}`;
  }

  show() {
    const { beatPlayer: { beat, phase, over, resting, auto }, story, stage, owner } = this;
    put(document.body, "data-beat", beat + 1);
    put(document.body, "data-rest", resting || null);
    put(owner.panel, "data-phase", phase);
    mark(owner.panel, "over", over);
    parts($("#story-beats"), "li").forEach((li, i) => (li.ariaCurrent = i === beat ? "step" : null));
    this.showWords();
    const [next, another, back] = ["next", "another", "back"].map((name) => $(`#story-${name}`, HTMLButtonElement));
    [next.hidden, another.hidden] = [over, !over];
    [next.disabled, back.disabled] = [phase === "busy", phase === "busy" || (beat === 0 && phase === "ready")];
    const first = phase === "ready" && beat === 0 && this.live && !this.run;
    say(next, phase === "plays" ? "To its end" : phase === "away" ? "This beat again" : first ? "Play it" : "Next");
    put($("#story-auto"), "aria-pressed", String(auto));
    say($("#story-auto"), auto ? "Pause" : over ? "Tell it again" : "Auto-play");
    this.showState();
    document.body.style.setProperty("--story", `${owner.panel.offsetHeight + 12}px`);
    // scrolls a long card on a phone to the answers
    owner.panel.scrollTop = story.beats[beat].question && !over ? owner.panel.scrollHeight : 0;
    const reached = story.beats.slice(0, beat + 1).flatMap(({ look }) => look);
    for (const el of parts(stage.scene.root, ".station")) { // both halves have a reflector
      mark(el, "reached", reached.some((each) => each === el.dataset.station));
    }
    stage.zoom.frameOn(story.beats[beat].look);
    // The address names the beat, for links. Only at an address without a beat may the pipeline play the story.
    address({ story: story.id, beat: beat > 0 && beat + 1 });
  }

  // showWords shows the beat's part of the panel, but only the words about moments that the viewer has seen.
  showWords() {
    const { beatPlayer: { beat, guesses, phase, over }, seen, run, owner } = this;
    const all = parts($("#story-beat"), ":scope > *");
    for (const [i, each] of all.entries()) each.hidden = i !== beat;
    const words = all[beat];
    put(words, "data-verdict", this.beatPlayer.verdict());
    for (const [i, button] of parts(words, "[data-answer]").entries()) {
      button.toggleAttribute("disabled", phase !== "ready" || guesses[beat] !== undefined);
      put(button, "aria-pressed", String(i === guesses[beat]));
    }
    const caption = part(words, ".saw");
    caption.hidden = phase !== "rests" || !seen[beat];
    say(caption, seen[beat] ?? "");
    if (!over) return;
    const whole = run && !owner.onTake && run.beats.every((each) => each.to);
    part(words, ".run").hidden = !whole;
    if (whole) say(part(words, ".run span"), run.saw);
  }

  showState() {
    const { playing, live, run, symptom, remark } = this;
    const told = live && !run ? "the machine plays it when you press Play it" : "from a recording";
    const source = run && !this.owner.onTake ? "from the machine's run, just now" : told;
    $("#story-lab").hidden = !symptom;
    say($("#story-lab span"), symptom);
    const seconds = playing && Math.floor((performance.now() - playing.began) / 1000);
    say($("#story-state"), playing ? `the machine plays it, ${seconds} s` : `${source}${remark}`);
  }
}
