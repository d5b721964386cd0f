// Console: a raw HTTP request over a separate connection, and the answer as it arrives. A knob can stop the reading.

import { $, make, part, put, say, when } from "../dom/dom.js";
import { ask, lines, refusal } from "../lib/api.js";
import { counted, cut } from "../lib/texts.js";

/**
 * @typedef {object} Stage
 * @property {() => string} version the newest version on stage
 * @property {(problem: unknown) => void} trouble
 * @typedef {object} Said one line from the program (said in console.go)
 * @property {string} [agent]
 * @property {string} [status]
 * @property {string} [header]
 * @property {string} [text]
 * @property {number} [size]
 * @property {string} [end]
 */

const most = 200; // the maximum number of pieces kept of a response

export class Console {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.form = $("form[data-console]", HTMLFormElement);
    this.text = part(this.form, "textarea", HTMLTextAreaElement);
    this.state = $("#console-state");
    this.head = $("#console-head");
    this.stall = $("#console-stall", HTMLButtonElement);
    this.end = $("#console-end", HTMLButtonElement);
    this.output = $("[data-console-output]");
    /** @type {AbortController | null} */
    this.open = null; // aborts the request whose answer is arriving
    this.agent = ""; // the request's user agent
    this.pieces = 0; // the number of pieces so far
    this.began = 0;
    this.bind();
  }

  async send() {
    this.open?.abort();
    const own = (this.open = new AbortController());
    const request = this.text.value;
    [this.pieces, this.began] = [0, performance.now()];
    this.output.replaceChildren();
    this.head.hidden = true;
    say($("#console-refused"), "");
    say(this.state, "sent");
    this.running(true);
    try {
      for await (const said of lines("/viz/console", { request }, own.signal)) {
        if (own !== this.open) return; // a newer request was sent, or the viewer ended this one
        this.hear(said);
      }
    } catch (problem) {
      if (own === this.open) say($("#console-refused"), cut(refusal(problem).message, 300));
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
    if (said.size) {
      const { output } = this;
      const atEnd = output.scrollTop + output.clientHeight > output.scrollHeight - 30;
      const words = `${++this.pieces} · ${said.size} bytes · after ${Math.round(performance.now() - this.began)} ms`;
      output.append(make("li", {}, make("span", {}, words), make("pre", {}, said.text ?? "")));
      if (output.childElementCount > most) output.firstElementChild?.remove();
      if (atEnd) output.scrollTop = output.scrollHeight;
    }
    say(this.state, `${this.agent}: ${counted(this.pieces, "piece")}. ${said.end ?? ""}`);
  }

  /** @param {boolean} on */
  running(on) {
    [this.end.disabled, this.stall.disabled] = [!on, true];
    put(this.stall, "aria-pressed", "false");
    if (!on) this.open = null;
  }

  bind() {
    const ready = $("#console-ready", HTMLSelectElement);
    // A watch begins at the newest version on stage.
    when(ready, "change", () => {
      this.text.value = ready.value.replace("resourceVersion=VERSION", `resourceVersion=${this.stage.version()}`);
      ready.value = "";
      this.text.focus();
    });
    when(this.form, "submit", (event) => {
      event.preventDefault();
      this.send();
    });
    when(this.stall, "click", () => {
      const on = this.stall.ariaPressed !== "true";
      ask("POST", "/viz/knobs", { name: "line.stall", target: this.agent, value: String(on) })
        .then(() => this.open && put(this.stall, "aria-pressed", String(on)), this.stage.trouble);
    });
    when(this.end, "click", () => {
      this.open?.abort();
      this.running(false);
      say(this.state, `${this.state.textContent} You have ended it.`);
    });
  }
}
