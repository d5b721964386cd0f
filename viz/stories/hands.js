// Hands are the handles on the stage (stage.gripGlyph) with which a viewer turns knobs. A hand is hidden if the list of
// knobs does not offer its knob. A click, the release of a slider, Enter, or Space turns the knob.

import { mark, part, parts, put, say, when } from "../dom/dom.js";

/**
 * @typedef {HTMLButtonElement | HTMLSelectElement} Control
 * @typedef {HTMLButtonElement | HTMLOptionElement} Choice a button, or a value of a list
 * @typedef {object} Stage
 * @property {page.Scene} scene
 * @property {(knob?: string, target?: string) => Control | undefined} control a control of the list, if it is offered
 * @property {(control: Control, choice: Choice) => void} turn
 */

const notch = 12; // units of a drag from one value to the next

const slider = ".grip[role=slider]";

export class Hands {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {HTMLElement | null} */
    this.moved = null; // the hand that the viewer moves
    this.by = 0; // the number of values by which it is moved
    this.from = NaN; // the reach at which its drag began
    this.bind();
  }

  // meant returns a hand's control, and what the hand would choose now: the button itself, or an option of the list.
  /** @param {HTMLElement} el @returns {[Control?, Choice?]} */
  meant(el) {
    const { dataset: { hand, target, by } } = el;
    const lane = el.closest(".lane")?.lane;
    const control = this.stage.control(hand, lane ? lane.subject.texts.WireOpened?.agent ?? lane.id : target);
    if (!(control instanceof HTMLSelectElement)) return [control, control];
    const at = Number(control.dataset.at) + (el === this.moved ? this.by : Number(by));
    return [control, control.options[Math.max(0, Math.min(control.length - 1, at))]];
  }

  shown() {
    const { scene: { root, story, plain } } = this.stage;
    if (!story && !plain) for (const el of parts(root, ":not(.over) > .grip")) this.show(el);
  }

  /** @param {HTMLElement} el */
  show(el) {
    const [control, choice] = this.meant(el);
    mark(el, "none", !control);
    mark(el, "moved", el === this.moved);
    if (!control || !choice) return;
    const [{ who }, { does = "" }] = [control.dataset, choice.dataset];
    say(part(el, ".would"), el.closest(".lane") ? does : `${who} ${does}`);
    put(el, "aria-label", `${who} ${does}`);
    put(el, "aria-pressed", control.getAttribute("aria-pressed"));
    if (choice instanceof HTMLOptionElement) put(el, "aria-valuenow", choice.index);
    el.style.setProperty("--by", String(el === this.moved ? this.by : 0));
  }

  /** @param {HTMLElement | null} el @param {number} [by] */
  move(el, by = 0) {
    const before = this.moved;
    Object.assign(this, { moved: el, by });
    for (const each of [before, el]) if (each) this.show(each);
  }

  /** @param {HTMLElement} el */
  act(el) {
    const [control, choice] = this.meant(el);
    if (control && choice && (el !== this.moved || this.by !== 0)) this.stage.turn(control, choice);
    this.move(null);
  }

  // reach returns the distance of the pointer from the middle of a hand's rim, as a number of values.
  /** @param {HTMLElement} el @param {PointerEvent} event */
  reach(el, { clientX, clientY }) {
    const { x, y, width, height } = part(el, ".rim").getBoundingClientRect();
    const { root, view } = this.stage.scene;
    const away = Math.hypot(clientX - x - width / 2, clientY - y - height / 2) * view.w;
    return away / root.getBoundingClientRect().width / notch / Number(el.dataset.by);
  }

  bind() {
    // on calls act for each event of a type on or inside an element that matches a selector (which).
    /**
     * @template {keyof HTMLElementEventMap} K
     * @param {K} type @param {string} which @param {(el: HTMLElement, event: HTMLElementEventMap[K]) => void} act
     */
    const on = (type, which, act) => when(this.stage.scene.root, type, (event) => {
      const el = /** @type {HTMLElement | null} */ (event.target.closest(which));
      if (el) act(el, event);
    }, { capture: true, passive: false });
    on("touchstart", slider, (_, event) => event.preventDefault()); // the page does not scroll instead
    on("pointerdown", slider, (el, event) => {
      if (event.button > 0) return;
      el.setPointerCapture(event.pointerId);
      this.from = this.reach(el, event);
    });
    on("pointermove", slider, (el, event) => {
      const by = Math.round(this.from - this.reach(el, event)); // NaN without a drag
      if (by || (by === 0 && el === this.moved)) this.move(el, by);
    });
    on("pointerup", slider, (el) => Number.isNaN(this.from) || this.act(el));
    on("lostpointercapture", slider, () => this.move(null, (this.from = NaN)));
    on("focusout", ".grip", () => this.move(null));
    on("click", ".grip", (el, event) => {
      event.stopPropagation();
      if (!el.matches(slider)) this.act(el);
    });
    on("keydown", ".grip", (el, event) => {
      const step = Number(/Right|Up/.test(event.key)) - Number(/Left|Down/.test(event.key));
      if (step && el.matches(slider)) this.move(el, (el === this.moved ? this.by : 0) + step);
      else if (event.key === "Enter" || event.key === " ") this.act(el);
      else return;
      event.preventDefault();
    });
  }
}
