// Visits: links to a moment, and recordings, embedded or dropped onto the page.

import { $, copied, make, put, when } from "../dom/dom.js";
import { fileAt, program, queryOf, refusal, take } from "../lib/api.js";
import { misfit, readLink, readRecording } from "../log/recording.js";
import { Tape } from "../log/tape.js";

/**
 * @typedef {import("../log/recording.js").Link} Link
 * @typedef {import("../log/recording.js").Header} Header
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Follow} follow
 * @property {{ clear: () => void, arrived: (list: probe.Record[]) => void }} timeline
 * @property {import("../log/fold.js").Fold} fold
 * @property {() => { log: string, recording: string }} shown the names, in links, of the log or recording on stage
 * @property {() => boolean} program whether a program is on stage
 * @property {() => (() => void) | undefined} figure in a chapter, the function to call when the recording is on stage
 * @property {() => void} again replays the newest creation, in the first view
 * @property {(text: string, calm?: boolean) => void} notice
 * @property {(words: string) => void} tell shows words for a moment
 * @property {(problem: unknown) => void} trouble
 * @property {(recording: string) => void} leave leaves the program
 * @property {() => void} reopen returns to the program
 * @property {(switches: page.Switches) => void} switched
 */

export class Visit {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {(() => void) | null} */
    this.returned = null; // called when the program is on stage again
    this.keys = { s: () => this.copyLink() };
    this.bind();
  }

  begin() { this.returned?.(); }

  // arrive goes to the moment in the address, or to a recording's beginning, or, in the first view, to a creation.
  /** @param {boolean} recorded */
  async arrive(recorded) {
    const { player, again } = this.stage;
    if (player.moved || document.body.dataset.story) return; // the viewer has already moved on
    const link = readLink(location.hash);
    if (link) return this.visit(link);
    if (!recorded) return again();
    if (await player.seek(player.oldest)) player.play();
  }

  /** @param {Link} link */
  async visit(link) {
    const { player, follow, notice, shown } = this.stage;
    const problem = misfit(link, { ...shown(), oldest: player.oldest, head: player.head });
    if (problem) return notice(problem);
    await player.seek(link.at);
    if (link.key || link.rv) follow.set(link.key, link.rv);
  }

  async copyLink() {
    const { player: { cursor }, follow, shown, notice, tell } = this.stage;
    const { story } = document.body.dataset; // a story's address already names the story and the beat
    if (!story && !this.stage.program() && !shown().recording) {
      return notice("The browser cannot make a link to this recording: the page is neither local nor encrypted.");
    }
    const { key, rv } = follow;
    const here = story ? location.search : `#${queryOf({ ...shown(), at: cursor, key, rv })}`;
    window.history.replaceState(null, "", here);
    tell((await copied(location.href)) ? "link copied" : "the link is in the address bar");
  }

  // show plays a recording, or shows the moment of a link to it. In a chapter, the chapter moves the cursor.
  /** @param {string} name @param {File | Promise<File>} coming @param {boolean} explained */
  async show(name, coming, explained) {
    const { player, figure, notice } = this.stage;
    try {
      const read = await this.read(await coming);
      this.lay(read);
      const ready = figure();
      if (explained) this.explain(read.header, read.records.find((r) => r.point === "Unknown"));
      else if (ready) return ready();
      const link = readLink(location.hash);
      if (link?.recording && link.recording === read.hash) return this.visit(link);
      if (await player.seek(player.oldest)) player.play();
    } catch (problem) {
      notice(`${name}: ${refusal(problem).message}`);
    }
  }

  /** @param {File} file */
  openRecording(file) { return this.show(file.name, file, true); }
  /** @param {string} name */
  openTake(name) { return this.show(name, take(name), false); }

  // layTake puts an embedded recording on the stage, frozen, if wanted() is true after reading. It returns wanted().
  /** @param {string} name @param {() => boolean} wanted */
  async layTake(name, wanted) {
    const read = await this.read(await take(name));
    if (wanted()) this.lay(read);
    return wanted();
  }

  // home restores the stage from before layTake: the running program, or the page's own recording.
  async home() {
    if (document.body.dataset.take) return this.openTake(document.body.dataset.take);
    put(document.body, "data-laid", null);
    const back = new Promise((done) => (this.returned = () => done(null)));
    this.stage.reopen();
    await back;
  }

  async keep() {
    const file = await fileAt("/viz/recording", "listwatch.lw.gz");
    const href = URL.createObjectURL(file);
    make("a", { href, download: file.name }).click();
    URL.revokeObjectURL(href);
  }

  /** @param {File} file */
  async read(file) {
    const tape = new Tape(this.stage.fold, null);
    return { ...(await readRecording(file, this.stage.fold, tape)), tape };
  }

  // lay ends the feed, and puts a recording on the stage instead of the program or another recording.
  /** @param {Awaited<ReturnType<Visit["read"]>>} read */
  lay({ hash, header, records, state, first, tape }) {
    const { player, follow, timeline, leave, switched } = this.stage;
    leave(hash);
    follow.clear();
    put(document.body, "data-laid", "true"); // disables the controls that act on the program
    player.oldest = first;
    timeline.clear();
    timeline.arrived(records);
    player.reset(tape, state, true);
    switched(header.switches);
  }

  /** @param {Header} header @param {probe.Record | undefined} unknown */
  explain(header, unknown) {
    if (unknown) {
      return this.stage.notice("Another version of the program wrote this recording: its moments of " +
        `${unknown.texts?.name}, and of what else this one does not know, are shown by name only.`);
    }
    const why = header.reason ? `Why: ${header.reason} ` : "";
    this.stage.notice(`A recording of ${new Date(header.started).toLocaleString()}. ${why}` +
      (program ? "Reload the page to leave it." : "The program is not here."), true);
  }

  bind() {
    when(document, "dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
    when(document, "drop", (event) => {
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      event.preventDefault();
      this.openRecording(file);
    });
    when(window, "hashchange", () => {
      const link = readLink(location.hash);
      if (link && !this.stage.figure()) this.visit(link);
    });
    when("#keep", "click", () => this.keep().catch(this.stage.trouble));
  }
}
