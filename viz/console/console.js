// @ts-nocheck
// Console: a request as HTTP writes it, sent by the program over a line of its own, and the answer as it arrives. It
// reads as fast as the program sends. To stop reading is a knob of the line, as for every client.

import { lines } from "../lib/api.js";
import { turnKnob } from "../lib/cluster.js";
import { $, make, put, say, when } from "../dom/dom.js";
import { counted, cut } from "../lib/texts.js";

const most = 200; // pieces of an answer that are kept

export function newConsole(stage) {
  const panel = $("#console");
  const form = $("form[data-console]");
  const text = form.querySelector("textarea");
  const [state, head, refused] = ["#console-state", "#console-head", "#console-refused"].map($);
  const [ready, stall, end] = ["#console-ready", "#console-stall", "#console-end"].map($);
  const output = panel.querySelector("[data-console-output]");
  let open = null; // what aborts the request whose answer comes
  let agent = ""; // what that calls itself

  async function send() {
    open?.abort();
    const own = (open = new AbortController());
    const request = text.value;
    const began = performance.now();
    let [pieces, size] = [0, 0];
    output.replaceChildren();
    head.hidden = true;
    say(refused, "");
    say(state, "sent");
    running(true);
    try {
      for await (const said of lines("/viz/console", { request }, own.signal)) {
        if (own !== open) return; // another one was sent
        if (said.status) {
          agent = said.agent;
          stall.disabled = false;
          head.hidden = false;
          say(head, `HTTP/1.1 ${said.status}\n${said.header}`);
        }
        if (said.size) show(said, ++pieces, performance.now() - began);
        size += said.size ?? 0;
        const kept = pieces > most ? `, of which the newest ${most} are shown` : "";
        say(state, `${agent}: ${counted(pieces, "piece")}, ${size} bytes${kept}. ${said.end ?? ""}`);
      }
    } catch (problem) {
      if (own !== open) return;
      if (own.signal.aborted) say(state, `${state.textContent} You have ended it.`);
      else say(refused, cut(problem.message, 300));
    }
    if (own === open) running(false);
  }

  // running says whether an answer still comes.
  function running(on) {
    end.disabled = !on;
    stall.disabled = true;
    stalled(false);
    if (!on) open = null;
  }

  function stalled(on) {
    put(stall, "aria-pressed", String(on));
    say(stall, on ? "Read on" : "Stop reading");
  }

  function show(said, n, ms) {
    const atEnd = output.scrollTop + output.clientHeight > output.scrollHeight - 30;
    const words = `${n} · ${said.size} bytes · after ${Math.round(ms)} ms`;
    output.append(make("li", {}, make("span", {}, words), make("pre", {}, said.text)));
    if (output.childElementCount > most) output.firstElementChild.remove();
    if (atEnd) output.scrollTop = output.scrollHeight;
  }

  async function turn() {
    const on = stall.ariaPressed !== "true";
    await turnKnob("line.stall", agent, String(on));
    if (open) stalled(on);
  }

  // A watch begins at the newest version on stage.
  when(ready, "change", () => {
    const version = stage.player.state.resources[stage.resource]?.stations.etcd?.rv ?? "0";
    text.value = ready.value.replace("resourceVersion=VERSION", `resourceVersion=${version}`);
    ready.value = "";
    text.focus();
  });
  when(form, "submit", (event) => {
    event.preventDefault();
    send();
  });
  when(text, "keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  when(stall, "click", () => turn().catch(stage.banner.trouble));
  when(end, "click", () => open?.abort());
  return {};
}
