// The history: that a client was told 410 a moment ago, which the ring's picture alone does not say.

import { $, put } from "../lib/dom.js";

const told = 8e9; // ns of the log's time that the box below the ring stays
const looked = 600; // records that are looked through when another moment is on stage

export function newHistory(stage) {
  const { player } = stage;
  const tray = $("#ring-tray");
  let refused = Infinity; // when that was, in the log's time

  function look(list) {
    const last = list.findLast((r) => stage.here(r) && (
      (r.point === "RequestAnswered" && r.args?.[0] === 410) || (r.point === "FrameWritten" && r.type === "ERROR")
    ));
    if (last) refused = last.t;
  }

  function shown() {
    const { t } = stage.state;
    put(tray, "visibility", t >= refused && t - refused < told ? "visible" : "hidden");
  }

  return {
    shown, applied: look, resource: () => (refused = Infinity),
    jumped() {
      refused = Infinity;
      look(player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1));
    },
  };
}
