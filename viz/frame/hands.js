// Hands: what buttons and single keys do that move through the log, follow, and act on the cluster.

import { objectKey } from "../log/fold.js";

export function newHands(stage) {
  const { player, follow, scene, infos, timeline } = stage;
  const $ = (selector) => document.querySelector(selector);
  const click = (selector, act) => $(selector).addEventListener("click", act);
  const press = (selector) => () => $(selector)?.closest("[hidden]") ?? $(selector)?.click();

  async function toAnomaly(direction) {
    const from = player.target();
    if (!stage.source) return (await player.stepTo(direction, stage.isFlag)) || stage.tell("no other anomaly");
    const flags = timeline.flags.filter((f) => (direction > 0 ? f.seq > from : f.seq < from));
    const next = direction > 0 ? flags[0] : flags.at(-1);
    return next ? player.seek(next.seq) : stage.tell("no other anomaly");
  }

  const hop = (r) => (follow.has() ? follow.matches(r) && (r.resource ?? "") === stage.resource : true);
  const toHop = async (direction) => (await player.stepTo(direction, hop)) || stage.tell("no other hop in the log");

  async function toStation(direction) {
    const station = (document.activeElement?.closest?.("[data-station]") ?? $(".station.told"))?.dataset.station;
    if (!station) return stage.tell("choose a station first: Tab walks through them");
    const match = (r) => infos.get(r.point).station === station && stage.here(r);
    return (await player.stepTo(direction, match)) || stage.tell(`nothing else at ${station} in the log`);
  }

  function toggleFollow(key) {
    if (!key || follow.key === key) follow.clear();
    else follow.set(key);
  }

  function toNth(event) {
    scene.root.querySelectorAll(".station")[(Number(event.key) + 9) % 10]?.focus();
  }

  const marked = () => scene.marked || objectKey(scene.store.at(-1)?.key ?? "");

  // by has what several ways lead to: a button, a key, or both.
  const by = {
    freeze: () => player.toggle(), on: () => player.step(1), back: () => player.step(-1),
    start: () => player.seek(player.oldest), live: () => player.live(), next: () => toAnomaly(1),
    before: () => toAnomaly(-1),
  };
  click("#freeze", by.freeze);
  click("#step-on", by.on);
  click("#step-back", by.back);
  click("#to-start", by.start);
  click("#live", by.live);
  click("#next-anomaly", by.next);
  click("#prev-anomaly", by.before);
  scene.root.addEventListener("click", (event) => {
    const key = stage.motion.keyAt(event.clientX, event.clientY, player.clock);
    if (!key) return;
    event.stopPropagation(); // the token is in front of the station
    toggleFollow(key);
  }, true);
  scene.root.addEventListener("click", (event) => {
    const key = event.target.closest("[data-key]")?.dataset.key;
    if (key) toggleFollow(key);
  });
  $("#records").addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    const cell = event.target.closest("td");
    if (cell?.cellIndex === 6 && cell.textContent) follow.set("", cell.textContent);
    else if (cell?.cellIndex === 0) player.seek(Number(row.dataset.seq));
    else if (row?.dataset.key) toggleFollow(row.dataset.key);
  });

  // The table is newest first: down is back in time.
  $("section.records").addEventListener("keydown", (event) => {
    const step = { ArrowDown: -1, ArrowUp: 1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    player.step(step);
  });

  return {
    keys: [
      [[" "], "freeze the picture, resume; play from here", by.freeze],
      [["."], "next record", by.on],
      [[","], "previous record", by.back],
      [[">"], "next hop of what is followed", () => toHop(1)],
      [["<"], "previous hop", () => toHop(-1)],
      [["]"], "next record at the station that has the focus", () => toStation(1)],
      [["["], "previous record there", () => toStation(-1)],
      [["n"], "next anomaly", by.next],
      [["p"], "previous anomaly", by.before],
      [["Home"], "to the start", by.start],
      [["End"], "to the end, live", by.live],
      [["f"], "follow the marked object, or stop following it", () => toggleFollow(follow.has() ? "" : marked())],
      [[..."1234567890"], "to 0: the first ten stations", toNth],
      [["c"], "create a pod", press("#create-pod")],
      [["m"], "modify the marked pod", press("#change-pod")],
      [["d"], "delete it", press("#delete-pod")],
      [["w"], "add a watcher", press("#add-watcher")],
      [["Escape"], "close what is open, remove the focus", () => stage.escape() ?? document.activeElement?.blur?.()],
    ],
    escape: () => follow.has() && (follow.clear(), true),
  };
}
