// Modes: the stations as they are called in the mode that runs. A recording brings the switches that it was made with.

import { put, say } from "../lib/dom.js";

const words = {
  "etcd-watcher": {
    etcd3: {
      watcher: "watchChan", incoming: "incomingEventChan", decode: "decode", workers: "×10", result: "resultChan",
    },
    etcd2: {
      watcher: "etcdWatcher", incoming: "etcdIncoming", decode: "translate", workers: "one by one", result: "outgoing",
    },
  },
  fifo: { real: { fifo: "deltas, in order" }, delta: { fifo: "deltas, by object" } },
};

export function newModes(stage) {
  const { root } = stage.scene;

  function switches(now) {
    for (const [name, modes] of Object.entries(words)) {
      for (const [what, word] of Object.entries(modes[now?.[name]] ?? Object.values(modes)[0])) {
        say(root.querySelector(what === "watcher" ? '[data-station="etcd3"] .title' : `[data-named="${what}"]`), word);
      }
    }
    put(document.body, "data-server", now?.server ?? "");
    put(root, "data-etcd-watcher", now?.["etcd-watcher"] ?? "etcd3");
    stage.scene.inTurn = now?.dispatch === "sequential";
    stage.touch();
  }

  return { switches };
}
