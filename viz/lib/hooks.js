// @ts-check
// A part of the page is what one of the functions newHold, newZoom, … returns. page.js makes all parts, gives each the
// stage, and calls the hooks below on all of them. A part defines the hooks that it needs; here are their meanings, and
// the defaults, which do nothing. Times called now are in ms, as requestAnimationFrame has them.

/**
 * A Row of the list of keys: KeyboardEvent.key values (keys.js), what they do in words, and the function that does it.
 * @typedef {[keys: string[], words: string, act: (event: KeyboardEvent) => void]} Row
 */

const nothing = {
  /** The page has taken its list: the state and the name of its log. @param {{state: object, log: string}} answer */
  begin(answer) {},
  /** What is on stage was made with these switches, as { fifo: "real" }. @param {Record<string, string>} [now] */
  switches(now) {},
  /** Records came from the feed, whatever moment is on stage. @param {object[]} list */
  arrived(list) {},
  /** Records were folded; of a sum, list are those that matter. @param {object[]} list @param {number} now */
  applied(list, now) {},
  /** Another moment is on stage. @param {number} now */
  jumped(now) {},
  /** The viewer froze the stage, stepped, or scrubbed: r is at the cursor. @param {object} r @param {number} now */
  landed(r, now) {},
  /** A replay left out a time without records. @param {number} ns */
  skipped(ns) {},
  /** The scene was drawn; without res nothing is known of the resource. @param {object} [res] @param {object} [s] */
  shown(res, s) {},
  /** Once a frame. @param {number} now */
  draw(now) {},
  /** Another resource is on stage. @param {string} name */
  resource(name) {},
  /** The running world was held or resumed, or its clock moved. @param {object} status */
  world(status) {},
  /** The connection to the program changed. */
  connected() {},
  /** Another object or revision is followed, or none. */
  followed() {},
  /** The colours changed. */
  restyle() {},
  /** Escape was pressed: close what is open, and return true if something was. @returns {boolean} */
  escape() { return false; },
  /** @type {Row[]} */
  keys: [],
  /** What a guide does with keys while it speaks; only listed. @type {[keys: string, words: string][]} */
  guided: [],
};

/** @typedef {typeof nothing} Hooks */

/**
 * partOf completes a part by the hooks that it does not define.
 * @template {object} T
 * @param {T} own
 * @returns {T & Hooks}
 */
export const partOf = (own) => Object.setPrototypeOf(own, nothing);
