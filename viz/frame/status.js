// The status: the share of the traffic that is drawn, and the cursor's place in the log.

import { $, part, put, say } from "../dom/dom.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {() => [word: string, title: string]} connection
 * @property {() => boolean} program whether a program is on stage
 * @property {() => boolean} held whether the world is held
 */

/** @type {{ [state: string]: string }} */
const words = { connecting: "connecting", reconnecting: "reconnecting", silent: "process stopped" };

const least = 300; // ms; a shorter lag is live

export class Status {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.keys = { u: turnLog };
  }

  draw() {
    const { player, held } = this.stage;
    const mode = player.recording || player.mode === "playing" ? "replay" : player.mode === "live" && held()
      ? "held" : player.mode;
    put(document.body, "data-mode", mode);
    const frozen = player.mode === "frozen";
    const button = $("#freeze");
    put(button, "aria-label", frozen ? "Play" : "Freeze");
    put(button, "title", frozen ? "Play (Space)" : "Freeze the picture; the program runs on (Space)");
    put(button, "aria-pressed", frozen);
    put(part(button, "path"), "d", frozen ? "M4 2L14 8L4 14Z" : "M4 3H7V13H4ZM10 3H13V13H10Z");
    put($("#live"), "data-live", player.mode === "live");
    say($("#cursor"), `record ${player.mode === "live" ? document.body.dataset.seq : player.target()}`);
    say($("#behind"), player.recording ? ` of ${player.head}` : player.behind() === 0 ? " · newest" : "");
    say($("#level"), player.beat.stream ? "as a stream" : "each change travels");
    this.showMode(mode, frozen);
  }

  /** @param {string} mode @param {boolean} frozen */
  showMode(mode, frozen) {
    const { player, connection, program } = this.stage;
    const [state, title] = connection();
    const broken = state !== "live" && !(player.recording && !program());
    put($("#mode"), "data-state", broken ? state : mode);
    put($("#mode"), "title", broken ? title : "");
    const lost = player.state.lost > 0 ? `, ${player.state.lost} records lost` : "";
    const behind = mode === "live" && player.lag() > least;
    const calm = behind ? "behind" : mode === "replay" && frozen ? "paused" : mode;
    say($("#mode-text"), broken ? words[state] : calm + lost);
  }
}

function turnLog() {
  const open = document.body.dataset.log !== "open";
  put(document.body, "data-log", open ? "open" : "closed");
  put($("#open-records"), "aria-expanded", String(open));
}
