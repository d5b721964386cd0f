// The mini-stage of a chapter. In a wide window, it is beside the text, and the reader's place in the text, or a click,
// selects the moment that it shows. In a narrow window, it is above the text, and only clicks select.

import { $, make, part, parts, put, say, when } from "../dom/dom.js";

class MiniStage {
  constructor() {
    const mini = $("#mini");
    this.mini = mini;
    this.steps = parts(mini, ".steps li");
    const told = parts(document, "article .l[data-point]").map((line) => ({ line,
      at: this.steps.findIndex((li) => !li.dataset.lab && li.dataset.point === line.dataset.point) }));
    this.reading = told.filter(({ at }) => at >= 0);
    this.text = $("article");
    this.repair = document.querySelector("#the-repair");
    this.tried = this.steps.filter((li) => li.dataset.lab).length; // the number of steps of the first try
    this.answer = this.text.querySelectorAll("details.answer")[Number(mini.dataset.fold)]; // shown by the first try
    this.wide = matchMedia("screen and (min-width: 64rem)");
    /** @type {HTMLIFrameElement | null} */
    this.frame = null; // set once the mini-stage is open
    this.step = -1;
    this.held = 0; // until this time, scrolling does not override a button
    /** @type {Element | null | undefined} */
    this.named = undefined; // the words under the pointer, or with the focus, that name a part of the stage
    this.bind();
    part(mini, ".hands").hidden = false;
    // in a narrow window, the key step represents all the steps
    this.choose(this.wide.matches ? 0 : this.steps.findIndex((li) => li.classList.contains("key")));
    this.scrolled();
    if (this.wide.matches) this.open();
  }

  bind() {
    const { mini } = this;
    when(window, "message", ({ source, data }) => {
      if (this.frame && source === this.frame.contentWindow) mini.dataset.shown = data.shows;
    });
    window.addEventListener("scroll", () => this.scrolled(), { passive: true }); // fires at most once before each frame
    this.answer.addEventListener("toggle", () => this.scrolled());
    for (const type of /** @type {const} */ (["pointerover", "focusin", "focusout"])) {
      when(window, type, () => this.point());
    }
    when(mini, "click", ({ target }) => {
      const at = this.steps.findIndex((each) => each.contains(target));
      const by = target.closest(".back") ? -1 : target.closest(".on") ? 1 : at < 0 ? 0 : at - this.step;
      if (by || at >= 0) this.turn(by);
    });
  }

  open() {
    const place = part(this.mini, ".frame");
    this.frame = make("iframe", { title: `Mini-stage: ${part(this.mini, "h2").textContent}` });
    place.classList.add("staged");
    place.append(this.frame);
    this.tell();
  }

  // tell writes the moment and the named part into the frame's address, for a page from disk may not call its scripts.
  tell() {
    if (!this.frame) return;
    const step = this.steps[this.step];
    const { seq: at = "", frame: address } = step.dataset;
    const { part: name = "", kind = "" } = this.named?.dataset ?? {};
    const station = part(step, ".station").textContent ?? "";
    const hash = new URLSearchParams({ at, station, part: name, kind });
    this.frame.contentWindow?.location.replace(`${address}#${hash}`);
  }

  // point lights the part of the stage that is named by the words under the pointer, or else by those with the focus.
  point() {
    const words = ["hover", "focus-within"].map((is) => this.text.querySelector(`[data-part]:${is}`)).find(Boolean);
    if (words === this.named) return;
    this.named = words;
    this.tell();
  }

  /** @param {number} n @param {Element} [from] */
  choose(n, from) {
    const { mini, steps } = this;
    const next = Math.min(steps.length - 1, Math.max(0, n));
    const line = from ?? this.lineOf(next);
    for (const lit of parts(document, ".l.lit")) lit.classList.toggle("lit", lit === line);
    line?.classList.add("lit");
    if (next === this.step) return;
    this.step = next;
    steps.forEach((li, i) => (li.ariaCurrent = i === next ? "step" : null));
    const [here, list] = [steps[next], steps[next].parentElement];
    list?.scrollTo({ top: here.offsetTop - list.offsetTop - (list.clientHeight - here.offsetHeight) / 2 });
    part(mini, ".where").textContent = `step ${next + 1} of ${steps.length}`;
    part(mini, ".whole", HTMLAnchorElement).href = steps[next].dataset.whole ?? "";
    mini.dataset.step = String(next + 1);
    const act = steps[next].closest("[data-act]")?.dataset.act;
    for (const each of parts(mini, "[data-act]")) each.toggleAttribute("hidden", each.dataset.act !== act);
    this.tell();
  }

  /** @param {number} n */
  lineOf(n) { return this.reading.find(({ at }) => at === n)?.line; }

  // scrolled chooses step 0 until the answer is open or above the window. The share of text read then selects a step of
  // the first try, or any step if the text's lines have fewer than two; otherwise the last line read with a step does.
  scrolled() {
    if (performance.now() < this.held || !this.wide.matches) return;
    const { tried, reading, steps, mini, answer } = this;
    const middle = innerHeight * 0.55;
    const over = this.repair?.getBoundingClientRect().top ?? 0;
    const { top, bottom } = this.text.getBoundingClientRect();
    /** @param {number} from @param {number} to @param {number} n */
    const share = (from, to, n) => Math.floor(Math.min(0.999, Math.max(0, (middle - from) / (to - from))) * n);
    const told = answer.getBoundingClientRect().bottom;
    const asks = tried > 0 && !(/** @type {HTMLDetailsElement} */ (answer).open) && told > 0;
    if (mini.classList.toggle("asks", asks)) return this.choose(0);
    if (tried > 0 && over > middle) return this.choose(share(told, over, tried));
    if (new Set(reading.map(({ at }) => at)).size < 2) {
      return this.choose(tried + share(tried > 0 ? over : top, bottom, steps.length - tried));
    }
    const read = reading.findLast(({ line }) =>
      !line.closest("details:not([open])") && line.getBoundingClientRect().top < middle);
    this.choose(read?.at ?? tried, read?.line);
  }

  /** @param {number} by */
  turn(by) {
    this.held = performance.now() + 900;
    this.mini.classList.remove("asks");
    this.choose(this.step + by);
    // do not scroll: the mini-stage above the text would leave the window
    if (!this.wide.matches) return this.frame ? undefined : this.open();
    const line = this.lineOf(this.step);
    line?.closest("details")?.toggleAttribute("open", true);
    line?.scrollIntoView({ block: "center" });
  }
}

// newHands puts a slider below each drawing with several poses. Without scripts, the reader sees one pose.
function newHands() {
  for (const drawn of parts(document, ".drawn:has([data-value])")) {
    const poses = parts(drawn, "[data-value]");
    const [{ quantity = "", value: min }] = poses.map(({ dataset }) => dataset);
    const { value } = part(drawn, "[data-value]:not([display])").dataset;
    const slider = make("input", { type: "range", min, max: poses.length - 1 + Number(min), value });
    const number = make("b");
    const choose = () => {
      for (const pose of poses) put(pose, "display", pose.dataset.value === slider.value ? null : "none");
      say(number, slider.value);
      const says = parts(drawn, "[data-value]:not([display]) > text").at(-1)?.textContent ?? "";
      slider.ariaValueText = `${slider.value}. ${says}`;
    };
    when(slider, "input", choose);
    choose();
    drawn.after(make("label", { className: "hand" }, quantity, slider, number));
  }
}

newHands();
new MiniStage();
