// @ts-nocheck
// The picture: what is drawn in the frame on screen, as plain data, for checks from outside and for those who open the
// console. It is read from what was drawn, not from the fold: a drawing that is wrong is told as it is.

import { $ } from "../dom/dom.js";
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

  // ahead is where what stands with the stage goes next, as far as records say.
  const ahead = () => motion.ahead().map(({ key, rv, owner, point, of }) => (
    { key, rv, owner, point, in: of ? of.queue || of.in : "" }
  ));

  // said is the sentence below the stage, and the words of the table about the record that is named beside it; "": it
  // has no row.
  function said() {
    const bar = $("#sentence");
    const seq = bar.querySelector(".at").textContent.replace(/\D/g, "");
    const row = [...$("#records").rows].find((tr) => tr.dataset.seq === seq);
    return { words: bar.querySelector(".words").textContent, row: row?.lastElementChild.textContent ?? "" };
  }

  // texts are those that can be read: boxes in CSS pixels of the window.
  function texts() {
    const ground = frame.getBoundingClientRect();
    const scale = ground.width / scene.view.w;
    const seen = (el) => el.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    const fixed = [...frame.querySelectorAll("text, button, .written")].filter(seen).map((el) => {
      const { x, y, width: w, height: h } = el.getBoundingClientRect();
      return { text: el.textContent.trim(), x, y, w, h };
    });
    const moving = motion.labels().map(([, y, text, left, w]) => ({
      text, x: ground.x + (left - scene.view.x) * scale, y: ground.y + (y - 12 - scene.view.y) * scale, w: w * scale,
      h: 15 * scale, moves: true,
    }));
    return [...fixed.filter(({ text, w, h }) => text && w > 0 && h > 0), ...moving];
  }

  // read returns the picture; without texts it is cheap enough for every frame.
  function read({ texts: wanted = true } = {}) {
    const { mode, seq } = document.body.dataset;
    const { start, end, capacity } = scene.stations.get("ring").dataset;
    const top = $("#records tr"); // an empty table, at the beginning of a recording, says nothing else
    const sentence = said();
    return {
      cursor: Number(seq), newest: player.head, mode, pace: player.pace, behind: player.lag() / 1000,
      banner: { seq: number($("#sentence"), "data-told"), text: sentence.words }, said: sentence,
      table: { seq: top ? number(top, "data-seq") : Number(seq) },
      queues: queues(), shelves: shelves(), moving: motion.travelling(), ahead: ahead(), drawn: drawn(),
      pile: player.pile(),
      level: motion.level, ring: { start: Number(start), end: Number(end), capacity: Number(capacity) },
      held: stage.hold.waiting.map(
        (w) => ({ key: w.key ?? "", rv: String(w.rv || "0"), at: w.point, station: w.station, goroutine: w.goroutine })
      ),
      texts: wanted ? texts() : [],
    };
  }

  return { read };
}
