// The book beside the stage: scrolling is the control. The part of the text that is being read selects the moment; the
// mini-stage shows it, and the line that reported it is lit. Buttons do the same for a presenter. Words that mean a
// part of the stage light it. Where it is narrow, the mini-stage is above the text: there the moments are listed until
// a button opens it, and the buttons choose. Some chapters first show their first try, from a recording of its own.

import { $, part, parts, when } from "../dom/dom.js";

class MiniStage {
  constructor() {
    const mini = $("#mini");
    this.mini = mini;
    this.steps = parts(mini, ".steps li");
    const told = parts(document, "article .l[data-point]").map((line) => ({
      line, at: this.steps.findIndex((li) => !li.dataset.lab && li.dataset.point === line.dataset.point),
    }));
    this.reading = told.filter(({ at }) => at >= 0);
    this.text = $("article");
    this.repair = document.querySelector("#the-repair");
    this.tried = this.steps.filter((li) => li.dataset.lab).length; // so many steps are of the first try
    // which the first try gives away
    this.answer = this.text.querySelectorAll("details.answer")[Number(mini.dataset.fold)];
    this.wide = matchMedia("screen and (min-width: 64rem)");
    /** @type {HTMLIFrameElement | null} */
    this.frame = null; // once the mini-stage is open
    this.step = -1;
    this.held = 0; // until then scrolling does not choose: a button has
    /** @type {HTMLElement | null} */
    this.named = null; // the words that are pointed at, and mean a part of the stage
    this.bind();
    part(mini, ".hands").hidden = false;
    // the key step is what is drawn
    this.choose(this.wide.matches ? 0 : this.steps.findIndex((li) => li.classList.contains("key")));
    this.scrolled();
    this.start();
  }

  bind() {
    const { mini } = this;
    when(window, "message", ({ source, data }) => {
      if (this.frame && source === this.frame.contentWindow) mini.dataset.shown = data.shows;
    });
    window.addEventListener("scroll", () => this.scrolled(), { passive: true }); // once a frame, before it is drawn
    this.answer.addEventListener("toggle", () => this.scrolled());
    for (const type of /** @type {const} */ (["pointerover", "focusin", "focusout"])) {
      when(window, type, () => this.point());
    }
    when(part(mini, ".back"), "click", () => this.turn(-1));
    when(part(mini, ".on"), "click", () => this.turn(1));
    when(mini, "click", ({ target }) => {
      const li = this.steps.find((each) => each.contains(target));
      if (li) this.turn(this.steps.indexOf(li) - this.step);
    });
    when(this.wide, "change", () => this.start());
  }

  start() {
    if (this.wide.matches && !this.frame) this.open();
  }

  open() {
    const place = part(this.mini, ".frame");
    this.frame = document.createElement("iframe");
    this.frame.title = `Mini-stage: ${part(this.mini, "h2").textContent}`;
    place.classList.add("staged");
    place.append(this.frame);
    this.tell();
  }

  // tell shows the step, and the part that is pointed at: both stand in the frame's address (figure.js), which may be
  // written also where a file may not look into another one.
  tell() {
    if (!this.frame) return;
    const step = this.steps[this.step];
    const { seq: at = "", frame: address } = step.dataset;
    const { part: name = "", kind = "" } = this.named?.dataset ?? {};
    const station = part(step, ".station").textContent ?? "";
    const hash = new URLSearchParams({ at, station, part: name, kind });
    this.frame.contentWindow?.location.replace(`${address}#${hash}`);
  }

  // point lights the part of the stage that is meant by the words under the pointer, or else by those that have the
  // focus.
  point() {
    const { text } = this;
    const words = text.querySelector("[data-part]:hover") ?? text.querySelector("[data-part]:focus-within");
    if (words === this.named) return;
    this.named = /** @type {HTMLElement | null} */ (words);
    this.tell();
  }

  /** @param {number} n @param {Element} [from] */
  choose(n, from) {
    const { mini, steps } = this;
    const next = Math.min(steps.length - 1, Math.max(0, n));
    light(from ?? this.lineOf(next));
    if (next === this.step) return;
    this.step = next;
    steps.forEach((li, i) => (li.ariaCurrent = i === next ? "step" : null));
    part(mini, ".where").textContent = `step ${next + 1} of ${steps.length}`;
    part(mini, ".whole", HTMLAnchorElement).href = steps[next].dataset.whole ?? "";
    mini.dataset.step = String(next + 1);
    const act = steps[next].closest("[data-act]")?.dataset.act;
    for (const each of parts(mini, "[data-act]")) each.toggleAttribute("hidden", each.dataset.act !== act);
    this.tell();
  }

  /** @param {number} n */
  lineOf(n) { return this.reading.find(({ at }) => at === n)?.line; }

  // scrolled chooses the last reported line above the middle of the window, and the first step before there is one;
  // where the text shows hardly any, as much of the steps as has been read of the text.
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
    if (new Set(reading.map(({ at }) => at)).size < 2) return this.choose(share(top, bottom, steps.length));
    const read = reading.findLast(({ line }) =>
      !line.closest("details:not([open])") && line.getBoundingClientRect().top < middle);
    this.choose(read?.at ?? tried, read?.line);
  }

  /** @param {number} by */
  turn(by) {
    this.held = performance.now() + 900;
    this.mini.classList.remove("asks");
    this.choose(this.step + by);
    // it is above the text: the text would take it out of sight
    if (!this.wide.matches) return this.frame ? undefined : this.open();
    const line = this.lineOf(this.step);
    line?.closest("details")?.toggleAttribute("open", true);
    line?.scrollIntoView({
      block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth",
    });
  }
}

/** @param {Element | undefined} line */
function light(line) {
  for (const other of parts(document, ".l.lit")) other.classList.toggle("lit", other === line);
  line?.classList.add("lit");
}

if (document.querySelector("#mini")) new MiniStage();
