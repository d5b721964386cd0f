// OwnBar names the viewer's own change. Once the change has arrived, OwnBar shows its time, and a bar for each station.

import { $, make, mark, part, put, say, when } from "../dom/dom.js";
import { counted, cut, milliseconds } from "../lib/texts.js";
import { wayOf } from "./own.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Follow} follow
 * @property {page.Scene} scene
 * @property {page.Planner} planner
 * @property {page.Infos} infos
 * @property {(name: string) => void} setResource
 * @property {() => unknown} begins called when a change of the viewer's begins
 */

export class OwnBar {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.bar = $("#own");
    this.way = part(this.bar, "ol");
    this.turn = part(this.bar, "button", HTMLButtonElement);
    this.order = [...new Set([...stage.infos.values()].map(({ station }) => station))];
    /** @type {import("./own.js").Change | null} */
    this.told = null; // the change with the bars
    this.detail = ""; // the level of detail for which the bars were made
    this.story = ""; // the story on stage in the last frame
    /** @type {import("./own.js").Change | null} */
    this.seen = null;
    when(this.turn, "click", () => this.show());
    const light = (/** @type {Event} */ { target, type }) => {
      const { at } = /** @type {HTMLElement} */ (target).closest("li")?.dataset ?? {};
      for (const [name, el] of stage.scene.stations) mark(el, "looked", name === at && !/out$/.test(type));
    };
    for (const type of /** @type {const} */ (["pointerover", "pointerout", "focusin", "focusout"])) {
      when(this.way, type, light);
    }
  }

  async show() {
    const { player, setResource } = this.stage;
    const { elsewhere } = player.own;
    if (!elsewhere) return;
    setResource(elsewhere.resource);
    await player.seek(elsewhere.seq - 1, "live");
    player.awaitRest();
  }

  draw() {
    const { player, scene, follow, planner, begins } = this.stage;
    const { own, own: { star, elsewhere } } = player;
    const { detail = "", story = "" } = document.body.dataset;
    if (story && !this.story && follow.key === this.seen?.key) follow.clear(); // no story follows the viewer's change
    this.story = story;
    put(document.body, "data-own", own.first ? "travels" : star ? "arrived" : null);
    const newest = elsewhere && (!star || elsewhere.seq > star.seq) ? elsewhere : star;
    this.bar.hidden = !newest;
    if (!newest) return;
    this.turn.hidden = newest !== elsewhere;
    if (newest !== elsewhere && this.seen !== newest) {
      if (!follow.has() || follow.key === this.seen?.key) follow.set(newest.key);
      this.seen = newest;
      begins();
    }
    const theirs = own.first ? "" : own.theirs.get(planner.moves.at(-1)?.change ?? "") ?? "";
    say(part(this.bar, ".words"), this.words(newest));
    say(part(this.bar, ".next"), theirs && `Now theirs: ${theirs.replace(/^listwatch-/, "")}`);
    if (newest === elsewhere) say(this.turn, `Show ${newest.resource}`);
    const told = newest.state === "arrived" ? newest : null;
    if (this.told === told && this.detail === detail) return;
    Object.assign(this, { told, detail });
    this.way.replaceChildren(...(told ? wayOf(told, this.order).map((at) => bar(at, scene.stations.get(at[0]))) : []));
  }

  /** @param {import("./own.js").Change} one */
  words(one) {
    const { own } = this.stage.player;
    const name = `${cut(one.key, 40)}, version ${one.rv}`;
    if (one === own.elsewhere) return `${name}: of ${one.resource}, which are not on stage.`;
    const more = own.queue.length > 1 ? `; ${own.queue.length - 1} more` : "";
    const sum = own.summed.size > 0 ? `; ${own.summed.size} more of yours landed untold` : "";
    if (one.state !== "arrived") return `${name}, is on its way${more}${sum}`;
    const times = Number(((one.went - one.began) / one.ms).toPrecision(1));
    const slower = one.began && one.ms > 0 ? `; shown ${times} times slower` : "";
    return `${milliseconds(one.ms * 1e6)}, ${counted(one.came.size - 1, "hand-over")}${slower}${sum}`;
  }
}

// bar returns a station's bar, with the station's name if the stage shows the name.
/** @param {readonly [station: string, ms: number]} at @param {Element | undefined} el */
function bar([station, ms], el) {
  const words = `${station}: ${milliseconds(ms * 1e6)}`;
  const title = el?.querySelector(".title");
  const named = (title?.checkVisibility({ visibilityProperty: true }) && title.textContent) || "";
  const li = make("li", { data: { at: station }, tabIndex: 0, title: words, ariaLabel: words }, named);
  li.style.flexGrow = String(ms);
  return li;
}
