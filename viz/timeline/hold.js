// @ts-nocheck
// Holding the world: not the view of it but the program itself. The gate is closed and the world's clock is stopped;
// from here it is resumed hop by hop, station by station, or altogether. What is shown is what the program says, never
// what was asked for.

import { ask, leave as lastWord } from "../lib/api.js";
import { $, make, mark, pool, put, say, when } from "../dom/dom.js";
import { cut, squeeze } from "../lib/texts.js";
import { times } from "../lib/times.js";
import { objectKey } from "../log/fold.js";
import { shortKey } from "../stage/tokens.js";

const unattended = "15s"; // how long the world stays held when this page is gone without a word
const hidden = "10m"; // … and when it is only out of sight
const rows = 40; // of held goroutines that are shown
const settle = 80; // ms between two settings of the speed
const holdsAll = "Hold the world: every goroutine stops at its next point, and so does the clock (Shift+Space)";
const resumesAll = "Resume: the program runs, and the page shows what is live (Shift+Space)";
const nothingAtAGate = "No goroutine is paused at a gate: each waits for another one, or for the clock.";

export function newHold(stage) {
  const { player, follow } = stage;
  if ($("#hold").hidden) return { held: false, waiting: [] };
  const panel = $("#world");
  const list = $("#held");
  let status = null; // as the program said last
  let heard = 0; // when
  let wish; // a viewer wants the panel open though nothing is held, or away (false) although something is
  let turned = 0; // the speed is being set
  let hops = Promise.resolve(); // of what is followed
  let own = false; // the viewer held something from this page

  // command returns how the world is then, null if the program refused.
  const command = (url, body) => ask("POST", url, body).then(show, (problem) => (stage.tell(problem.message), null));
  const gate = (body) => command("/viz/hold", body);
  const clock = (body) => command("/viz/clock", body);
  const closed = () => Boolean(status?.held || status?.gates.length > 0);
  const close = (where) => ((own = true), gate({ do: "hold", ...where, unattended }));

  // away reports whether the viewer has left what is live: the one button then leads back there. A story and the tour
  // have their own way out.
  const { dataset } = document.body;
  const away = () => player.mode !== "live" && !player.recording && !(dataset.story ?? dataset.tour);

  // toggle holds the world. If it is held, or the page shows another moment than the newest, it resumes both.
  function toggle() {
    const elsewhere = away();
    if (elsewhere) player.live();
    if (closed()) return gate({ do: "release" });
    return elsewhere ? null : close();
  }

  // hop lets goroutines pass one point, those that are meant, or all; or it walks one object or version.
  async function hop(where, act = "step") {
    if (!closed()) return stage.tell("nothing is held: hold the world first");
    const { says } = (await gate({ do: act, ...where })) ?? {};
    if (says) stage.tell(says);
  }

  // hopFollowed moves what is followed to the next point at which a goroutine is held with it. If it waits in a queue,
  // the goroutine that is to take it is let go on, and nothing else. One hop is over before the next one begins.
  function hopFollowed() {
    if (!follow.has()) return stage.tell("follow an object first: click it, or press F");
    const where = { resource: stage.resource, key: follow.key, rv: Number(follow.rv) || 0 };
    hops = hops.then(() => hop(where, "walk"));
  }

  // ---- what the program says

  function show(answer) {
    status = answer;
    heard = performance.now();
    player.worldPace = status.clock.paused ? 0 : status.clock.speed;
    if (status.letGo && !closed()) stage.banner.notice(`Watchdog: ${status.letGo}.`);
    const nameOf = ({ station, resource, subject }) => [station, resource, subject].filter(Boolean).join(":");
    put(document.body, "data-gates", status.gates.map(nameOf).join(" "));
    put(document.body, "data-clock", status.clock.paused ? "paused" : String(status.clock.speed));
    if (!closed() && wish === false) wish = undefined;
    showPanel();
    showClock();
    showGates();
    showHeld();
    return status;
  }

  function showPanel() {
    panel.hidden = !(wish ?? closed());
    put($("#world-clock"), "aria-expanded", String(!panel.hidden));
  }

  // showBar writes what the one button does. It has the same place whatever is to be left.
  function showBar() {
    const resumes = closed() || away();
    say($("#hold"), resumes ? "Resume" : "Hold");
    put($("#hold"), "title", resumes ? resumesAll : holdsAll);
    put($("#hold"), "aria-pressed", String(closed()));
    mark($("#hold"), "main", resumes);
  }

  function showClock() {
    const { paused, speed } = status.clock;
    say($("#world-clock"), paused ? "❄ 0×" : times(speed));
    put($("#world-clock"), "aria-label", `The world's clock ${paused ? "is stopped" : `runs at ${times(speed)}`}`);
    const words = status.held ? "held" : closed() ? "gates closed" : paused ? "clock stopped" : "running";
    say($("#world-state"), words);
    put($("#clock-run"), "aria-pressed", String(!paused));
    say($("#clock-run"), paused ? "Run clock" : "Stop clock");
    if (document.activeElement !== $("#clock-speed")) $("#clock-speed").value = Math.log10(speed);
    say($("#clock-speed-text"), times(speed));
  }

  function showGates() {
    const whole = (gates, station) => gates.some((g) => g.station === station && !g.subject && !g.resource);
    const held = (station) => status.held && !whole(status.opened, station);
    for (const button of panel.querySelectorAll("[data-gate]")) {
      const station = button.dataset.gate;
      put(button, "aria-pressed", String(whole(status.gates, station) || held(station)));
    }
    for (const glyph of document.querySelectorAll("[data-gate-at]")) {
      const station = glyph.dataset.gateAt;
      put(glyph, "data-closed", String(status.gates.some((g) => g.station === station) || held(station)));
      showAtGate(glyph, status.waiting.filter((w) => w.station === station));
    }
  }

  // showAtGate writes what the goroutines at a gate hold: the name of the first object, and that there are more.
  function showAtGate(glyph, waiting) {
    const keys = [...new Set(waiting.map((w) => w.key).filter(Boolean))];
    put(glyph.querySelector(".count"), "visibility", waiting.length > 0 ? "visible" : "hidden");
    say(glyph.querySelector("text"), `${waiting.length}`);
    const name = keys[0] ? squeeze(shortKey(keys[0]), keys.length > 1 ? 4 : 6) : "";
    say(glyph.querySelector(".who"), keys.length > 1 ? `${name} +${keys.length - 1}` : name);
    put(glyph, "aria-label", `${glyph.dataset.gateAt}: ${keys.join(", ")}`);
    put(glyph, "data-keys", keys.map(objectKey).join(" "));
    mark(glyph, "followed", follow.key !== "" && keys.some((key) => objectKey(key) === follow.key));
  }

  function showHeld() {
    const shown = status.waiting.slice(0, rows);
    [...pool(list, shown.length, row)].forEach((tr, i) => {
      const w = shown[i];
      tr.held = w;
      const [who, point, what, since] = tr.cells;
      say(who, `${w.goroutine}${w.subject ? ` · ${stage.called(w)}` : ""}`);
      put(who, "title", `${w.function} ${w.line}`);
      say(point, `${w.station} · ${w.point}`);
      put(point, "title", w.says);
      say(what, cut([w.type, w.key, w.rv || ""].filter(Boolean).join(" ") || w.says, 60));
      say(since, `${Math.max(0, w.seconds).toFixed(1)} s`);
      mark(tr, "followed", follow.key !== "" && follow.key === w.key);
    });
    const more = status.waiting.length - shown.length;
    $("#held-none").hidden = shown.length > 0 && more === 0;
    say($("#held-none"), more > 0 ? `and ${more} more` : status.held ? nothingAtAGate : "No goroutine is held.");
  }

  function row() {
    const button = make("button", { type: "button", title: "Let it pass one point" }, "Hop");
    const cells = ["", "", "", "n", ""].map((className, i) => make("td", { className }, i === 4 ? button : ""));
    return make("tr", {}, ...cells);
  }

  // draw lets the times go by between two words of the program.
  function draw(now) {
    showBar();
    if (!status || panel.hidden) return;
    const passed = (now - heard) / 1000;
    const next = status.clock.next[0];
    const left = next && Math.max(0, next.in - passed * (status.clock.paused ? 0 : status.clock.speed));
    const soon = next && `next timer: ${next.who}, in ${left.toFixed(left < 10 ? 2 : 0)} s`;
    say($("#world-next"), soon ?? "no timer is set");
    say($("#world-since"), status.held ? `for ${((Date.now() - Date.parse(status.since)) / 1000).toFixed(0)} s` : "");
  }

  // ---- hands

  when("#hold", "click", toggle);
  when("#hop", "click", () => hop());
  when("#hop-followed", "click", hopFollowed);
  when("#clock-run", "click", () => clock({ paused: !status?.clock.paused }));
  when("#clock-second", "click", () => clock({ advance: "1s" }));
  when("#clock-next", "click", async () => {
    const next = status?.clock.next[0];
    if ((await clock({ advance: "next" })) && next) stage.tell(`the clock has moved to the timer of ${next.who}`);
  });
  when("#world-clock", "click", () => {
    wish = panel.hidden;
    showPanel();
  });
  when("#gates", "click", ({ target }) => {
    const button = target.closest("[data-gate]");
    const station = button?.dataset.gate;
    if (station && button.getAttribute("aria-pressed") === "true") gate({ do: "release", station });
    else if (station) close({ station });
  });
  when(list, "click", (event) => {
    const w = event.target.closest("tr")?.held;
    if (!w) return;
    const { station, resource = "", subject = "", key = "", rv = "0" } = w;
    if (event.target.closest("button")) hop({ station, resource, subject, key, rv: Number(rv) });
    else if (key) follow.set(key);
  });
  when("#clock-speed", "input", (event) => {
    clearTimeout(turned);
    const speed = 10 ** Number(event.target.value);
    say($("#clock-speed-text"), times(speed));
    turned = setTimeout(() => clock({ speed }), settle);
  });

  // A page that goes says how long to wait for another one to come.
  const leave = (time) => own && closed() && lastWord("/viz/hold", { do: "leave", unattended: time });
  let going = false;
  when(window, "pagehide", () => ((going = true), leave(unattended)));
  when(window, "pageshow", () => (going = false));
  when(document, "visibilitychange", () => !going && document.hidden && leave(hidden));

  return {
    get held() { return status?.held ?? false; },
    get waiting() { return closed() ? status.waiting : []; },
    draw, world: show, followed: () => status && showHeld(),
    escape: () => !panel.hidden && ((wish = false), showPanel(), true),
    keys: [
      [["Shift+ "], "hold the world, resume it", toggle],
      [["h"], "held: one hop; of what you follow, if anything", () => (follow.has() ? hopFollowed() : hop())],
    ],
  };
}
