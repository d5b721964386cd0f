// The history: what happens to the ring that its picture alone does not say. Why it was given another size, who was told
// 410, whose watch was closed because it did not keep up, and whether the ring is drawn rolled up.

import { put, svg } from "../lib/dom.js";

const told = 8e9; // ns of the log's time that a note stays
const line = 52; // characters in a line of a note on the tall stage
const looked = 600; // records that are looked through when another moment is on stage

export function newHistory(stage) {
  const { scene, player } = stage;
  const note = document.querySelector("#ring-note");
  const tray = document.querySelector("#ring-tray");
  const roll = document.querySelector("#ring-roll");
  let size = null; // {t, words} of the newest resize
  let gone = null; // {t, words} of the newest 410
  let closed = null; // {t, words} of the watcher that was closed last: what the server writes into its own log

  function look(list) {
    for (const r of list) {
      if (!stage.here(r)) continue;
      if (r.point === "RingResize") size = { t: r.t, words: `now ${r.args?.[2]} places: ${r.text ?? ""}` };
      const refused = (r.point === "RequestAnswered" && r.args?.[0] === 410) || (r.point === "FrameWritten" && r.type === "ERROR");
      if (r.point === "WatcherForced") closed = { t: r.t, words: `Forcing ${stage.resource} watcher close due to unresponsiveness: ${r.subject}${lengths(r.subject)}` };
      if (refused) gone = { t: r.t, words: `410 Expired: ${r.subject || "the client"} has to list again` };
    }
  }

  // lengths is how full the two channels of a watcher are, as long as it is known.
  function lengths(id) {
    const { input, result } = stage.state.resources[stage.resource]?.subjects[id]?.queues ?? {};
    return input && result ? `. len(c.input) = ${input.len}, len(c.result) = ${result.len}` : "";
  }

  const current = (each) => (each && stage.state.t >= each.t && stage.state.t - each.t < told ? each : null);

  function shown() {
    const notes = [size, gone, closed].map(current).filter(Boolean);
    write(notes.sort((a, b) => b.t - a.t)[0]?.words ?? "");
    put(tray, "visibility", current(gone) ? "visible" : "hidden");
  }

  // write writes the note, in lines where the stage is not wide enough for it.
  function write(words) {
    const text = words && scene.tall ? words.match(new RegExp(`.{1,${line}}(?= |$)`, "g")) : [words];
    if (note.textContent === text.join("") && note.childElementCount === text.length) return;
    note.replaceChildren(...text.map((each, i) => svg("tspan", { x: note.getAttribute("x"), dy: i ? 18 : 0 })));
    text.forEach((each, i) => (note.children[i].textContent = each));
  }

  function jumped() {
    size = gone = closed = null;
    look(player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1));
  }

  function unroll(unrolled) {
    scene.unrolled = unrolled;
    localStorage.setItem("ring", scene.unrolled ? "tape" : "ring");
    put(roll, "aria-pressed", String(scene.unrolled));
    stage.motion.clear();
    stage.touch();
  }
  const turn = () => unroll(!scene.unrolled);

  put(roll, "aria-pressed", String(scene.unrolled));
  roll.addEventListener("click", (event) => {
    event.stopPropagation();
    turn();
  });
  roll.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    turn();
  });
  return { unroll, applied: look, jumped, shown, resource: () => (size = gone = closed = null), keys: [[["u"], "unroll the ring into a tape, or roll it up", turn]] };
}
