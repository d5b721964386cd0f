// The picture: what is drawn in the frame on screen, as plain data, for checks from outside and for those who open the
// console. It is read from what was drawn, not from the fold: a drawing that is wrong is told as it is.

import { $ } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";
import { heldIn } from "./pipe.js";

const token = (t) => ({ key: objectKey(t.key ?? ""), rv: t.rv ?? "0" });
const number = (el, name) => Number(el?.getAttribute(name) ?? 0);

export function newPicture(stage) {
  const { scene, motion, player } = stage;
  const frame = $("#stage");

  function queues() {
    return [...scene.root.querySelectorAll("[data-queue]")].map((el) => {
      const lane = el.closest("[data-watcher], [data-listener], [data-workqueue]")?.dataset ?? {};
      const slots = el.querySelector(".slots")?.childElementCount ?? 0;
      return {
        name: el.dataset.queue, owner: lane.watcher ?? lane.listener ?? lane.workqueue ?? "",
        len: number(el, "data-len"), cap: number(el, "data-cap"),
        slotted: slots > 0, tokens: (el.tokens ?? []).map(token),
      };
    });
  }

  function shelves() {
    return ["store", "indexer"].map((station) => {
      const el = scene.stations.get(station);
      const rows = [...el.querySelectorAll(".row")].filter((row) => row.object).map((row) => token(row.object));
      const n = Number(scene.texts.get(`${station}.n`)?.textContent ?? 0);
      return {
        station, owner: station === "store" ? "cacher" : (scene.informer ?? ""), n, rows,
        more: Math.max(0, n - rows.length),
      };
    });
  }

  // drawn is every token that is painted, where in the window that is, and the queue or station it stands in; "": it is
  // on its way.
  function drawn() {
    const { view } = scene;
    const ground = frame.getBoundingClientRect();
    const scale = ground.width / view.w;
    const spot = ([x, y]) => ({ x: ground.x + (x - view.x) * scale, y: ground.y + (y - view.y) * scale, alpha: 1 });
    const told = ({ key, rv, owner }, where, at) => ({ key, rv, owner, in: where, ...spot(at) });
    return [
      ...heldIn(scene).map((t) => told(t, t.in, [t.x, t.y])),
      ...motion.standing().map((t) => told(t, t.in, [t.x, t.y])),
      ...motion.flying(player.clock).map((t) => told(t, "", t.now)),
    ];
  }

  // said is the sentence below the stage, and the words of the table about the record that is named beside it; "": it
  // has no row.
  function said() {
    const bar = $("#sentence");
    const row = $(`#records tr[data-seq="${bar.querySelector(".at").textContent.replace(/\D/g, "") || 0}"]`);
    return { words: bar.querySelector(".words").textContent, row: row?.lastElementChild.textContent ?? "" };
  }

  // texts are those that can be read: boxes in CSS pixels of the window.
  function texts() {
    const found = [];
    const ground = frame.getBoundingClientRect();
    for (const el of frame.querySelectorAll("text, button, .written")) {
      const words = el.textContent.trim();
      if (!words || !el.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const { x, y, width: w, height: h } = el.getBoundingClientRect();
      if (w > 0 && h > 0) found.push({ text: words, x, y, w, h });
    }
    const scale = ground.width / scene.view.w;
    for (const [, y, text, left, w] of motion.labels()) {
      found.push({
        text, x: ground.x + (left - scene.view.x) * scale, y: ground.y + (y - 12 - scene.view.y) * scale, w: w * scale,
        h: 15 * scale, moves: true,
      });
    }
    return found;
  }

  // read returns the picture; without texts it is cheap enough for every frame.
  function read({ texts: wanted = true } = {}) {
    const ring = scene.stations.get("ring");
    const cursor = Number(document.body.dataset.seq);
    const top = $("#records tr");
    return {
      cursor, newest: player.head, mode: document.body.dataset.mode, pace: player.pace, behind: player.lag() / 1000,
      banner: {
        seq: number($("#sentence"), "data-told"), text: said().words,
      },
      said: said(),
      // an empty table, at the beginning of a recording, says nothing else
      table: { seq: top ? number(top, "data-seq") : cursor },
      queues: queues(), shelves: shelves(), moving: motion.travelling(), drawn: drawn(), pile: player.pile(),
      level: motion.level,
      held: stage.hold.waiting.map(
        (w) => ({ key: w.key ?? "", rv: String(w.rv || "0"), at: w.point, station: w.station, goroutine: w.goroutine })
      ),
      ring: {
        start: number(ring, "data-start"), end: number(ring, "data-end"), capacity: number(ring, "data-capacity"),
      },
      texts: wanted ? texts() : [],
    };
  }

  return { read };
}
