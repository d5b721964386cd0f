// The history: what happens to the ring that its picture alone does not say: why it was given another size, which
// client was told 410, and whose watch was closed because its client did not keep up.

import { put, svg } from "../lib/dom.js";

const told = 8e9; // ns of the log's time that a note stays
const line = 52; // characters in a line of a note on the tall stage
const looked = 600; // records that are looked through when another moment is on stage

export function newHistory(stage) {
  const { scene, player } = stage;
  const note = document.querySelector("#ring-note");
  const tray = document.querySelector("#ring-tray");
  let notes = {}; // by kind: {t, words} of the newest one

  function look(list) {
    for (const r of list) {
      if (!stage.here(r)) continue;
      const refused = (r.point === "RequestAnswered" && r.args?.[0] === 410)
        || (r.point === "FrameWritten" && r.type === "ERROR");
      if (r.point === "RingResize") notes.size = { t: r.t, words: `now ${r.args?.[2]} places: ${r.text ?? ""}` };
      // What the server writes into its own log.
      const forced = `Forcing ${stage.resource} watcher close due to unresponsiveness: ${r.subject}`;
      if (r.point === "WatcherForced") notes.closed = { t: r.t, words: forced + lengths(r.subject) };
      if (refused) notes.gone = { t: r.t, words: `410 Expired: ${r.subject || "the client"} has to list again` };
    }
  }

  // lengths is how full the two channels of a watcher are, as long as it is known.
  function lengths(id) {
    const { input, result } = stage.state.resources[stage.resource]?.subjects[id]?.queues ?? {};
    return input && result ? `. len(c.input) = ${input.len}, len(c.result) = ${result.len}` : "";
  }

  function shown() {
    const { t } = stage.state;
    const current = (each) => Boolean(each) && t >= each.t && t - each.t < told;
    write(Object.values(notes).filter(current).sort((a, b) => b.t - a.t)[0]?.words ?? "");
    put(tray, "visibility", current(notes.gone) ? "visible" : "hidden");
  }

  // write writes the note, in lines where the stage is not wide enough for it.
  function write(words) {
    const text = words && scene.tall ? words.match(new RegExp(`.{1,${line}}(?= |$)`, "g")) : [words];
    if (note.textContent === text.join("") && note.childElementCount === text.length) return;
    note.replaceChildren(...text.map((_, i) => svg("tspan", { x: note.getAttribute("x"), dy: i ? 18 : 0 })));
    text.forEach((each, i) => (note.children[i].textContent = each));
  }

  return {
    shown, applied: look, resource: () => (notes = {}),
    jumped() {
      notes = {};
      look(player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1));
    },
  };
}
