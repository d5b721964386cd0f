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
    const station = document.activeElement?.closest?.("[data-station]")?.dataset.station ?? $(".station.told")?.dataset.station;
    if (!station) return stage.tell("choose a station first: Tab walks through them");
    const match = (r) => infos.get(r.point).station === station && stage.here(r);
    return (await player.stepTo(direction, match)) || stage.tell(`nothing else at ${station} in the log`);
  }

  function toggleFollow(key) {
    if (!key || follow.key === key) follow.clear();
    else follow.set(key);
  }

  const marked = () => scene.marked || objectKey(scene.store.at(-1)?.key ?? "");

  click("#freeze", () => player.toggle());
  click("#step-on", () => player.step(1));
  click("#step-back", () => player.step(-1));
  click("#to-start", () => player.seek(player.oldest));
  click("#live", () => player.live());
  click("#next-anomaly", () => toAnomaly(1));
  click("#prev-anomaly", () => toAnomaly(-1));
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
      [[" "], "freeze the picture, resume; play from here", () => player.toggle()],
      [["."], "next record", () => player.step(1)],
      [[","], "previous record", () => player.step(-1)],
      [[">"], "next hop of what is followed", () => toHop(1)],
      [["<"], "previous hop", () => toHop(-1)],
      [["]"], "next record at the station that has the focus", () => toStation(1)],
      [["["], "previous record there", () => toStation(-1)],
      [["n"], "next anomaly", () => toAnomaly(1)],
      [["p"], "previous anomaly", () => toAnomaly(-1)],
      [["Home"], "to the start", () => player.seek(player.oldest)],
      [["End"], "to the end, live", () => player.live()],
      [["f"], "follow the marked object, or stop following it", () => toggleFollow(follow.has() ? "" : marked())],
      [["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"], "to 0: the first ten stations", (event) => scene.root.querySelectorAll(".station")[(Number(event.key) + 9) % 10]?.focus()],
      [["c"], "create a pod", press("#create-pod")],
      [["m"], "modify the marked pod", press("#change-pod")],
      [["d"], "delete it", press("#delete-pod")],
      [["w"], "add a watcher", press("#add-watcher")],
      [["Escape"], "close what is open, remove the focus", () => stage.escape() ?? document.activeElement?.blur?.()],
    ],
    escape: () => follow.has() && (follow.clear(), true),
  };
}
