// The history: that a client was told 410 a moment ago, which the ring's picture alone does not say.

import { $, put } from "../lib/dom.js";

const told = 8e9; // ns of the log's time that the box below the ring stays
const points = ["RequestAnswered", "FrameWritten"]; // they are flags when they say 410

export function newHistory({ scene, player, timeline, here }) {
  const tray = $("#ring-tray");

  function shown(res, state) {
    const last = timeline.flags.findLast((f) => f.seq <= player.cursor && points.includes(f.point) && here(f));
    const { told: story } = scene; // which is about its own clients, and in this beat
    const tells = !story?.story || (last?.seq > story.from && story.members.some(({ word }) => word === "410"));
    const now = last && state.t - last.t < told && tells;
    put(tray, "visibility", now ? "visible" : "hidden");
  }

  return { shown };
}
