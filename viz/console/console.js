// Console: a request as HTTP writes it, sent by the program over a line of its own, and the answer as it arrives. It
// reads as fast as the program sends. To stop reading is a knob of the line, as for every client.

import { lines } from "../lib/api.js";
import { turnKnob } from "../lib/cluster.js";
import { $, copied, cut, make, options, put, say, when } from "../lib/dom.js";

const storage = "console";
const most = { pieces: 200, history: 20 }; // kept: of an answer, and of the requests that were sent

export function newConsole(stage) {
  const panel = $("#console");
  const form = $("form[data-console]");
  const text = form.querySelector("textarea");
  const [state, head, refused] = ["#console-state", "#console-head", "#console-refused"].map($);
  const [stall, end, history] = ["#console-stall", "#console-end", "#console-history"].map($);
  const output = panel.querySelector("[data-console-output]");
  let open = null; // what aborts the request whose answer comes
  let agent = ""; // what that calls itself
  let sent = JSON.parse(localStorage.getItem(storage) ?? "[]"); // newest first
  recall();

  function recall() {
    options(history, [["", "Sent before…"], ...sent.map((each) => [each, cut(each.split("\n")[0], 80)])]);
    history.disabled = sent.length === 0;
  }

  function remember(request) {
    sent = [request, ...sent.filter((each) => each !== request)].slice(0, most.history);
    try {
      localStorage.setItem(storage, JSON.stringify(sent));
    } catch {
      // The browser keeps nothing: then the history is this page's.
    }
    recall();
  }

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
          remember(request);
          agent = said.agent;
          stall.disabled = false;
          head.hidden = false;
          say(head, `HTTP/1.1 ${said.status}\n${said.header}`);
        }
        if (said.size) show(said, ++pieces, performance.now() - began);
        size += said.size ?? 0;
        const kept = pieces > most.pieces ? `, of which the newest ${most.pieces} are shown` : "";
        say(state, `${agent}: ${pieces} ${pieces === 1 ? "piece" : "pieces"}, ${size} bytes${kept}. ${said.end ?? ""}`);
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
    if (output.childElementCount > most.pieces) output.firstElementChild.remove();
    if (atEnd) output.scrollTop = output.scrollHeight;
  }

  async function turn() {
    const on = stall.getAttribute("aria-pressed") !== "true";
    try {
      await turnKnob("line.stall", agent, String(on));
      if (open) stalled(on);
    } catch (problem) {
      stage.banner.notice(problem.message);
    }
  }

  // curl is what sends the same from a terminal.
  function curl() {
    const [first, ...rest] = text.value.replaceAll("\r\n", "\n").trimStart().split("\n");
    const [method, path] = first.split(/\s+/);
    const empty = rest.findIndex((line) => line === "");
    const headers = empty < 0 ? rest : rest.slice(0, empty);
    const body = empty < 0 ? "" : rest.slice(empty + 1).join("\n");
    const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`;
    const how = method === "HEAD" ? ["-I"] : ["-X", method ?? "GET"];
    return [
      "curl", "-N", ...how, ...headers.flatMap((line) => ["-H", quoted(line)]),
      ...(body ? ["--data-binary", quoted(body)] : []), quoted(location.origin + (path ?? "/")),
    ].join(" ");
  }

  // fill writes a request down; a watch begins at the newest version on stage.
  function fill(select, request) {
    const version = stage.state.resources[stage.resource]?.stations.etcd?.rv ?? "0";
    if (request) text.value = request.replace("resourceVersion=VERSION", `resourceVersion=${version}`);
    select.value = "";
    text.focus();
  }

  for (const select of [$("#console-ready"), history]) {
    when(select, "change", () => fill(select, select.value));
  }
  when(form, "submit", (event) => {
    event.preventDefault();
    send();
  });
  when(text, "keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  when(stall, "click", turn);
  when(end, "click", () => open?.abort());
  when("#console-curl", "click", async () =>
    stage.tell((await copied(curl())) ? "copied" : "The browser does not let this page copy.", false));
  return {};
}
