// Knobs: what can be done to the running pipeline. Each is one POST, and what it did stands in the log like everything
// else. Any button of the page with data-knob (and data-target, data-value) turns one: those on this panel and those on
// the leaves of the inspector.

import { ask, asking, get } from "../lib/api.js";
import { openWatcher, turnKnob } from "../lib/cluster.js";
import { $, make, put, say, when } from "../lib/dom.js";

const rates = [0, 5, 10, 20, 50, 100, 150, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 4000, 6000, 8000, 10000];
const delays = [[0, "at once"], [1e8, "100 ms"], [5e8, "500 ms"], [2e9, "2 s"], [1e10, "10 s"]]; // in ns
const period = 1000; // ms between two questions while the panel is open

export function newKnobs(stage) {
  const panel = $("#knobs");
  const button = $("#open-knobs");
  if (button.hidden) return {};
  const look = asking(async () => show(await get("/viz/knobs")));
  let shown = "";

  async function turn(name, target = "", value = "") {
    try {
      const state = await turnKnob(name, target, value);
      show(state, true);
      stage.tell([name, target, value].filter(Boolean).join(" ") + standing(state));
    } catch (problem) {
      stage.banner.notice(problem.message);
    }
  }

  async function reset() {
    try {
      const began = performance.now();
      const state = await ask("POST", "/viz/reset");
      show(state, true);
      stage.tell(`reset${standing(state) || `: done after ${Math.round(performance.now() - began)} ms`}`);
    } catch (problem) {
      stage.banner.notice(problem.message);
    }
  }

  // fill opens a client, stops it from reading, and lets five changes a second come: slow enough to see it fill.
  async function fill() {
    try {
      const { agent } = await openWatcher({ resource: document.body.dataset.resource });
      await turn("line.stall", agent, "true");
      await turn("traffic.rate", "", "5");
    } catch (problem) {
      stage.banner.notice(problem.message);
    }
  }

  // standing says that a command waits with the held world: then the answer has its number, and a record will say how
  // it ends.
  const standing = ({ id }) => (id ? `: command ${id} waits with the held world` : "");

  function show(state, always = false) {
    const { traffic, rings, handlers, lines } = state;
    const written = traffic.rate > 0 ? `, ${traffic.written} written` : "";
    if (document.activeElement !== $("#traffic")) {
      $("#traffic").value = rates.findLastIndex((rate) => rate <= traffic.rate);
    }
    say($("#traffic-text"), `${traffic.rate}/s${written}`);
    const ring = rings.find((each) => each.resource === "pods");
    if (document.activeElement !== $("#ring-fixed")) $("#ring-fixed").value = String(ring?.fixed ?? 0);
    for (const select of panel.querySelectorAll("[data-switch]")) {
      if (document.activeElement !== select) select.value = state.switches[select.dataset.switch];
    }
    panel.querySelector('[data-knob="etcd.restart"]').disabled = "etcd.restart" in (state.whyNot ?? {});
    const nodes = (state.nodes ?? []).map((node, i) => ({ ...node, leader: state.etcd.members?.[i]?.leader ?? false }));
    const text = JSON.stringify([handlers, lines, nodes]);
    if (text === shown || (!always && panel.querySelector("li :focus"))) return;
    shown = text;
    $("#knob-handlers").replaceChildren(...handlers.map(handlerItem));
    $("#knob-lines").replaceChildren(...lines.map(lineItem));
    $("#knob-nodes").replaceChildren(...nodes.map(nodeItem));
  }

  const item = (name, ...controls) =>
    make("li", {}, make("span", { className: "name", title: name }, name), ...controls);

  function knob(words, label, name, target, value, pressed) {
    const el = make("button", { type: "button", data: { knob: name, target, value } }, words);
    put(el, "aria-label", label);
    if (pressed !== undefined) put(el, "aria-pressed", String(pressed));
    return el;
  }

  function handlerItem(handler) {
    const known = delays.some(([ns]) => ns === handler.delay);
    const all = known ? delays : [...delays, [handler.delay, `${handler.delay / 1e6} ms`]];
    const select = make("select", { ariaLabel: `How long the handler ${handler.name} takes` });
    select.append(...all.map(([ns, words]) => new Option(words, `${ns / 1e6}ms`, false, ns === handler.delay)));
    when(select, "change", () => turn("handler.delay", handler.name, select.value));
    return item(
      handler.name, select, knob("Remove", `Remove the handler ${handler.name}`, "handler.remove", handler.name, "")
    );
  }

  function lineItem(line) {
    const who = line.userAgent;
    return item(
      `${who}${line.streams === 1 ? "" : `, ${line.streams} streams`}`,
      knob("Drop", `Drop the connection of ${who}`, "line.drop", who, ""),
      knob("Stall", `Stall the reader of ${who}`, "line.stall", who, String(!line.stalled), Boolean(line.stalled)),
      knob("Cut", `Cut the connection of ${who}`, "line.cut", who, String(!line.cut), Boolean(line.cut)),
    );
  }

  function nodeItem({ name, running, leader }) {
    const words = running ? "Stop" : "Start";
    return item(
      `${name}${leader ? " leads" : ""}`,
      knob(words, `${words} the node ${name} of etcd`, "etcd.node", name, String(!running))
    );
  }

  when(document, "click", (event) => {
    const el = event.target.closest("[data-knob]");
    if (el) turn(el.dataset.knob, el.dataset.target, el.dataset.value);
  });
  when("#reset", "click", reset);
  when("#fill", "click", fill);
  when("#traffic", "change", (event) => turn("traffic.rate", "", String(rates[Number(event.target.value)])));
  when("#traffic", "input", (event) => say($("#traffic-text"), `${rates[Number(event.target.value)]}/s`));
  when("#ring-fixed", "change", (event) => turn("ring.capacity", "pods", event.target.value));
  when(panel.querySelector(".modes"), "change", async (event) => {
    await turn("switch", event.target.dataset.switch, event.target.value);
    event.target.blur(); // what is shown from now on is how it is
  });
  when("#add-handler", "click", () => {
    const names = new Set([...panel.querySelectorAll("#knob-handlers .name")].map((el) => el.textContent));
    let n = 1;
    while (names.has(`handler-${n}`)) n++;
    turn("handler.add", `handler-${n}`);
  });

  return {
    draw: (now) => panel.hidden || look(now, period),
    keys: [
      [["x"], "knobs: slow it, stall it, cut it, load it", () => button.click()],
      [["r"], "reset the sandbox", reset],
    ],
  };
}
