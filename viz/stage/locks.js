// The locks: a padlock on the border of each station that has one. The log says who had to wait for a lock and got it,
// and of every record whether a lock was held there. So a padlock is closed when a goroutine waits for it, and, where
// time stands, when the record at the cursor was reported under it. How long a lock is held in between is not written
// down.

import { label, mark, put, say } from "../lib/dom.js";

// padlocks by the station on which the padlock stands: its name, where what is done under it is reported, and the
// points of those who had to wait.
const padlocks = {
  store: {
    name: "WatchCache.mu", stations: ["ring", "store"], waited: "CacheLockWaited", writer: "cacher.startCaching",
  },
  dispatch: {
    name: "Cacher.mu", stations: ["dispatch", "watcher", "incoming"], waited: "CacherLockWaited",
    writer: "cacher.dispatchEvents",
  },
  fifo: { name: "the queue's lock", stations: ["fifo"], waited: "FIFOLockWaited", writer: "reflector.Run" },
};

export function newLocks(stage) {
  const { player, infos, scene } = stage;
  const tabs = new Map([...scene.root.querySelectorAll("[data-lock]")].map((el) => [el.dataset.lock, el]));

  // underWhich is the record at the cursor if it was reported under this lock and time stands there.
  function recordUnder(lock) {
    const r = player.mode === "frozen" ? player.tape.get(player.cursor) : null;
    const info = r && infos.get(r.point);
    return info?.locked && lock.stations.includes(info.station) && stage.here(r) ? { r, info } : null;
  }

  function shown(res) {
    if (!res) return;
    for (const [name, lock] of Object.entries(padlocks)) {
      const el = tabs.get(name);
      const under = recordUnder(lock);
      const waits = Object.values(res.waits).flat()
        .filter((w) => w.point === lock.waited && (player.mode === "frozen" || stage.blocked.lasting.has(w.seq)));
      const holder = under ? (under.info.lane ?? lock.writer).split(" ")[0] : "";
      put(el, "data-state", waits.length > 0 ? "waited" : under ? "held" : "free");
      mark(el, "closed", Boolean(under) || waits.length > 0);
      say(el.querySelector(".lock-word"), waits.length > 0 ? `${waits.length} wait` : under ? "W" : "");
      const n = res.points[lock.waited] ?? 0;
      const now = waits.length > 0 ? `${waits[0].lane.split(" ")[0]} waits for it` : under
        ? `held for writing by ${holder}, at this record` : "no goroutine waits for it";
      label(el, `${lock.name}: ${now}. So far goroutines have waited for it ${n === 1 ? "once" : `${n} times`}.`);
    }
  }

  return { shown };
}
