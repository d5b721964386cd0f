// Ages: the stations as they are called in the age that runs. A recording brings the switches that it was made with.

import { put, say } from "../frame/dom.js";

const words = {
  "etcd-watcher": {
    etcd3: { watcher: "watchChan", incoming: "incomingEventChan", decode: "decode", workers: "×10", result: "resultChan" },
    etcd2: { watcher: "etcdWatcher", incoming: "etcdIncoming", decode: "translate", workers: "one by one", result: "outgoing" },
  },
  fifo: { real: { fifo: "deltas, in order" }, delta: { fifo: "deltas, by object" } },
};

export const ages = {
  name: "ages",
  needs: ["scene", "touch"],
  join: newAges,
};

function newAges(stage) {
  const { root } = stage.scene;

  function switches(now) {
    for (const [name, ages] of Object.entries(words)) {
      for (const [what, word] of Object.entries(ages[now?.[name]] ?? Object.values(ages)[0])) {
        say(root.querySelector(what === "watcher" ? '[data-station="etcd3"] .title' : `[data-age="${what}"]`), word);
      }
    }
    put(root, "data-etcd-watcher", now?.["etcd-watcher"] ?? "etcd3");
    stage.scene.inTurn = now?.dispatch === "sequential";
    stage.touch();
  }

  return { switches };
}
