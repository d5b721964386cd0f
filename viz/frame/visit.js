// @ts-nocheck
// Visits: links to a moment, and recordings that are dropped onto the page.

import { linkTo, misfit, readLink, readRecording } from "../log/recording.js";
import { Tape } from "../log/tape.js";
import { fileAt, program, take } from "../lib/api.js";
import { $, copied, make, put, when } from "../dom/dom.js";

export function newVisit(stage) {
  const { player, follow, timeline, fold } = stage;
  let returned = null; // told when the program is on stage again

  // arrive goes to where the address says, or to the beginning of a recording.
  async function arrive(recorded) {
    if (player.moved || document.body.dataset.story) return; // the viewer was faster
    const link = readLink(location.hash);
    if (link) return visit(link);
    if (!recorded) return stage.first.again();
    if (await player.seek(player.oldest)) player.play();
  }

  async function visit(link) {
    const problem = misfit(link, { ...stage.shown, oldest: player.oldest, head: player.head });
    if (problem) return stage.banner.notice(problem);
    await player.seek(link.at);
    if (link.key || link.rv) follow.set(link.key, link.rv);
  }

  async function copyLink() {
    const href = linkTo({ ...stage.shown, cursor: player.cursor, follow });
    if (!stage.source && !stage.shown.recording) {
      return stage.banner.notice(
        "The browser cannot make a link to this recording: the page is neither local nor encrypted."
      );
    }
    window.history.replaceState(null, "", href);
    stage.tell((await copied(location.href)) ? "link copied" : "the link is in the address bar");
  }

  // show puts a recording on the stage, which comes as a File, from its beginning, or at the moment of a link to it. In
  // a chapter it stands still: the chapter moves it.
  async function show(name, coming, explained = false) {
    try {
      const { hash, header, unknown } = await lay(await coming);
      if (explained) explain(header, unknown);
      else if (stage.figure.ready) return stage.figure.ready();
      const link = readLink(location.hash);
      if (link?.recording && link.recording === hash) return visit(link);
      if (await player.seek(player.oldest)) player.play();
    } catch (problem) {
      stage.banner.notice(`${name}: ${problem.message}`);
    }
  }

  // openRecording shows a recording that was dropped here, openTake one of ours.
  const openRecording = (file) => show(file.name, file, true);
  const openTake = (name) => show(name, take(name));

  // layTake puts a recording that the program brings along on the stage, if it is still wanted when it has come, and
  // returns whether it was. It stands still.
  const layTake = async (name, wanted) => Boolean(await lay(await take(name), wanted));

  // home puts back on the stage what was there before layTake: the running program, or the recording that the page is
  // about.
  async function home() {
    if (document.body.dataset.take) return openTake(document.body.dataset.take);
    put(document.body, "data-laid", null);
    const back = new Promise((done) => (returned = done));
    stage.reopen();
    await back;
  }

  // keep gives the viewer what the program remembers, as a file.
  async function keep() {
    const file = await fileAt("/viz/recording", "listwatch.lw.gz");
    const href = URL.createObjectURL(file);
    make("a", { href, download: file.name }).click();
    URL.revokeObjectURL(href);
  }

  // lay puts a recording, which it returns, where the records of the program were, and lets go of that,
  // if there is one.
  async function lay(file, wanted = () => true) {
    const tape = new Tape(fold, null);
    const { hash, header, records, state, first } = await readRecording(file, fold, tape);
    if (!wanted()) return null;
    stage.leave(hash);
    follow.clear();
    put(document.body, "data-laid", "true"); // what acts on the program is out of reach meanwhile
    player.oldest = first;
    timeline.clear();
    timeline.add(records);
    player.reset(tape, state, true);
    stage.switched(header.switches);
    return { hash, header, unknown: records.find((r) => r.point === "Unknown") };
  }

  function explain(header, unknown) {
    if (unknown) {
      return stage.banner.notice(
        `Another version of the program wrote this recording: its moments of ${unknown.text}, and of what else this ` +
          "one does not know, are shown by name only."
      );
    }
    const why = header.reason ? `Why: ${header.reason} ` : "";
    stage.banner.notice(
      `A recording of ${new Date(header.started).toLocaleString()}. ${why}` +
        (program ? "Reload the page to leave it." : "The program is not here."), true
    );
  }

  const offer = (on) => ($("#drop").hidden = !on);
  when(document, "dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    offer(true);
  });
  when(document, "dragleave", ({ relatedTarget }) => offer(relatedTarget !== null));
  when(document, "drop", (event) => {
    offer(false);
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    openRecording(file);
  });
  when(window, "hashchange", () => {
    const link = readLink(location.hash);
    if (link && !stage.figure.ready) visit(link);
  });
  when("#keep", "click", () => keep().catch(stage.banner.trouble));
  return {
    arrive, home, layTake, openRecording, openTake, begin: () => returned?.(),
    keys: [[["s"], "copy a link to this moment", copyLink]],
  };
}
