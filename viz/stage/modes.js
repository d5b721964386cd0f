// Modes: the stations as they are called in the mode that runs: a text of the scenery has its words for another mode in
// an attribute of that name. A recording brings the switches that it was made with.

import { put, say } from "../lib/dom.js";

export function newModes(stage) {
  const { root } = stage.scene;
  const title = root.querySelector('[data-station="etcd3"] .title');
  title.dataset.etcd2 = "etcdWatcher";
  const named = [title, ...root.querySelectorAll("[data-named]")].map((el) => [el, el.textContent]);

  function switches(now) {
    const modes = Object.values(now ?? {});
    for (const [el, words] of named) say(el, modes.map((mode) => el.dataset[mode]).find(Boolean) ?? words);
    put(document.body, "data-server", now?.server ?? "");
    put(root, "data-etcd-watcher", now?.["etcd-watcher"] ?? "etcd3");
    stage.scene.grouped = now?.fifo === "delta";
    stage.scene.inTurn = now?.dispatch === "sequential";
    stage.touch();
  }

  return { switches };
}
