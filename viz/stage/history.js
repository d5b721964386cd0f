// The history: that a client was told 410 a moment ago, which the ring's picture alone does not say.

import { $, put } from "../lib/dom.js";

const told = 8e9; // ns of the log's time that the box below the ring stays
const looked = 600; // records that are looked through when another moment is on stage

export function newHistory(stage) {
  const { player } = stage;
  const tray = $("#ring-tray");
  let refused = null; // the record of that

  function look(list) {
    const last = list.findLast((r) => stage.here(r) && (
      (r.point === "RequestAnswered" && r.args?.[0] === 410) || (r.point === "FrameWritten" && r.type === "ERROR")
    ));
    if (last) refused = last;
  }

  function shown() {
    const since = stage.state.t - (refused?.t ?? Infinity);
    const now = since >= 0 && since < told && refused.seq > (stage.scene.told?.from ?? 0); // a story: in this beat
    put(tray, "visibility", now ? "visible" : "hidden");
  }

  return {
    shown, applied: look, resource: () => (refused = null),
    jumped() {
      refused = null;
      look(player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1));
    },
  };
}
