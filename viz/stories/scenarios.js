// Stories: a gallery by symptom. A story is played on the running pipeline at the machine's own speed, and told at the
// viewer's, beat by beat (beatplayer.js): with a light on the stations it is about, a guess before what decides, and
// rest at its end. A link commands nothing: /?story=ID waits at the first beat, and the machine plays when the viewer
// goes on. What was not played, or did not show a beat, is told from the recording that the program brings along, and
// the page says so.

import { $, address, below, elementOf, make, mark, part, parts, put, say, when } from "../dom/dom.js";
import { ask, get, refusal } from "../lib/api.js";
import { StoryView } from "../stage/storyview.js";
import { BeatPlayer } from "./beatplayer.js";

const storage = "stories";
/** @param {string} id */
const addressOf = (id) => `/viz/scenario/${encodeURIComponent(id)}`;
/** @type {{ [verdict: string]: string }} */
const verdicts = { right: "Right", wrong: "Not so", told: "It is so" };

/**
 * @typedef {object} More what the page gets with a story
 * @property {string} take the recording that the program brings along
 * @property {import("./beatplayer.js").Pace[]} pace
 * @property {scenario.Range[]} recorded where its beats stand there
 * @property {string} panel what the page says, beat by beat, as HTML
 * @typedef {scenario.Story & More} Story
 * @typedef {{ log: string, beats: scenario.Range[], saw: string }} Run of the machine
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Scene} scene
 * @property {page.Zoom} zoom
 * @property {import("../frame/visit.js").Visit} visit
 * @property {() => string} resource on stage
 * @property {(name: string) => void} setResource
 * @property {() => { log: string }} shown
 * @property {(text: string) => void} notice
 * @property {(problem: unknown) => void} trouble
 */

// known are the stories that were seen to their ends.
const known = () => (localStorage.getItem(storage) ?? "").split(" ").filter(Boolean);

