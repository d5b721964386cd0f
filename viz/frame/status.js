// The status: the mode or a lost connection, how changes are drawn, and the cursor's place in the log.

import { $, put, say } from "../dom/dom.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {() => string} connection
 * @property {() => boolean} program whether a program is on stage
 * @property {() => boolean} held whether the world is held
 */

export class Status {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.keys = { u: turnLog };
  }

  draw() {
    const { player, connection, program, held } = this.stage;
    const mode = player.recording || player.mode === "playing" ? "replay" : player.mode === "live" && held()
      ? "held" : player.mode;
    put(document.body, "data-mode", mode);
    const frozen = player.mode === "frozen";
    put($("#freeze"), "aria-pressed", frozen);
    put($("#live"), "data-live", player.mode === "live");
    say($("#cursor"), `record ${player.mode === "live" ? document.body.dataset.seq : player.target()}`);
    say($("#behind"), player.recording ? ` of ${player.head}` : player.behind() === 0 ? " · newest" : "");
    say($("#level"), player.beat.stream ? "as a stream" : "each change travels");
    const state = connection();
    const broken = state !== "live" && !(player.recording && !program());
    put($("#mode"), "data-state", broken ? state : mode);
    const lost = player.state.lost > 0 ? `, ${player.state.lost} records lost` : "";
    const behind = mode === "live" && player.lag() > 300; // ms; a shorter lag counts as live
    const calm = behind ? "behind" : mode === "replay" && frozen ? "paused" : mode;
    say($("#mode-text"), broken ? state : calm + lost);
  }
}

function turnLog() {
  const open = document.body.dataset.log !== "open";
  put(document.body, "data-log", open ? "open" : "closed");
  put($("#open-records"), "aria-expanded", String(open));
}
