// The journey: a strip below the stage, one place for each station of the loop. It fills as the cursor comes to where
// what is followed has been: the station, the time since the commit, and whose hands it was in. What this page or
// kubectl writes is followed by itself, unless the viewer follows something already.

import { $, cut, make, mark, put, say, when } from "../lib/dom.js";
import { milliseconds } from "../lib/times.js";
import { objectKey } from "../log/fold.js";
import { hangsOn } from "../stage/lanes.js";

const ofInformer = new Set(["wire", "reflector", "fifo", "indexer", "processor"]); // there may be several; one is drawn
const aside = new Set(["http", "workqueue"]); // stations at which a change has not come to be, or is no more
const kubectl = /^(POST|PUT|PATCH|DELETE) .* by kubectl$/;

export function newJourney(stage) {
  const { player, follow, infos, scene } = stage;
  const strip = $("#journey");
  const stationOf = (r) => infos.get(r.point).station;
  // The table of points is in path order.
  const stations = [
    ...new Set([...infos.values()].map((info) => info.station))
  ].filter((name) => scene.stations.has(name) && !aside.has(name));
  const places = stations.map((station) => {
    const button = make("button", { type: "button" }, make("b", {}, station), make("span"), make("span"));
    const item = make("li", {}, button);
    when(button, "click", () => item.seq && player.seek(item.seq));
    return item;
  });
  strip.querySelector("ol").replaceChildren(...places);
  let drawn = ""; // what it was filled from
  let asked = false; // kubectl has asked for a write that is not committed yet

  // arrived finds kubectl's writes: a request is received with the name of its client.
  function arrived(list) {
    for (const r of list) {
      if (r.point === "RequestReceived" && kubectl.test(r.text ?? "")) asked = true;
      if (r.point !== "TxnCommitted" || !asked || r.resource !== stage.resource) continue;
      asked = false;
      if (!follow.has()) follow.wrote(objectKey(r.key));
    }
  }

  // firstAt returns the step with which the revision came to a station, of the informer that is drawn if there are
  // several.
  function firstAt(steps, station) {
    return steps.find(({ r }) => {
      if (stationOf(r) !== station) return false;
      if (ofInformer.has(station)) return r.subject === scene.informer;
      if (station !== "listener" && station !== "handler") return true;
      return hangsOn(scene, scene.lanes.listeners.get(r.subject)?.lane?.subject);
    });
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
    const here = steps.length > 0 ? stationOf(steps.at(-1).r) : "";
    stations.forEach((station, i) => fill(places[i], station, firstAt(steps, station)?.r, began, here));
  }

  function fill(item, station, r, began, here) {
    const [, after, whose] = item.firstElementChild.children;
    item.seq = r?.seq ?? 0;
    mark(item, "past", Boolean(r));
    mark(item, "here", station === here);
    const took = r ? r.t - began : 0; // none where a recording's clock stands
    say(after, r && station === "etcd" ? "committed" : took > 0 ? `+${milliseconds(took)}` : "");
    say(whose, r ? who(r) : "");
    const words = r ? `${station}: ${after.textContent}, ${whose.textContent}. Go there.` : `${station}: not yet`;
    put(item.firstElementChild, "title", whose.textContent);
    put(item.firstElementChild, "aria-label", words);
    mark(scene.stations.get(station), "on-way", Boolean(r));
  }

  when(strip.querySelector("#journey-more"), "click", () => follow.open());
  when(strip.querySelector("#journey-end"), "click", () => follow.clear());
  return { arrived, draw };
}
