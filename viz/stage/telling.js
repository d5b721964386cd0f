// Telling: the one sentence below the stage. Live, it takes its time and leads through every station; when the viewer
// steps, it says what the record at the cursor says.

import { put, say } from "../lib/dom.js";
import { isAlarm, isAnomaly, sentence } from "../log/fold.js";

const period = 2000; // ms that a sentence stays at least

export function newTelling(infos, scene) {
  const bar = document.querySelector("#sentence");
  const lastTold = new Map(); // by point: when there was a sentence about it
  const candidates = new Map(); // by point: the newest record since the last sentence
  let toldAt = 0;
  let about = 0; // the record that the sentence is about

  function consider(list, resource) {
    for (const r of list) {
      if ((r.resource ?? "") === resource || (r.resource ?? "") === "") candidates.set(r.point, r);
    }
  }

  // choose picks, of what has happened, what is worth a sentence: an anomaly before anything else, then what has not
  // been told for the longest time, so that a viewer who keeps reading is led through every station.
  function choose() {
    let best = null;
    let rank = Infinity;
    for (const point of infos.keys()) {
      const r = candidates.get(point);
      if (!r) continue;
      const age = isAnomaly(infos.get(point), r) ? -Infinity : (lastTold.get(point) ?? -1);
      if (best === null || age < rank) [best, rank] = [r, age];
    }
    return best;
  }

  // at says which record the picture is of.
  const at = (cursor) => put(bar, "data-seq", cursor);

  // is says which record the sentence is about, beside it.
  function is(seq) {
    about = seq;
    put(bar, "data-told", seq);
    say(bar.querySelector(".at"), `record ${seq}`);
  }

  function draw(now) {
    if (candidates.size === 0 || now - toldAt < period) return;
    tell(choose(), now);
  }

  // begins is said where no record leads to: before the first one there is.
  function begins(seq) {
    candidates.clear();
    is(seq);
    say(bar.querySelector(".where"), "start");
    say(
      bar.querySelector(".words"),
      seq > 0 ? "The first moment there is. What led here is not in the log any more."
        : "The first moment there is: nothing has happened yet."
    );
    put(bar, "class", "sentence");
    document.querySelectorAll(".station.told").forEach((el) => el.classList.remove("told"));
  }

  function tell(r, now) {
    candidates.clear();
    lastTold.set(r.point, now);
    toldAt = now;
    const info = infos.get(r.point);
    is(r.seq);
    say(bar.querySelector(".where"), info.station);
    say(bar.querySelector(".words"), sentence(info, r));
    put(bar, "class", isAlarm(info, r) ? "sentence anomaly" : "sentence");
    document.querySelectorAll(".station.told").forEach((el) => el.classList.remove("told"));
    scene.stations.get(info.station)?.classList.add("told");
  }

  return { at, told: () => about, consider, draw, tell, begins, clear: () => candidates.clear() };
}
