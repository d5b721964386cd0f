// The detail: the path (stations, queues, objects), or the machinery, too: locks, the budget, goroutines, gates, the
// ring's hands, versions in brackets. What an attribute says it says in either. And the ring is quiet unless something
// happens in it.

import { $, address, mark, put, when } from "../lib/dom.js";

const awake = 1600; // ms of the stage's clock after something has happened in the ring
const details = ["path", "machinery"];

export function newDetail(stage) {
  const { player, infos, scene } = stage;
  const button = $("#detail");
  const ring = scene.stations.get("ring");
  let stirred = -Infinity; // when something happened in the ring, by the stage's clock

  // setDetail shows one of the two; the address says which, so that a link to this moment does.
  function setDetail(name) {
    if (!details.includes(name)) return;
    put(document.body, "data-detail", name);
    put(button, "aria-pressed", String(name === "machinery"));
  }

  function turn() {
    setDetail(document.body.dataset.detail === "path" ? "machinery" : "path");
    address({ detail: document.body.dataset.detail === "path" ? "" : "machinery" });
  }

  function look(list) {
    if (list.some((r) => infos.get(r.point).station === "ring" && stage.here(r))) stirred = player.clock;
  }

  when(button, "click", turn);
  const asked = new URLSearchParams(location.search).get("detail");
  setDetail(asked ?? (document.body.classList.contains("figure") ? "machinery" : "path"));
  return {
    applied: look,
    jumped: () => (stirred = -Infinity),
    draw: () => mark(ring, "quiet", player.clock - stirred > awake),
    keys: [[["k"], "the machinery: locks, budget, goroutines, hands; or the path alone", turn]],
  };
}
