// The locks: a padlock on the border of each station that has one. The log says who had to wait for a lock and got it,
// and of every record whether a lock was held there. So a padlock is closed when a goroutine waits for it, and, where
// time stands, when the record at the cursor was reported under it. How long a lock is held in between is not written
// down.

import { label, mark, put, say } from "../lib/dom.js";

// padlocks: the station on which each stands, its name, where what is done under it is reported, the points of those
// who had to wait, and who holds it for writing.
const padlocks = [
  ["store", "WatchCache.mu", ["ring", "store"], "CacheLockWaited", "cacher.startCaching"],
  ["dispatch", "Cacher.mu", ["dispatch", "watcher", "incoming"], "CacherLockWaited", "cacher.dispatchEvents"],
  ["fifo", "the queue's lock", ["fifo"], "FIFOLockWaited", "reflector.Run"],
];

export function newLocks(stage) {
  const { player, infos, scene } = stage;
  const glyphs = padlocks.map(([station]) => scene.root.querySelector(`[data-lock="${station}"]`));

  function shown(res) {
    if (!res) return;
    const frozen = player.mode === "frozen";
    const r = frozen ? player.tape.get(player.cursor) : null;
    const info = r && stage.here(r) ? infos.get(r.point) : null;
    const all = Object.values(res.waits).flat().filter((w) => frozen || stage.blocked.lasting.has(w.seq));
    for (const [i, [, name, stations, waited, writer]] of padlocks.entries()) {
      const el = glyphs[i];
      const under = Boolean(info?.locked) && stations.includes(info.station);
      const waits = all.filter((w) => w.point === waited);
      put(el, "data-state", waits.length > 0 ? "waited" : under ? "held" : "free");
      mark(el, "closed", under || waits.length > 0);
      say(el.querySelector(".lock-word"), waits.length > 0 ? `${waits.length} wait` : under ? "W" : "");
      const holder = (info?.lane ?? writer).split(" ")[0];
      const now = waits.length > 0 ? `${waits[0].lane.split(" ")[0]} waits for it`
        : under ? `held for writing by ${holder}, at this record` : "no goroutine waits for it";
      const n = res.points[waited] ?? 0;
      label(el, `${name}: ${now}. So far goroutines have waited for it ${n === 1 ? "once" : `${n} times`}.`);
    }
  }

  return { shown };
}
