// The banner: messages about the page itself. A message about the connection comes before all others.

import { $, mark, part, say, when } from "../dom/dom.js";
import { refusal } from "../lib/api.js";

/** @type {{ [word: string]: string }} */
const connections = {
  silent: "The program says nothing: a debugger has stopped it, or the computer has too much to do. The stage shows " +
    "the moment before. It continues by itself, without a gap.",
  reconnecting: "The connection to the program is gone. The stage shows the last moment that arrived. It continues " +
    "when the program answers again.",
};
const patience = 1500; // ms; a shorter loss of the connection is not shown

/** @param {{ connection: () => string, says: (r: probe.Record) => string }} stage */
export function newBanner(stage) {
  const banner = $("#banner");
  let message = "";
  let quiet = 0;
  let lost = 0; // the time at which the connection was lost
  let end = ""; // the reason for the program's end

  // notice shows a problem until the viewer closes it; a calm message disappears by itself.
  /** @param {string} text @param {boolean} [calm] */
  function notice(text, calm = false) {
    message = text;
    mark(banner, "calm", calm);
    clearTimeout(quiet);
    if (calm) quiet = setTimeout(() => notice(""), 8000);
    draw(performance.now());
  }

  /** @param {unknown} problem */
  const trouble = (problem) => notice(refusal(problem).message);

  // arrived shows at once the records that explain why nothing moves.
  /** @param {probe.Record[]} list */
  function arrived(list) {
    const stopped = list.findLast((r) => r.point === "ProgramStopped");
    if (stopped) notice(stage.says(stopped), true);
    const failed = list.find((r) => r.point === "EtcdFailed");
    if (failed) end = stage.says(failed);
  }

  const begin = () => (end = ""); // a new program, or a new connection

  /** @param {number} now */
  function draw(now) {
    const word = stage.connection();
    if (word !== "reconnecting") lost = 0;
    else if (lost === 0) lost = now;
    const gone = connections[word] && (word === "silent" || now - lost > patience);
    const text = end || (gone ? connections[word] : message);
    if (banner.hidden !== (text === "")) banner.hidden = text === "";
    say(part(banner, "p"), text);
  }

  when(part(banner, "button"), "click", () => notice(""));
  return { notice, trouble, begin, arrived, draw };
}
