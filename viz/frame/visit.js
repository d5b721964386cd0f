// Visits: links to a moment, and recordings that are dropped onto the page.

import { $, copied, make, put, when } from "../dom/dom.js";
import { fileAt, program, refusal, take } from "../lib/api.js";
import { linkTo, misfit, readLink, readRecording } from "../log/recording.js";
import { Tape } from "../log/tape.js";

/**
 * @typedef {import("../log/recording.js").Link} Link
 * @typedef {import("../log/recording.js").Header} Header
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Follow} follow
 * @property {{ clear: () => void, arrived: (list: probe.Record[]) => void }} timeline
 * @property {import("../log/fold.js").Fold} fold
 * @property {() => { log: string, recording: string }} shown what is on stage, as links name it
 * @property {() => boolean} program is there one, and is it on stage?
 * @property {() => (() => void) | undefined} figure in a chapter: what is told when the recording is on stage
 * @property {() => void} again lets the newest change travel once more
 * @property {(text: string, calm?: boolean) => void} notice
 * @property {(words: string) => void} tell in passing
 * @property {(problem: unknown) => void} trouble
 * @property {(recording: string) => void} leave lets go of the program
 * @property {() => void} reopen after leave
 * @property {(switches: page.Switches) => void} switched
 */

const theOnly = "recording"; // the name of the take in a page of one recording (viz/export/one.go)

export class Visit {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {(() => void) | null} */
    this.returned = null; // told when the program is on stage again
    this.keys = { s: () => this.copyLink() };
    this.bind();
  }

  begin() { this.returned?.(); }

  // arrive goes to where the address says, or to the beginning of a recording.
  /** @param {boolean} recorded */
  async arrive(recorded) {
    const { player, again } = this.stage;
    if (player.moved || document.body.dataset.story) return; // the viewer was faster
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
    if (!this.stage.program() && !shown().recording) {
      return notice("The browser cannot make a link to this recording: the page is neither local nor encrypted.");
    }
    window.history.replaceState(null, "", linkTo({ ...shown(), cursor, follow }));
    tell((await copied(location.href)) ? "link copied" : "the link is in the address bar");
  }

  // show puts a recording on the stage, which comes as a File, from its beginning, or at the moment of a link to it. In
  // a chapter it stands still: the chapter moves it.
  /** @param {string} name @param {File | Promise<File>} coming @param {boolean} [explained] */
  async show(name, coming, explained = false) {
    const { player, figure, notice } = this.stage;
    try {
      const { hash, header, records } = await this.put(await coming);
      const ready = figure();
      if (explained) this.explain(header, records.find((r) => r.point === "Unknown"));
      else if (ready) return ready();
      const link = readLink(location.hash);
      if (link?.recording && link.recording === hash) return this.visit(link);
      if (await player.seek(player.oldest)) player.play();
    } catch (problem) {
      notice(`${name}: ${refusal(problem).message}`);
    }
  }

  // openRecording shows a recording that was dropped here, openTake one of ours, or that was opened as a page.
  /** @param {File} file */
  openRecording(file) { return this.show(file.name, file, true); }
  /** @param {string} name */
  openTake(name) { return this.show(name, take(name), name === theOnly); }

  // layTake puts a recording that the program brings along on the stage, if it is still wanted when it has come, and
  // returns whether it was. It stands still.
  /** @param {string} name @param {() => boolean} wanted */
  async layTake(name, wanted) {
    const read = await this.read(await take(name));
    if (wanted()) this.lay(read);
    return wanted();
  }

  // home puts back on the stage what was there before layTake: the running program, or the recording that the page is
  // about.
  async home() {
    if (document.body.dataset.take) return this.openTake(document.body.dataset.take);
    put(document.body, "data-laid", null);
    const back = new Promise((done) => (this.returned = () => done(null)));
    this.stage.reopen();
    await back;
  }

  // keep gives the viewer what the program remembers, as a file.
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

  /** @param {File} file */
  async put(file) {
    const read = await this.read(file);
    this.lay(read);
    return read;
  }

  // lay puts a recording where the records of the program were, and lets go of that, if there is one.
  /** @param {Awaited<ReturnType<Visit["read"]>>} read */
  lay({ hash, header, records, state, first, tape }) {
    const { player, follow, timeline, leave, switched } = this.stage;
    leave(hash);
    follow.clear();
    put(document.body, "data-laid", "true"); // what acts on the program is out of reach meanwhile
    player.oldest = first;
    timeline.clear();
    timeline.arrived(records);
    player.reset(tape, state, true);
    switched(header.switches);
  }

  /** @param {Header} header @param {probe.Record | undefined} unknown */
  explain(header, unknown) {
    const { notice } = this.stage;
    if (unknown) {
      return notice(
        `Another version of the program wrote this recording: its moments of ${unknown.texts?.name}, and of what ` +
          "else this one does not know, are shown by name only."
      );
    }
    const why = header.reason ? `Why: ${header.reason} ` : "";
    notice(
      `A recording of ${new Date(header.started).toLocaleString()}. ${why}` +
        (program ? "Reload the page to leave it." : "The program is not here."), true
    );
  }

  bind() {
    const offer = (/** @type {boolean} */ on) => ($("#drop").hidden = !on);
    when(document, "dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      offer(true);
    });
    when(document, "dragleave", ({ relatedTarget }) => offer(relatedTarget !== null));
    when(document, "drop", (event) => {
      offer(false);
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
