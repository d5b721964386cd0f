// The crew: the goroutines of each lane, drawn where they stand, between the channels they take from and send to. A sign
// says what each does at the cursor: waits to send, waits to receive, runs. Below each lane a bar says how the last second
// went. Where there is room, the goroutine that is held up is named beside the queue.

import { cut, mark, put, say } from "../lib/dom.js";
import { newShare, shareWords, showShare } from "./share.js";

const looked = 3000; // records that are looked through when another moment is on stage
const grace = 250e6; // ns of the log that a wait lasts before it is shown, while time runs

// signs by state: a path around the origin, and the words.
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
// posts are the places of those who have no glyph of their own: by the point that begins their wait.
const posts = { Etcd3IncomingBlocked: "etcd3-incoming", Etcd3ResultBlocked: "etcd3-result", StreamBlocked: "stream" };

export function newCrew(stage) {
  const { scene, infos, player } = stage;
  const shares = new Map(); // by subject
  let whole = 0; // since when, in the log, every record is known
  const chips = new Map([...scene.root.querySelectorAll("[data-post]")].map((el) => [el.dataset.post, el]));

  function look(list) {
    for (const r of list) {
      const verbs = marks[r.point];
      if (!verbs || !r.subject || !stage.here(r)) continue;
      let share = shares.get(r.subject);
      if (!share) shares.set(r.subject, (share = newShare()));
      for (const verb of verbs) share[verb](r.t);
    }
  }

  // waitOf is the wait of a subject that a point began, if it has lasted.
  function waitOf(res, state, point, subject) {
    const w = res.waits[`${point} ${subject}`]?.[0];
    return w && (player.mode === "frozen" || state.t - w.t > grace) ? w : null;
  }

  function stand(el, name, state, who, why = "") {
    const node = el.querySelector(`[data-goroutine="${name}"]`);
    const [path, words] = signs[state] ?? ["", "has nothing to do"];
    put(node, "data-does", state);
    put(node.querySelector("path"), "d", path);
    const all = `${who} ${words}${why}`;
    put(node, "aria-label", all);
    say(node.querySelector("title"), all);
  }

  function showWatcher(el, id, res, state) {
    const full = waitOf(res, state, "ResultBlocked", id);
    const deaf = waitOf(res, state, "ResultReceived", id);
    const busy = full ? "send" : "receive";
    stand(el, "process", busy, `${id} processInterval`, full ? ": result is full" : " from input");
    stand(el, "serve", deaf ? "send" : "receive", `${id} WatchServer`, deaf ? ": its client does not read" : " from result");
    if (full || deaf) say(el.querySelector(".wants"), cut([full && "⇥ processInterval: result is full", deaf && "⇥ WatchServer: its client does not read"].filter(Boolean).join("  "), 66));
  }

  function showListener(el, id, res, state) {
    const subject = res.subjects[id];
    const calls = (subject.counts.HandlerCalled ?? 0) > (subject.counts.HandlerReturned ?? 0);
    const pending = subject.queues.pending?.len ?? 0;
    const blocked = waitOf(res, state, "AddBlocked", id);
    stand(el, "distribute", blocked ? "send" : "", `the informer's goroutine`, blocked ? ` ${id} a notification` : "");
    stand(el, "pop", "receive", `${id} pop`, " from add");
    stand(el, "offer", pending > 0 ? "send" : "", `${id} pop`, pending > 0 ? ` to next; ${pending} are pending` : "");
    stand(el, "run", calls ? "run" : "receive", `${id} run`, calls ? " the handler" : " from next");
  }

  function share(el, id, now, who) {
    const share = shares.get(id)?.of(now) ?? { busy: 0, held: 0 };
    const bar = el.querySelector(".time-share");
    showShare(bar.querySelectorAll("rect"), share);
    put(bar, "visibility", now - whole < 1e9 && whole > 0 ? "hidden" : "inherit"); // of what was summed up the log does not say it
    put(bar, "aria-label", `${who}, the last second: ${shareWords(share)}`);
    put(bar, "data-busy", share.busy.toFixed(3));
    put(bar, "data-held", share.held.toFixed(3));
  }

  function shown(res, state) {
    if (!res) return;
    for (const [id, el] of scene.lanes.watchers) {
      if (!el.lane?.shown || !res.subjects[id]) continue;
      showWatcher(el, id, res, state);
      share(el, id, state.t, `${id} processInterval`);
    }
    for (const [id, el] of scene.lanes.listeners) {
      if (!el.lane?.shown || !res.subjects[id]) continue;
      showListener(el, id, res, state);
      share(scene.lanes.handlers.get(id), id, state.t, `handler of ${id}`);
    }
    for (const id of shares.keys()) if (!res.subjects[id]) shares.delete(id);
    showPosts(res, state);
  }

  function showPosts(res, state) {
    const waits = Object.values(res.waits).flat();
    for (const [point, post] of Object.entries(posts)) {
      const w = waits.find((each) => each.point === point && (post !== "stream" || each.subject === scene.informer) && (player.mode === "frozen" || state.t - each.t > grace));
      const el = chips.get(post);
      mark(el, "here", Boolean(w));
      if (!w) continue;
      const who = infos.get(point).lane.split(" ")[0].split(".").at(-1);
      say(el.querySelector("text"), `⇥ ${cut(who, 13)}`);
      put(el, "aria-label", `${who} waits to send`);
    }
  }

  return {
    applied: look, shown,
    summed(list) {
      shares.clear();
      whole = list.at(-1)?.t ?? whole;
    },
    resource: () => shares.clear(),
    jumped() {
      shares.clear();
      whole = 0;
      look(player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1));
    },
  };
}