export class Scenarios {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.dialog = $("#stories-dialog", HTMLDialogElement);
    this.rows = parts(this.dialog, "[data-story]");
    this.panel = $("#story");
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    /** @type {Session | null} */
    this.session = null;
    this.before = ""; // the resource that was on stage before
    this.onTake = ""; // the recording that is on stage for a story
    this.keys = { y: () => this.openGallery() };
    when("#story-another", "click", () => this.openStory(this.next().dataset.story ?? "", { played: true }));
    when(document, "click", ({ target }) => {
      const { play, firstStory } = target.dataset;
      const id = play ?? firstStory;
      if (id) this.openStory(id, { played: Boolean(play) });
    });
    when("#story-leave", "click", () => this.leave());
  }

  // openStory turns to a beat of a story and waits there. Played means: go on at once.
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
    const session = (this.session = new Session(this, story, live));
    session.beatPlayer.still = this.calm.matches;
    if (live) await this.toProgram();
    stage.player.freeze();
    this.dialog.close();
    below(panel);
    session.introduce(this.rowOf(story.id));
    await session.beatPlayer.open(at, !live);
    if (played) session.beatPlayer.next();
  }

  /** @param {string} id */
  rowOf(id) { return this.rows.find((li) => li.dataset.story === id) ?? this.rows[0]; }

  // next is the row of the gallery after the story's own, the first one after the last.
  next() {
    const at = this.session ? this.rows.indexOf(this.rowOf(this.session.story.id)) : -1;
    return this.rows[(at + 1) % this.rows.length];
  }

  async toProgram() {
    if (this.onTake) await this.stage.visit.home();
    this.onTake = "";
  }

  // toTake puts a story's recording on the stage, if the story is still told when it has come.
  /** @param {Session} session */
  async toTake(session) {
    const { take } = session.story;
    if (this.onTake === take) return;
    if (await this.stage.visit.layTake(take, () => this.session === session)) this.onTake = take;
  }

  openGallery() {
    for (const li of this.rows) part(li, ".seen").hidden = !known().includes(li.dataset.story ?? "");
    this.dialog.showModal();
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

  // guide gives the arrows, a clicker, Space and the numbers of answers to the story.
  /** @returns {page.Guide | null} */
  guide() {
    const beatPlayer = this.session?.beatPlayer;
    if (!beatPlayer) return null;
    const [next, back, toggle] = [() => beatPlayer.next(), () => beatPlayer.back(), () => beatPlayer.toggle()];
    const answer = (/** @type {number} */ i) => () => beatPlayer.guess(i);
    return {
      ArrowRight: next, PageDown: next, ArrowLeft: back, PageUp: back, " ": toggle,
      1: answer(0), 2: answer(1), 3: answer(2), 4: answer(3),
    };
  }

  // openAsked opens the story that the address names, and returns whether it names one.
  openAsked() {
    const asked = new URLSearchParams(location.search);
    const story = asked.get("story");
    if (story && !this.session) this.openStory(story, { beat: (Number(asked.get("beat")) || 1) - 1 });
    return asked.has("story");
  }

  begin() { this.openAsked(); }

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

// A Session is one story while it is told.
class Session {
  /** @param {Scenarios} owner @param {Story} story @param {boolean} live it is to be played, or was */
  constructor(owner, story, live) {
    this.owner = owner;
    this.stage = owner.stage;
    this.story = story;
    this.live = live;
    /** @type {Run | null} */
    this.run = null; // the machine's; null: it is told from the recording, or not played yet
    /** @type {{ abort: AbortController, began: number } | null} */
    this.playing = null; // while the machine plays
    this.symptom = ""; // in a lab: the record for which the machine's run has waited in vain
    // why it is not told from the machine's run: the rest of a sentence, or another one
    this.remark = story.alone ? `, because ${story.alone}` : "";
    /** @type {string[]} */
    this.seen = []; // by beat: what is seen where it rests
    const { player, trouble } = this.stage;
    const paced = story.beats.map((each, i) => ({ ...each, pace: story.pace[i] }));
    /** @type {BeatPlayer<scenario.Range>} */
    this.beatPlayer = new BeatPlayer(paced, {
      range: (i) => this.range(i), changed: () => this.show(), trouble,
      play: ({ to }, ms) => (this.beatPlayer.still ? player.seek(to) : player.playTo(to, { within: ms })),
      seek: (seq) => player.seek(seq),
    });
  }

  get current() { return this.owner.session === this; } // is it still told?

  // range returns where a beat stands, and sees to it that its records are on stage.
  /** @param {number} i @returns {Promise<scenario.Range>} */
  async range(i) {
    const { owner, story, stage } = this;
    if (this.live && !this.run) await this.playLive();
    if (this.run?.beats[i].to) await owner.toProgram();
    if (this.run?.beats[i].to && this.run.log !== stage.shown().log) {
      this.fall("The program has restarted since it played the story");
    }
    const { run } = this;
    if (run && !run.beats[i].to) this.remark = `. The machine's run does not show beat ${i + 1}`;
    const beats = run?.beats[i].to ? run.beats : story.recorded;
    const place = beats[i];
    if (beats === story.recorded) await owner.toTake(this);
    if (!this.current) return place;
    const about = place.resource || "pods";
    if (about !== stage.resource()) stage.setResource(about);
    const beginning = beats.find((each) => each.to)?.from ?? 0;
    const records = stage.player.tape.between(beginning + 1, place.to + 1);
    stage.scene.front = place.subject ?? ""; // the client on whose moment the beat rests
    stage.scene.tell(new StoryView(stage.scene, story, records, place.from));
    this.seen[i] = place.seen;
    return place;
  }

  // playLive plays the story on the machine. If that cannot be, it is told from the recording.
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
      else await player.tape.load(places[0].from + 1, last + 1); // it may have left the log when it is told
      // the answer may overtake the feed: a player goes no further than the newest record that the feed has brought
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

  // ---- what is seen

  /** @param {HTMLElement} row of the gallery */
  introduce(row) {
    const { story } = this;
    say($("#story-title"), story.title);
    say($("#story-symptom"), story.symptom);
    $("#story-beat").replaceChildren(...elementOf(story.panel).children);
    put($("#story-chapter"), "href", part(row, ".buttons a").getAttribute("href"));
    $("#story-beats").replaceChildren(...story.beats.map((_, i) => make("li", { title: `Beat ${i + 1}` })));
    put(document.body, "data-story", story.id);
    put(document.body, "data-beats", story.beats.length);
    put(document.body, "data-unfolds", story.unfolds || null);
  }

  show() {
    const { beatPlayer: { beat, phase, over, resting }, story, owner: { panel } } = this;
    put(document.body, "data-beat", beat + 1);
    put(document.body, "data-rest", resting || null);
    put(panel, "data-phase", phase);
    mark(panel, "over", over);
    if (over && !known().includes(story.id)) localStorage.setItem(storage, [...known(), story.id].join(" "));
    this.showBeats();
    this.showWords();
    this.showButtons();
    // a phone shows the end of a long card: the answers
    panel.scrollTop = story.beats[beat].question && !over ? panel.scrollHeight : 0;
    /** @type {Set<string>} */
    const reached = new Set(story.beats.slice(0, beat + 1).flatMap(({ look }) => look));
    for (const [name, el] of this.stage.scene.stations) mark(el, "reached", reached.has(name));
    this.stage.zoom.frameOn(story.beats[beat].look);
    // The beat stands in the address, so that it can be linked to. The first one is where the machine is asked.
    address({ story: story.id, beat: beat > 0 && beat + 1 });
  }

  showBeats() {
    const { beatPlayer, story } = this;
    parts($("#story-beats"), "li").forEach((li, i) => {
      mark(li, "shown", beatPlayer.shown.has(i));
      li.ariaCurrent = i === beatPlayer.beat ? "step" : null;
    });
    say($("#story-count"), `${beatPlayer.beat + 1} of ${story.beats.length}`);
  }

  // showWords shows the beat's part of the panel, as far as it has been told: what was shown, and nothing else.
  showWords() {
    const { beatPlayer, seen, run, owner } = this;
    const all = parts($("#story-beat"), ":scope > *");
    for (const [i, each] of all.entries()) each.hidden = i !== beatPlayer.beat;
    const words = all[beatPlayer.beat];
    const guess = beatPlayer.guesses[beatPlayer.beat];
    const verdict = beatPlayer.verdict();
    put(words, "data-verdict", verdict);
    for (const [i, button] of [...words.querySelectorAll("[data-answer]")].entries()) {
      button.toggleAttribute("disabled", beatPlayer.phase !== "ready" || guess !== undefined);
      put(button, "aria-pressed", String(i === guess));
    }
    if (verdict) say(part(words, ".verdict b"), verdicts[verdict]);
    for (const el of parts(words, "[data-seen]")) {
      const i = ((el instanceof HTMLLIElement && el.value) || beatPlayer.beat + 1) - 1;
      el.hidden = beatPlayer.phase !== "rests" || !seen[i] || !beatPlayer.shown.has(i);
      say(el, el.hidden ? "" : seen[i]);
    }
    if (!beatPlayer.over) return;
    const whole = run && !owner.onTake && run.beats.every((each, i) => each.to && beatPlayer.shown.has(i));
    part(words, ".run").hidden = !whole;
    if (whole) say(part(words, ".run span"), run.saw);
  }

  showButtons() {
    const { phase, auto, over, beat } = this.beatPlayer;
    $("#story-next").hidden = over;
    $("#story-another").hidden = !over;
    const title = part(this.owner.next(), "h4").firstChild?.textContent ?? "";
    if (over) put($("#story-another"), "title", title.trim());
    $("#story-next", HTMLButtonElement).disabled = phase === "busy";
    $("#story-back", HTMLButtonElement).disabled = phase === "busy" || (beat === 0 && phase === "ready");
    const first = phase === "ready" && beat === 0 && this.live && !this.run;
    const words = phase === "plays" ? "To its end" : phase === "away" ? "This beat again" : first ? "Play it" : "Next";
    say($("#story-next"), words);
    put($("#story-auto"), "aria-pressed", String(auto));
    say($("#story-auto"), auto ? "Pause" : over ? "Tell it again" : "Auto-play");
    this.showState();
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
