// Console: a request as HTTP writes it, sent by the program over a line of its own, and the answer as it arrives. It
// reads as fast as the program sends. To stop reading is a knob of the line, as for every client.

import { $, make, part, put, say, when } from "../dom/dom.js";
import { lines, refusal } from "../lib/api.js";
import { turnKnob } from "../lib/cluster.js";
import { counted, cut } from "../lib/texts.js";

/**
 * @typedef {object} Stage
 * @property {() => string} version the newest one on stage
 * @property {(problem: unknown) => void} trouble
 * @typedef {object} Said one line of what comes (console.go)
 * @property {string} [agent]
 * @property {string} [status]
 * @property {string} [header]
 * @property {string} [text]
 * @property {number} [size]
 * @property {string} [end]
 */

const most = 200; // pieces of an answer that are kept

export class Console {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.text = part($("form[data-console]"), "textarea", HTMLTextAreaElement);
    this.state = $("#console-state");
    this.head = $("#console-head");
    this.stall = $("#console-stall", HTMLButtonElement);
    this.end = $("#console-end", HTMLButtonElement);
    this.output = $("[data-console-output]");
    /** @type {AbortController | null} */
    this.open = null; // what aborts the request whose answer comes
    this.agent = ""; // what that calls itself
    this.pieces = 0; // of the answer
    this.size = 0;
    this.began = 0;
    this.bind();
  }

  async send() {
    this.open?.abort();
    const own = (this.open = new AbortController());
    const request = this.text.value;
    [this.pieces, this.size, this.began] = [0, 0, performance.now()];
    this.output.replaceChildren();
    this.head.hidden = true;
    say($("#console-refused"), "");
    say(this.state, "sent");
    this.running(true);
    try {
      for await (const said of lines("/viz/console", { request }, own.signal)) {
        if (own !== this.open) return; // another one was sent
        this.hear(said);
      }
    } catch (problem) {
      if (own !== this.open) return;
      if (own.signal.aborted) say(this.state, `${this.state.textContent} You have ended it.`);
      else say($("#console-refused"), cut(refusal(problem).message, 300));
    }
    if (own === this.open) this.running(false);
  }

  /** @param {Said} said */
  hear(said) {
    if (said.status) {
      this.agent = said.agent ?? "";
      this.stall.disabled = false;
      this.head.hidden = false;
      say(this.head, `HTTP/1.1 ${said.status}\n${said.header}`);
    }
    if (said.size) this.show(said);
    this.size += said.size ?? 0;
    const kept = this.pieces > most ? `, of which the newest ${most} are shown` : "";
    say(this.state, `${this.agent}: ${counted(this.pieces, "piece")}, ${this.size} bytes${kept}. ${said.end ?? ""}`);
  }

  // running says whether an answer still comes.
  /** @param {boolean} on */
  running(on) {
    this.end.disabled = !on;
    this.stall.disabled = true;
    this.stalled(false);
    if (!on) this.open = null;
  }

  /** @param {boolean} on */
  stalled(on) {
    put(this.stall, "aria-pressed", String(on));
    say(this.stall, on ? "Read on" : "Stop reading");
  }

  /** @param {Said} said */
  show(said) {
    const { output } = this;
    const atEnd = output.scrollTop + output.clientHeight > output.scrollHeight - 30;
    const words = `${++this.pieces} · ${said.size} bytes · after ${Math.round(performance.now() - this.began)} ms`;
    output.append(make("li", {}, make("span", {}, words), make("pre", {}, said.text ?? "")));
    if (output.childElementCount > most) output.firstElementChild?.remove();
    if (atEnd) output.scrollTop = output.scrollHeight;
  }

  async turn() {
    const on = this.stall.ariaPressed !== "true";
    await turnKnob("line.stall", this.agent, String(on));
    if (this.open) this.stalled(on);
  }

  bind() {
    const form = $("form[data-console]", HTMLFormElement);
    const ready = $("#console-ready", HTMLSelectElement);
    // A watch begins at the newest version on stage.
    when(ready, "change", () => {
      this.text.value = ready.value.replace("resourceVersion=VERSION", `resourceVersion=${this.stage.version()}`);
      ready.value = "";
      this.text.focus();
    });
    when(form, "submit", (event) => {
      event.preventDefault();
      this.send();
    });
    when(this.text, "keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    when(this.stall, "click", () => this.turn().catch(this.stage.trouble));
    when(this.end, "click", () => this.open?.abort());
  }
}
