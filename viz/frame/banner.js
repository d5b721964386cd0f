// The banner shows one message about the page itself: the program's end, else a lost connection, else the last notice.

import { $, mark, part, say, when } from "../dom/dom.js";
import { refusal } from "../lib/api.js";

const patience = 1500; // ms; a shorter loss of the connection shows no message

/** @param {{ connection: () => string, says: (r: probe.Record) => string }} stage */
export function newBanner(stage) {
  const banner = $("#banner");
  let message = "";
  let quiet = 0;
  let lost = 0; // the time at which the connection was lost
  let end = ""; // the reason for the program's end

  // notice shows a message until the viewer closes it, or the next one comes. A calm one disappears after 8 seconds.
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

  // arrived shows the records that explain why nothing moves or moved: etcd has failed, or the program was stopped.
  /** @param {probe.Record[]} list */
  function arrived(list) {
    const stopped = list.findLast((r) => r.point === "ProgramStopped");
    if (stopped) notice(stage.says(stopped), true);
    const failed = list.find((r) => r.point === "EtcdFailed");
    if (failed) end = stage.says(failed);
  }

  const begin = () => (end = ""); // called for a new program or connection

  /** @param {number} now */
  function draw(now) {
    const word = stage.connection();
    if (word !== "reconnecting") lost = 0;
    else if (lost === 0) lost = now;
    const gone = word === "silent" || (lost > 0 && now - lost > patience);
    const text = end || (gone ? banner.dataset[word] ?? "" : message);
    banner.hidden = text === "";
    say(part(banner, "p"), text);
  }

  when(part(banner, "button"), "click", () => notice(""));
  return { notice, trouble, begin, arrived, draw };
}
