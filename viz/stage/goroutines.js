// Goroutines, drawn where they stand: the four that every event has to pass by name (roles), those of each lane between
// the channels they take from and send to, and, while it is held up, one beside the etcd3 watch or the reflector
// (posts). A sign says what each does at the cursor. Bars say how it spent the last second of the log: at work, held up
// by another one, or with nothing to do.

import { cut, mark, put, say } from "../lib/dom.js";
import { milliseconds } from "../lib/times.js";

const period = 1e9; // ns of the log that a share is of
const width = 1e8; // of one bucket of it
const buckets = period / width;
const looked = 3000; // records that are looked through when another moment is on stage
const grace = 250e6; // ns of the log that a wait lasts before it is shown, while time runs

// newShare returns {begin(t), end(t), stop(t), go(t), of(now)}: the work begins and ends, and within it another
// goroutine stops this one and lets it go on. of returns {busy, held}, each between 0 and 1.
export function newShare() {
  const [busy, held] = [new Float64Array(buckets), new Float64Array(buckets)];
  let newest = 0; // the bucket that time has reached, counted from the beginning
  let begun = 0;
  let stopped = 0;

  // reach empties the buckets that time has passed since.
  function reach(t) {
    const now = Math.floor(t / width);
    for (let n = Math.max(newest + 1, now - buckets + 1); n <= now; n++) busy[n % buckets] = held[n % buckets] = 0;
    newest = Math.max(newest, now);
  }

  // add spreads a span over the buckets it lies in.
  function add(sums, from, to) {
    reach(to);
    for (let t = from ? Math.max(from, to - period) : to; t < to; ) {
      const n = Math.floor(t / width);
      const end = Math.min(to, (n + 1) * width);
      if (n > newest - buckets) sums[n % buckets] += end - t;
      t = end;
    }
    return 0;
  }

  function of(now) {
    reach(now);
    const sum = (sums, from) => sums.reduce((a, b) => a + b, from ? Math.min(period, now - from) : 0) / period;
    const stop = Math.min(1, sum(held, stopped));
    return { held: stop, busy: Math.max(0, Math.min(1, sum(busy, begun)) - stop) };
  }

  return {
    of, get runs() { return begun > 0; },
    begin: (t) => (begun = t), stop: (t) => (stopped = t),
    end: (t) => (begun = add(busy, begun, t)), go: (t) => (stopped = add(held, stopped, t)),
  };
}

