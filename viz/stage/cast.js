// The cast: the goroutines that every event has to pass, by name, each with what it does at the cursor, and how it spent the
// last second of the log: at work, held up by another one, or with nothing to do.

import { mark, put, say } from "../lib/dom.js";
import { milliseconds } from "../lib/times.js";
import { shareWords, showShare } from "./share.js";

const period = 1e9; // ns of the log that a share is of
const looked = 3000; // records that are looked through when another moment is on stage
const grace = 250e6; // ns that a wait lasts before a name changes for it

// roles by the name of the glyph: the goroutine, where its work begins and ends, and whose it is. What it waits for is
// in the waits of the picture, by the points that stand under its name in the table.
const roles = {
  caching: { lane: "cacher.startCaching", begin: ["ReflectorReceived"], end: ["IncomingSent", "RVAdvanced"], subject: () => "cacher" },
  dispatch: { lane: "cacher.dispatchEvents", begin: ["DispatchStarted"], end: ["DispatchFinished"] },
  reflect: { lane: "reflector.Run", begin: ["ReflectorReceived"], end: ["FIFOAdded"], subject: (scene) => scene.informer },
  process: { lane: "informer", begin: ["FIFOPopped"], end: ["Distributed"], subject: (scene) => scene.informer },
};
const states = {
  room: ["⇥", "waits for room"], taker: ["⇥", "waits for a receiver"], lock: ["⌛", "waits for a lock"], client: ["⇥", "waits for a client"],
  version: ["⌛", "waits for a version"], return: ["▶", "runs"], work: ["⇤", "has nothing to do"],
};

export function newCast(stage) {
  const { scene, infos, player } = stage;
  const cast = Object.entries(roles).map(([name, role]) => ({
    ...role, name, el: document.querySelector(`[data-role="${name}"]`), spans: [], begun: 0,
    windows: [], // of the log of which all is known, when the rest was summed up
    waits: [...infos.values()].filter((info) => info.waits && info.waits !== "work" && (info.lane ?? "").split(" ").includes(role.lane)),
    held: new Map(), // by the point that began a wait: since when
  }));

  const within = new Map(); // by point: whose time it says something of
  for (const one of cast) {
    for (const point of [...one.begin, ...one.end, ...one.waits.flatMap((info) => [info.name, ...(info.until ?? [])])]) {
      if (!within.has(point)) within.set(point, new Set());
      within.get(point).add(one);
    }
  }

  // summed is told of the newest records only: the shares are then of the time that they are from.
  function summed(list) {
    if (list.length === 0) return;
    const tail = list.slice(list.findLastIndex((r, i) => i === 0 || r.seq !== list[i - 1].seq + 1));
    for (const one of cast) {
      const end = one.windows.at(-1)?.to ?? 0;
      if (one.begun && end) one.spans.push({ from: one.begun, to: end, held: false });
      for (const from of one.held.values()) if (end) one.spans.push({ from, to: end, held: true });
      Object.assign(one, { begun: 0, held: new Map() });
      one.windows.push({ from: tail[0].t, to: tail.at(-1).t });
    }
    look(tail);
  }

  function look(list) {
    for (const r of list) {
      const whose = within.get(r.point);
      if (whose && stage.here(r)) for (const one of whose) note(one, r);
    }
  }

  function note(one, r) {
    const mine = !one.subject || r.subject === one.subject(scene);
    if (mine && one.begin.includes(r.point)) one.begun = r.t;
    const ended = mine && one.begun && one.end.includes(r.point);
    for (const info of one.waits) {
      const key = `${info.name} ${info.on === "input" ? r.subject : ""}`;
      if (r.point === info.name) one.held.set(key, r.t);
      else if (one.held.has(key) && info.until?.includes(r.point)) {
        one.spans.push({ from: one.held.get(key), to: r.t, held: true });
        one.held.delete(key);
      }
    }
    if (!ended) return;
    one.spans.push({ from: one.begun, to: r.t, held: false });
    one.begun = 0;
  }

  // shares returns which parts of the last second a goroutine worked and was held up, each between 0 and 1.
  function shares(one, now) {
    one.spans = one.spans.filter((s) => s.to > now - period);
    one.windows = one.windows.filter((w) => w.to > now - period);
    const known = one.windows.length > 0 ? Math.max(1, one.windows.reduce((n, w) => n + w.to - w.from, 0)) : period;
    const sum = (spans) => spans.reduce((n, s) => n + Math.max(0, Math.min(s.to, now) - Math.max(s.from, now - period)), 0) / known;
    const open = (from, held) => (from ? [{ from, to: now, held }] : []);
    const held = Math.min(1, sum(one.spans.filter((s) => s.held)) + sum([...one.held.values()].flatMap((from) => open(from, true))));
    const all = Math.min(1, sum(one.spans.filter((s) => !s.held)) + sum(open(one.begun, false)));
    return { held, busy: Math.max(0, all - held) };
  }

  // waitOf is what the goroutine waits for at the cursor, null if it does not wait, or has hardly begun to.
  function waitOf(one, res, now) {
    const mine = Object.values(res.waits).flat().filter((w) => {
      if (!w.lane.split(" ").includes(one.lane) || (one.subject && w.on !== "add" && w.subject && w.subject !== one.subject(scene))) return false;
      return w.kind === "work" || player.mode === "frozen" || now - w.t > grace;
    });
    return mine.find((w) => w.kind !== "work") ?? mine[0] ?? null;
  }

  function shown(res, state) {
    if (!res) return;
    for (const one of cast) {
      const { busy, held } = shares(one, state.t);
      const wait = waitOf(one, res, state.t);
      const [icon, words] = wait ? states[wait.kind] : one.begun ? ["▶", "runs"] : ["⇤", "has nothing to do"];
      const other = Boolean(wait) && wait.kind !== "work";
      mark(one.el, "held", other);
      say(one.el.querySelector("text"), `${icon} ${one.lane.replace("cacher.", "")}`);
      const since = other ? `, for ${milliseconds(Math.max(0, state.t - wait.t))}` : "";
      const share = shareWords({ busy, held });
      const all = `${one.lane} ${words}${since}${wait?.on ? ` at ${wait.on}${wait.subject ? ` of ${wait.subject}` : ""}` : ""}. The last second: ${share}.`;
      put(one.el, "aria-label", all);
      say(one.el.querySelector("title"), all);
      put(one.el, "data-busy", busy.toFixed(3));
      put(one.el, "data-held", held.toFixed(3));
      showShare(one.el.querySelectorAll("rect"), { busy, held });
    }
  }

  function forget() {
    for (const one of cast) Object.assign(one, { spans: [], windows: [], begun: 0, held: new Map() });
  }

  return {
    applied: look, summed, shown, resource: forget,
    jumped() {
      forget();
      look(player.tape.between(Math.max(1, player.cursor - looked), player.cursor + 1));
    },
  };
}
