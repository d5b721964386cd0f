// The banner: what has happened to the page itself. The connection's words come before anybody else's.

import { $, mark, part, say, when } from "../dom/dom.js";
import { refusal } from "../lib/api.js";

/** @type {{ [word: string]: string }} */
const connections = {
  silent: "The program says nothing: a debugger has stopped it, or the computer has too much to do. The stage shows " +
    "the moment before. It continues by itself, without a gap.",
  reconnecting: "The connection to the program is gone. The stage shows the last moment that arrived. It continues " +
    "when the program answers again.",
};
const patience = 1500; // ms: a connection that comes back at once is not worth a word

/** @param {{ connection: () => string, says: (r: probe.Record) => string }} stage */
export function newBanner(stage) {
  const banner = $("#banner");
  let message = "";
  let quiet = 0;
  let lost = 0; // when the connection went
  let end = ""; // why the program has ended

  // notice says what is wrong until the viewer closes it; what is good to know goes away by itself.
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

  // arrived says at once what explains that nothing moves, or that nothing will.
  /** @param {probe.Record[]} list */
  function arrived(list) {
    for (const r of list) {
      if (r.point === "ProgramStopped") notice(stage.says(r), true);
      if (r.point === "EtcdFailed") end = stage.says(r);
    }
  }

  const begin = () => (end = ""); // another program, or the same one again

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