// roles by the name of the glyph: the goroutine, where its work begins and ends, and of which subject. What it waits
// for is in the waits of the picture, by the points that stand under its name in the table.
const roles = {
  caching: {
    lane: "cacher.startCaching", begin: ["ReflectorReceived"], end: ["IncomingSent", "RVAdvanced"],
    subject: () => "cacher",
  },
  dispatch: { lane: "cacher.dispatchEvents", begin: ["DispatchStarted"], end: ["DispatchFinished"] },
  reflect: {
    lane: "reflector.Run", begin: ["ReflectorReceived"], end: ["FIFOAdded"], subject: (scene) => scene.informer,
  },
  process: { lane: "informer", begin: ["FIFOPopped"], end: ["Distributed"], subject: (scene) => scene.informer },
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
// marks by point: what it says of the time of a goroutine of its subject.
const marks = {
  InputReceived: ["begin"], ResultBlocked: ["stop"], ResultSent: ["go", "end"], WatcherFiltered: ["end"],
  HandlerCalled: ["begin"], HandlerReturned: ["end"],
};
// posts by the point that begins the wait.
const posts = { Etcd3IncomingBlocked: "etcd3-incoming", Etcd3ResultBlocked: "etcd3-result", StreamBlocked: "stream" };

const lastPart = (lane) => lane.split(" ")[0].split(".").at(-1);
const percent = (share) => (share > 0 && share < 0.01 ? "<1 %" : `${Math.round(share * 100)} %`);
const wordsOf = ({ busy, held }) =>
  `${percent(busy)} at work, ${percent(held)} held up, ${percent(Math.max(0, 1 - busy - held))} idle`;

export function newGoroutines(stage) {
  const { scene, infos, player } = stage;
  const shares = new Map(); // by subject
  const chips = new Map([...scene.root.querySelectorAll("[data-post]")].map((el) => [el.dataset.post, el]));
  const cast = Object.entries(roles).map(([name, role]) => ({
    ...role, el: document.querySelector(`[data-role="${name}"]`), share: newShare(), held: new Set(),
    waits: [...infos.values()]
      .filter(({ waits, lane = "" }) => waits && waits !== "work" && lane.split(" ").includes(role.lane)),
  }));
  let whole = 0; // since when, in the log, every record is known; 0: always

  function forget(since = 0) {
    shares.clear();
    for (const one of cast) [one.share, one.held] = [newShare(), new Set()];
    whole = since;
  }

  function look(list) {
    for (const r of list) {
      if (!stage.here(r)) continue;
      for (const one of cast) note(one, r);
      if (!marks[r.point] || !r.subject) continue;
      if (!shares.has(r.subject)) shares.set(r.subject, newShare());
      for (const verb of marks[r.point]) shares.get(r.subject)[verb](r.t);
    }
  }

  // note notes what a record says of the time of a role. It may wait at several queues at once.
  function note(one, r) {
    const mine = !one.subject || r.subject === one.subject(scene);
    if (mine && one.begin.includes(r.point)) one.share.begin(r.t);
    for (const info of one.waits) {
      const key = `${info.name} ${info.on === "input" ? r.subject : ""}`;
      if (r.point === info.name) {
        if (one.held.size === 0) one.share.stop(r.t);
        one.held.add(key);
      } else if (info.until?.includes(r.point) && one.held.delete(key) && one.held.size === 0) one.share.go(r.t);
    }
    if (mine && one.end.includes(r.point)) one.share.end(r.t);
  }

  // lasts reports whether a wait is more than a hand-over that takes a moment.
  const lasts = (w, state) => player.mode === "frozen" || state.t - w.t > grace;

  // waitOf is what a role waits for at the cursor, undefined if it does not wait, or has hardly begun to.
  function waitOf(one, waits, state) {
    const mine = waits.filter((w) => {
      const other = one.subject && w.on !== "add" && w.subject && w.subject !== one.subject(scene);
      return w.lane.split(" ").includes(one.lane) && !other && (w.kind === "work" || lasts(w, state));
    });
    return mine.find((w) => w.kind !== "work") ?? mine[0];
  }

  function tell(el, text) {
    put(el, "aria-label", text);
    say(el.querySelector("title"), text);
  }

  // showShare draws a share into three bars: the whole, what is work, what is held up. Of what was summed up the log
  // does not tell it.
  function showShare(el, bars, share, now) {
    const [track, work, stop] = bars;
    const full = Number(track.getAttribute("width"));
    const [w, h] = [share.busy, share.held].map((part) => (part > 0 ? Math.max(1.5, part * full) : 0));
    work.setAttribute("width", w.toFixed(1));
    stop.setAttribute("width", h.toFixed(1));
    stop.setAttribute("x", (Number(track.getAttribute("x")) + w).toFixed(1));
    const known = whole === 0 || now - whole >= period;
    for (const bar of bars) put(bar, "visibility", known ? "inherit" : "hidden");
    put(el, "data-busy", share.busy.toFixed(3));
    put(el, "data-held", share.held.toFixed(3));
  }

  function showRole(one, waits, state) {
    const share = one.share.of(state.t);
    const wait = waitOf(one, waits, state);
    const [icon, words] = states[wait?.kind ?? (one.share.runs ? "return" : "work")];
    const other = Boolean(wait) && wait.kind !== "work";
    mark(one.el, "held", other);
    say(one.el.querySelector("text"), `${icon} ${one.lane.replace("cacher.", "")}`);
    const since = other ? `, for ${milliseconds(Math.max(0, state.t - wait.t))}` : "";
    const where = wait?.on ? ` at ${wait.on}${wait.subject ? ` of ${wait.subject}` : ""}` : "";
    tell(one.el, `${one.lane} ${words}${since}${where}. The last second: ${wordsOf(share)}.`);
    showShare(one.el, one.el.querySelectorAll("rect"), share, state.t);
  }

  function stand(el, name, does, who, why = "") {
    const node = el.querySelector(`[data-goroutine="${name}"]`);
    const [path, words] = signs[does] ?? ["", "has nothing to do"];
    put(node, "data-does", does);
    put(node.querySelector("path"), "d", path);
    tell(node, `${who} ${words}${why}`);
  }

  function showWatcher(el, id, blocked) {
    const [full, deaf] = [blocked("ResultBlocked", id), blocked("ResultReceived", id)];
    stand(el, "process", full ? "send" : "receive", `${id} processInterval`, full ? ": result is full" : " from input");
    const client = deaf ? ": its client does not read" : " from result";
    stand(el, "serve", deaf ? "send" : "receive", `${id} WatchServer`, client);
    const words = [full && "⇥ processInterval: result is full", deaf && "⇥ WatchServer: its client does not read"];
    if (full || deaf) say(el.querySelector(".wants"), cut(words.filter(Boolean).join("  "), 66));
  }

  function showListener(el, id, { counts, queues }, blocked) {
    const calls = (counts.HandlerCalled ?? 0) > (counts.HandlerReturned ?? 0);
    const pending = queues.pending?.len ?? 0;
    const full = blocked("AddBlocked", id);
    stand(el, "distribute", full ? "send" : "", "the informer's goroutine", full ? ` ${id} a notification` : "");
    stand(el, "pop", "receive", `${id} pop`, " from add");
    stand(el, "offer", pending > 0 ? "send" : "", `${id} pop`, pending > 0 ? ` to next; ${pending} are pending` : "");
    stand(el, "run", calls ? "run" : "receive", `${id} run`, calls ? " the handler" : " from next");
  }

  function showLane(el, id, who, now) {
    const bar = el.querySelector(".time-share");
    const share = shares.get(id)?.of(now) ?? { busy: 0, held: 0 };
    put(bar, "aria-label", `${who}, the last second: ${wordsOf(share)}`);
    showShare(bar, bar.querySelectorAll("rect"), share, now);
  }

  function shown(res, state) {
    if (!res) return;
    const waits = Object.values(res.waits).flat();
    const blocked = (point, id) => res.waits[`${point} ${id}`]?.some((w, i) => i === 0 && lasts(w, state));
    for (const one of cast) showRole(one, waits, state);
    const drawn = (lanes) => [...lanes].filter(([id, el]) => el.lane?.shown && res.subjects[id]);
    for (const [id, el] of drawn(scene.lanes.watchers)) {
      showWatcher(el, id, blocked);
      showLane(el, id, `${id} processInterval`, state.t);
    }
    for (const [id, el] of drawn(scene.lanes.listeners)) {
      showListener(el, id, res.subjects[id], blocked);
      showLane(scene.lanes.handlers.get(id), id, `handler of ${id}`, state.t);
    }
    for (const id of shares.keys()) if (!res.subjects[id]) shares.delete(id);
    for (const [point, post] of Object.entries(posts)) {
      const mine = (w) => post !== "stream" || w.subject === scene.informer;
      const waits1 = waits.some((w) => w.point === point && mine(w) && lasts(w, state));
      const el = chips.get(post);
      mark(el, "here", waits1);
      if (!waits1) continue;
      const who = lastPart(infos.get(point).lane);
      say(el.querySelector("text"), `⇥ ${cut(who, 13)}`);
      put(el, "aria-label", `${who} waits to send`);
    }
  }

  return {
    shown, applied: look, resource: () => forget(),
    // The newest records after a sum follow on each other: what they tell of is known.
    summed(list) {
      forget(list.at(-1)?.t ?? whole);
      look(list.slice(list.findLastIndex((r, i) => i === 0 || r.seq !== list[i - 1].seq + 1)));
    },
    jumped() {
      forget();
      look(player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1));
    },
  };
}
