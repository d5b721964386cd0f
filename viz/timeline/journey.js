// The journey: a strip below the stage, one place for each station of the loop. It fills as the cursor comes to where what is
// followed has been: the station, the time since the commit, and whose hands it was in. What this page or kubectl writes is
// followed by itself, unless the viewer follows something already.

import { cut, mark, put, say } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";
import { hangsOn } from "../stage/lanes.js";
import { milliseconds } from "../lib/times.js";

const stations = ["etcd", "etcd3", "ring", "store", "incoming", "dispatch", "watcher", "wire", "reflector", "fifo", "indexer", "processor", "listener", "handler"];
const ofInformer = new Set(["wire", "reflector", "fifo", "indexer", "processor"]); // there may be several; one is drawn
const kubectl = /^(POST|PUT|PATCH|DELETE) .* by kubectl$/;

export function newJourney(stage) {
  const { player, follow, infos, scene } = stage;
  const strip = document.querySelector("#journey");
  const places = stations.map(place);
  strip.querySelector("ol").replaceChildren(...places);
  let drawn = ""; // what it was filled from
  let asked = false; // kubectl has asked for a write that is not committed yet

  function place(station) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    const [name, after, who] = ["b", "span", "span"].map((tag) => document.createElement(tag));
    name.textContent = station;
    button.append(name, after, who);
    button.addEventListener("click", () => item.seq && player.seek(item.seq));
    item.append(button);
    return item;
  }

  // arrived finds kubectl's writes: a request is received with the name of its client.
  function arrived(list) {
    for (const r of list) {
      if (r.point === "RequestReceived" && kubectl.test(r.text ?? "")) asked = true;
      if (r.point !== "TxnCommitted" || !asked || r.resource !== stage.resource) continue;
      asked = false;
      if (!follow.has()) follow.wrote(objectKey(r.key));
    }
  }

  // firstAt returns the step with which the revision came to a station, of the informer that is drawn if there are several.
  function firstAt(steps, station) {
    const there = steps.filter((h) => infos.get(h.r.point).station === station);
    if (ofInformer.has(station)) return there.find((h) => h.r.subject === scene.informer);
    if (station === "listener" || station === "handler") return there.find((h) => hangsOn(scene, scene.lanes.listeners.get(h.r.subject)?.lane?.subject));
    return there[0];
  }

  const who = (r) => (infos.get(r.point).lane ?? "").split(" ")[0].split(".").at(-1) || r.subject || "";

  function draw() {
    put(strip, "data-key", follow.key);
    const open = follow.has();
    if (strip.hidden === open) strip.hidden = !open;
    const now = open ? `${follow.key} ${follow.rv} ${player.cursor} ${follow.count} ${follow.about}` : "";
    if (now === drawn) return;
    drawn = now;
    const { rv, steps } = open ? follow.way(player.cursor, follow.about) : { rv: "", steps: [] };
    say(strip.querySelector("h2"), open ? `${cut(follow.key || "revision", 40)} ${rv}` : "");
    const commit = steps.find((h) => h.r.point === "TxnCommitted")?.r.t ?? Infinity;
    const began = Math.min(commit, steps[0]?.r.t ?? 0);
    const last = steps.at(-1);
    stations.forEach((station, i) => {
      const step = firstAt(steps, station);
      const [item, [name, after, whose]] = [places[i], places[i].firstElementChild.children];
      item.seq = step?.r.seq ?? 0;
      mark(item, "past", Boolean(step));
      mark(item, "here", Boolean(last) && infos.get(last.r.point).station === station);
      const took = step ? step.r.t - began : 0; // none where a recording's clock stands
      say(after, step && station === "etcd" ? "committed" : took > 0 ? `+${milliseconds(took)}` : "");
      say(whose, step ? who(step.r) : "");
      put(item.firstElementChild, "title", whose.textContent);
      put(item.firstElementChild, "aria-label", step ? `${name.textContent}: ${after.textContent}, ${whose.textContent}. Go there.` : `${station}: not yet`);
      mark(scene.stations.get(station), "on-way", Boolean(step));
    });
  }

  strip.querySelector("#journey-more").addEventListener("click", () => follow.open());
  strip.querySelector("#journey-end").addEventListener("click", () => follow.clear());
  return { arrived, draw };
}
