// What is blocked: the queues that a goroutine waits at are marked, and a badge names the one that all of them wait
// for. It leads to the chain, in the inspector.

import { mark, put, say } from "../lib/dom.js";
import { waitsAtQueues, newWhy } from "../log/why.js";

const grace = 250; // ms that a goroutine waits before it is shown: a hand-over that takes a moment is no stop

const words = {
  client: "its client does not read",
  return: "its code has not returned",
  lock: "a lock is held",
};
const places = { stream: "reflector", wire: "wire" }; // of the two ways that are no queues of ours
const above = { right: 1192, bottom: 304, w: 430 }; // of the badge, in units: above the client half's stations
const between = { right: 428, bottom: 850, w: 414 }; // and of the tall stage: between the halves

export function newBlocked(stage) {
  const { scene, infos, player } = stage;
  const badge = document.querySelector("#cause");
  const { why, causes } = newWhy(infos);
  const firstSeen = new Map(); // by the seq of a wait: when this page saw it first
  let cause = null;
  let lasted = new Set(); // the waits that lasting left in, by seq
  let due = Infinity; // when the next wait will have lasted

  // pipeOf finds the drawing of a queue: in a lane, or the one that there is.
  function pipeOf({ queue, subject }) {
    const id = CSS.escape(subject);
    const lane = scene.root.querySelector(`[data-watcher="${id}"], [data-listener="${id}"], [data-workqueue="${id}"]`);
    return lane?.querySelector(`[data-queue="${queue}"]`) ?? scene.queues.get(queue) ?? null;
  }

  const stationOf = (link) => places[link.queue] ?? pipeOf(link)?.closest("[data-station]")?.dataset.station;

  // lasting leaves out the waits that have only begun, except where the picture stands still.
  function lasting(waits) {
    const now = performance.now();
    const known = new Set(waits.map((w) => w.seq));
    for (const seq of firstSeen.keys()) if (!known.has(seq)) firstSeen.delete(seq);
    const old = waits.filter((w) => {
      if (!firstSeen.has(w.seq)) firstSeen.set(w.seq, now);
      return player.mode === "frozen" || now - firstSeen.get(w.seq) >= grace;
    });
    const young = waits.filter((w) => !old.includes(w)).map((w) => firstSeen.get(w.seq) + grace);
    due = Math.min(...young);
    lasted = new Set(old.map((w) => w.seq));
    return old;
  }

  function shown(res) {
    const waits = res ? lasting(waitsAtQueues(res)) : [];
    const held = new Set(waits.map((w) => pipeOf({ queue: w.on, subject: w.subject })));
    for (const pipe of scene.root.querySelectorAll(".pipe")) mark(pipe, "blocked", held.has(pipe));
    put(document.body, "data-blocked", waits.length);
    cause = waits.length > 0 ? why(res, waits[0].on, waits[0].subject).at(-1) : null;
    const pipe = cause && (pipeOf(cause) ?? scene.stations.get(stationOf(cause)));
    // a story is about something else
    badge.hidden = !cause || Boolean(pipe?.closest(".dimmed") && !pipe.closest(".bright"));
    if (!cause) return;
    const others = causes(res).length - 1;
    say(badge.querySelector("span"), tell(cause, waits.length, others));
    say(badge.querySelector("small"), [...new Set(waits.map(whoOf))].map((who) => `⇥ ${who}`).slice(0, 2).join("  "));
    put(badge, "aria-label", `All of them wait here: ${badge.querySelector("span").textContent}. Show the chain.`);
    put(badge, "data-cause", `${cause.queue} ${cause.subject}`);
    stand();
  }

  function tell(link, n, others) {
    const why = words[link.taker?.kind] ?? "its receiver is at work";
    const more = others > 0 ? `, and ${others} more cause${others > 1 ? "s" : ""}` : "";
    return `${link.subject}: ${why}; ${n === 1 ? "1 is" : `${n} are`} held up${more}`;
  }

  // whoOf names the goroutine that waits, and whose it is where there are several.
  function whoOf(w) {
    const name = w.lane.split(" ")[0].split(".").at(-1);
    return w.on === "result" ? `${w.subject} ${name}` : name;
  }

  // stand puts the badge where nothing is written: between the halves, or, from near, at the lower edge.
  function stand() {
    const { width, height } = badge.parentElement.getBoundingClientRect();
    const { view } = scene;
    const place = scene.tall ? between : above;
    const scale = width / view.w;
    const whole = view.w === scene.width;
    // as large as what is written on the stage
    badge.style.fontSize = whole ? `${Math.max(11, 14 * scale).toFixed(1)}px` : "";
    badge.style.maxWidth = `${Math.round((whole ? place.w : 0.8 * view.w) * scale)}px`;
    const left = whole ? place.right * scale - badge.offsetWidth : (width - badge.offsetWidth) / 2;
    badge.style.left = `${Math.round(left)}px`;
    badge.style.top = `${Math.round((whole ? place.bottom * scale : height - 4) - badge.offsetHeight)}px`;
  }

  badge.addEventListener("click", () => {
    const queue = places[cause.queue] ? "" : cause.queue;
    stage.inspector.inspect({ station: stationOf(cause), queue, subject: cause.subject }, "blocked", badge);
  });

  return { get lasting() { return lasted; }, shown, draw: (now) => now >= due && stage.touch() };
}
