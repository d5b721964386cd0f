// The history: that a client was told 410 a moment ago, or that the ring has another size, which the ring's picture
// alone does not say.

import { $, put } from "../lib/dom.js";

const told = 8e9; // ns of the log's time that it is said
const gone = ["RequestAnswered", "FrameWritten"]; // they are flags when they say 410

export function newHistory({ scene, player, timeline, here }) {
  const tray = $("#ring-tray");

  function shown(res, state) {
    const lately = (points) => {
      const last = timeline.flags.findLast((f) => f.seq <= player.cursor && points.includes(f.point) && here(f));
      return last && state.t - last.t < told ? last : null;
    };
    const last = lately(gone);
    const { told: story } = scene; // which is about its own clients, and in this beat
    const tells = !story?.story || (last?.seq > story.from && story.members.some(({ word }) => word === "410"));
    put(tray, "visibility", last && tells ? "visible" : "hidden");
    scene.text("ring.resized", lately(["RingResize"]) ? "new size:" : "");
  }

  return { shown };
}
