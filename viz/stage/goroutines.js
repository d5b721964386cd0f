// Goroutines, drawn where they stand: the four that every event has to pass by name (roles), those of each lane between
// the channels they take from and send to, and, while it is held up, one beside the etcd3 watch or the reflector
// (posts). A sign says what each does at the cursor.

import { $, cut, label, mark, put, say } from "../lib/dom.js";
import { milliseconds } from "../lib/times.js";

// roles by the name of the glyph: the goroutine, and of which subject. What it waits for is in the waits of the
// picture, by the points that stand under its name in the table.
const roles = {
  caching: { lane: "cacher.startCaching", subject: () => "cacher" },
  dispatch: { lane: "cacher.dispatchEvents" },
  reflect: { lane: "reflector.Run", subject: (scene) => scene.informer },
  process: { lane: "informer", subject: (scene) => scene.informer },
};
// states of a role by the kind of its wait: an icon, and the words.
const states = {
  room: ["⇥", "waits for room"], taker: ["⇥", "waits for a receiver"], lock: ["⌛", "waits for a lock"],
  client: ["⇥", "waits for a client"], version: ["⌛", "waits for a version"], return: ["▶", "runs"],
  work: ["⇤", "has nothing to do"],
};
// signs of a lane's goroutines by state: a path around the origin, and the words.
const signs = {
  send: ["M-3.6 0H1.6M-0.8 -2.4L1.8 0L-0.8 2.4M3.8 -3.4V3.4", "waits to send"],
  receive: ["M3.6 0H-1.6M0.8 -2.4L-1.8 0L0.8 2.4M-3.8 -3.4V3.4", "waits to receive"],
  run: ["M-2.2 -3.6L3.6 0L-2.2 3.6Z", "runs"],
};
// posts by the point that begins the wait.
const posts = { Etcd3IncomingBlocked: "etcd3-incoming", Etcd3ResultBlocked: "etcd3-result", StreamBlocked: "stream" };

export function newGoroutines(stage) {
  const { scene, infos } = stage;
  const chips = new Map([...scene.root.querySelectorAll("[data-post]")].map((el) => [el.dataset.post, el]));
  const cast = Object.entries(roles).map(([name, role]) => ({ ...role, el: $(`[data-role="${name}"]`) }));

  const lasts = (w) => stage.blocked.lasting.has(w.seq);

  function showRole(one, waits, state) {
    const mine = waits.filter((w) => {
      const other = one.subject && w.on !== "add" && w.subject && w.subject !== one.subject(scene);
      return w.lane.split(" ").includes(one.lane) && !other && (w.kind === "work" || lasts(w));
    });
    const wait = mine.find((w) => w.kind !== "work") ?? mine[0]; // undefined if it hardly waits
    const [icon, words] = states[wait?.kind] ?? ["", "waits for no other one"];
    const other = Boolean(wait) && wait.kind !== "work";
    mark(one.el, "held", other);
    say(one.el.querySelector("text"), `${icon} ${one.lane.replace("cacher.", "")}`.trim());
    const since = other ? `, for ${milliseconds(Math.max(0, state.t - wait.t))}` : "";
    const where = wait?.on ? ` at ${wait.on}${wait.subject ? ` of ${wait.subject}` : ""}` : "";
    label(one.el, `${one.lane} ${words}${since}${where}.`);
  }

  function stand(el, name, does, who, why = "") {
    const node = el.querySelector(`[data-goroutine="${name}"]`);
    const [path, words] = signs[does] ?? ["", "has nothing to do"];
    put(node, "data-does", does);
    put(node.querySelector("path"), "d", path);
    label(node, `${who} ${words}${why}`);
  }

  function showWatcher(id, blocked) {
    const el = scene.lanes.watchers.get(id);
    const [full, deaf] = [blocked("ResultBlocked", id), blocked("ResultReceived", id)];
    stand(el, "process", full ? "send" : "receive", `${id} processInterval`, full ? ": result is full" : " from input");
    const client = deaf ? ": its client does not read" : " from result";
    stand(el, "serve", deaf ? "send" : "receive", `${id} WatchServer`, client);
  }

  function showListener(id, { counts, queues }, blocked) {
    const el = scene.lanes.listeners.get(id);
    const calls = (counts.HandlerCalled ?? 0) > (counts.HandlerReturned ?? 0);
    const pending = queues.pending?.len ?? 0;
    const full = blocked("AddBlocked", id);
    stand(el, "distribute", full ? "send" : "", "the informer's goroutine", full ? ` ${id} a notification` : "");
    stand(el, "pop", "receive", `${id} pop`, " from add");
    stand(el, "offer", pending > 0 ? "send" : "", `${id} pop`, pending > 0 ? ` to next; ${pending} are pending` : "");
    stand(el, "run", calls ? "run" : "receive", `${id} run`, calls ? " the handler" : " from next");
  }

  function shown(res, state) {
    if (!res) return;
    const waits = Object.values(res.waits).flat();
    const blocked = (point, id) => res.waits[`${point} ${id}`]?.some((w, i) => i === 0 && lasts(w));
    for (const one of cast) showRole(one, waits, state);
    for (const [id, { lane }] of scene.lanes.watchers) if (lane?.shown && res.subjects[id]) showWatcher(id, blocked);
    for (const [id, { lane }] of scene.lanes.listeners) {
      if (lane?.shown && res.subjects[id]) showListener(id, res.subjects[id], blocked);
    }
    for (const [point, post] of Object.entries(posts)) {
      const mine = (w) => w.point === point && (post !== "stream" || w.subject === scene.informer);
      const [el, there] = [chips.get(post), waits.some((w) => mine(w) && lasts(w))];
      mark(el, "here", there);
      const who = infos.get(point).lane.split(" ")[0].split(".").at(-1);
      if (there) say(el.querySelector("text"), `⇥ ${cut(who, 13)}`);
      if (there) put(el, "aria-label", `${who} waits to send`);
    }
  }

  return { shown };
}
