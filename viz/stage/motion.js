// @ts-nocheck
// Motion: a change as a token that travels. The player (timeline/player.js) says which records are told, and when: a
// hop is a few records of one change, planned, launched and landed. A token is on its way before its record is folded,
// or sets out with it (departs). Between two hops it stands where its last record left it: in a queue, where the pipe
// draws it, or at a station, where it is drawn here.
//
// Above twenty changes a second nothing travels: the ways have stripes (flow.js), and singly is drawn only what must
// not be overlooked. The counters are the fold's and exact whatever is drawn here.

import { newBrush } from "./brush.js";
import { newSheet } from "../dom/canvas.js";
import { mark } from "../dom/dom.js";
import { isAnomaly, objectKey } from "../log/fold.js";
import { flowPeriod, newFlow } from "./flow.js";
import { brief, heldIn, shortKey } from "./pipe.js";
import { changeOf, departs, newSteps } from "./steps.js";
import { shapeOf } from "./tokens.js";
import { along, endOf, legsOf, lengthOf } from "./way.js";

const pace = 2.4; // units a millisecond, at reading pace
const shortest = 58; // ms of one hop
const longest = 330;
const slow = 800; // ms of what must not be overlooked: a watcher that is closed, a request that falls
const trailLasts = 380; // ms
const few = 20; // changes a second, at most, that travel
const calm = 0.7; // … and again when there are so much fewer
const patience = 2000; // … for so many ms
const unnamed = { BOOKMARK: "bookmark", ERROR: "error" }; // what is not about an object
const half = 14; // units of a token without a name
const near = 26; // units: a copy that is so near to its next place is there
const kept = 48; // copies that stand, at most
const remembered = 400; // copies that have gone: what is reported late does not bring them back

// newMotion draws records of what is on stage (here).
export function newMotion(canvas, scene, { infos, follow, here }) {
  const sheet = newSheet(canvas);
  const { ctx } = sheet;
  const brush = newBrush(ctx, scene);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const orders = new Map([...infos.keys()].map((name, i) => [name, i])); // the table is in path order
  const tokens = new Map(); // by copy: where each copy of a change is
  const gone = new Map(); // by copy: how far it had come
  let air = null; // the plan that is on its way: {moves, t0, t1}
  let trails = []; // the plans that have landed a moment ago, and what is drawn singly of a stream
  let making = null; // the plan that is being made
  const flow = newFlow(scene);
  let stream = false;
  let hushed = 0; // since when there is less
  let painted = false;
  let stale = true;
  let drawnAt = 0;
  let [clock, stood, since] = [0, false, 0]; // of the frame before, whether it stood, and since when
  let nexts = []; // what is drawn of the ways on which what stands goes on

  function resize() {
    sheet.fit();
    stale = true;
  }

  // ---- plans

  // go adds to the plan at hand the way of a copy. Path is in points of the wide stage, and begins where the copy is if
  // it is not known. The two sides of a channel write down their moments in either order; on the path there is only
  // one, so a way to before where the copy has been adds none.
  function go(copy, path, look = {}) {
    const { r, moves } = making;
    if (scene.plain && !r.key) return; // a bookmark
    const info = infos.get(r.point);
    const order = orders.get(look.as ?? r.point);
    const before = moves.get(copy) ?? tokens.get(copy);
    if (r.key && !look.fresh && order < (before?.order ?? gone.get(copy) ?? 0)) return;
    const parent = before ?? moves.get(look.takes) ?? tokens.get(look.takes);
    const places = path.map(scene.placed);
    const type = r.type ?? (before ?? parent)?.type;
    const move = moves.get(copy) ?? { copy, points: [parent && !parent.queue ? [parent.x, parent.y] : places[0]] };
    if (parent && move !== before && !parent.queue) places.shift();
    move.points.push(...places);
    const [x, y] = endOf(move.points.at(-1));
    const queue = info.op === "send" || info.op === "push" ? info.queue : "";
    Object.assign(move, {
      key: look.key ?? objectKey(r.key ?? ""), rv: r.rv ?? "0", owner: r.subject ?? "",
      point: r.point, seq: r.seq, order, x, y, at: endOf(path.at(-1)), queue, in: queue || (look.at ?? info.station),
      station: info.station, ends: look.ends ?? false, takes: look.takes ?? move.takes,
      colour: look.colour ?? "moving", type, shape: shapeOf(type), followed: follow.matches(r),
      departs: departs(info, r), change: changeOf(r),
      label: look.label ?? (r.key ? brief(shortKey(r.key), 18) : unnamed[r.type] ?? ""),
    });
    making.slow ||= look.slow ?? false;
    moves.delete(copy);
    moves.set(copy, move);
  }

  // end takes a copy off the stage: what it was made for is done.
  const end = (copy) => making.ends.push(copy);
  const where = (copy) => (making.moves.get(copy) ?? tokens.get(copy))?.at;

  // plan returns the ways of records, oldest first, as one hop: {moves, ms, length}. Res is the picture before them, if
  // it matters where in its queue a token is.
  function plan(list, res) {
    const ours = list.filter(here);
    making = { moves: new Map(), ends: [], slow: false, r: null, res, seq: ours.at(-1)?.seq ?? 0 };
    for (const r of ours) {
      making.r = r;
      steps[r.point]?.(r);
    }
    const made = making;
    made.moves = [...made.moves.values()];
    for (const move of made.moves) {
      move.legs = legsOf(move.points);
      move.length = lengthOf(move.legs);
    }
    made.length = Math.max(0, ...made.moves.map((move) => move.length));
    made.ms = made.slow ? slow : made.length < 1 ? 0 : Math.min(longest, Math.max(shortest, made.length / pace));
    return made;
  }

  // launch lets a plan run from t0 to t1: at its end, and not before, its tokens are where its records say. Up to the
  // record folded, they are folded already.
  function launch(made, t0, t1, folded) {
    air = Object.assign(made, { t0, t1 });
    scene.stale = true; // etcd has its number
    for (const move of made.moves) {
      move.departs &&= move.seq <= folded;
      for (const id of [move.copy, move.takes]) tokens.delete(id);
    }
  }

  function drop(copy, upTo = 0) {
    const order = Math.max(upTo, tokens.get(copy)?.order ?? gone.get(copy) ?? 0);
    tokens.delete(copy);
    gone.delete(copy);
    gone.set(copy, order);
    if (gone.size > remembered) gone.delete(gone.keys().next().value);
  }

  // land brings a plan to its end: its tokens stand, or leave the stage.
  function land(made, now) {
    if (made === air) air = null;
    for (const move of made.moves) {
      if (move.length >= 1 && made.t1) trails.push({ ...move, t0: made.t0, done: made.t1, t1: made.t1 + trailLasts });
      if (move.takes) drop(move.takes, move.order); // what led there may be reported later
      tokens.delete(move.copy);
      tokens.set(move.copy, move);
      if (move.ends) drop(move.copy);
    }
    for (const copy of made.ends) drop(copy);
    while (tokens.size > kept) drop(tokens.keys().next().value);
    stale = true;
  }

  // closed takes off the stage what was in the hands of those who have gone.
  function closed(list) {
    for (const r of list) {
      if (infos.get(r.point).op !== "close" && r.point !== "StreamEnded") continue;
      for (const t of [...tokens.values()]) if (t.owner === r.subject) drop(t.copy);
    }
  }

  const stand = (list) => list.forEach((r) => land(plan([r]), 0));

  // pass lets what is on the stage go on at once: its change is not told any more.
  function pass(list) {
    const there = new Set([...tokens.values()].map((t) => t.change));
    if (there.size > 0) stand(list.filter((r) => there.has(changeOf(r))));
  }

  // under reports whether a copy of a change has yet to go on by itself: it is not in a queue, and has not come to its
  // end.
  const under = (change) => [...tokens.values()].some((t) => t.change === change && !t.queue);

  // travelling is what is on its way.
  function travelling() {
    const whole = ([x, y]) => [Math.round(x), Math.round(y)];
    return (air?.moves ?? []).map((m) => ({
      key: m.key, rv: m.rv, owner: m.owner, from: whole(m.points[0]), to: [m.x, m.y].map(Math.round),
      station: m.station, point: m.point, seq: m.seq, departs: m.departs,
    }));
  }

  // standing is every token that is drawn here and does not move, and flying those that do, with their places.
  const standing = () => [...tokens.values()].filter((t) => !t.queue);
  const flying = (now) => (air?.moves ?? []).map((m) => ({ ...m, now: spot(m, now) }));

  // named are the told changes that wait in queues, as the pipes draw them.
  function named() {
    const waiting = [...tokens.values()].filter((t) => t.queue);
    return waiting.length === 0 ? [] : heldIn(scene).flatMap((held) => {
      if (held.again) return []; // its name stands beside the next one
      const is = (t) => t.queue === held.in && t.key === held.key && t.rv === held.rv;
      const t = waiting.find((each) => is(each) && (!held.owner || held.owner === each.owner));
      return t ? [{ ...t, ...held, label: t.label }] : [];
    });
  }

  const share = (now) => (still.matches ? 0 : Math.min(1, Math.max(0, (now - air.t0) / Math.max(1, air.t1 - air.t0))));
  // done is how far on its way a token is. Where time stands, one that a queue does not count yet stands before it.
  const done = ({ legs, length, queue }, now) => {
    const door = stood && queue ? Math.max(0, length - legs.at(-1).length - half) : length;
    return Math.min(door, share(now) * length);
  };
  const spot = (move, now) => along(move.legs, done(move, now));

  // at is where a change is: its newest copy, in the air or not.
  function at(change, now) {
    const [flies] = flying(now).slice(-1);
    const stands = [...tokens.values()].findLast((t) => t.change === change);
    return flies?.now ?? (stands && [stands.x, stands.y]);
  }

  // keyAt returns the object whose token is drawn at a point of the window, "" if none is.
  function keyAt(x, y, now) {
    const box = canvas.getBoundingClientRect();
    const scale = box.width / scene.view.w;
    const [px, py] = [scene.view.x + (x - box.x) / scale, scene.view.y + (y - box.y) / scale];
    const there = [...flying(now), ...standing().map((t) => ({ ...t, now: [t.x, t.y] }))];
    const hit = (t) => Math.abs(t.now[1] - py) < 16 && Math.abs(t.now[0] - px) < 20 + 5 * t.label.length;
    return there.find(hit)?.key ?? "";
  }

  // ---- streams

  // rated takes notice of how many changes arrive in a second, and reports whether they are a stream.
  function rated(rate, now) {
    if (rate > few) stream = true;
    if (rate > few * calm) hushed = 0;
    else if (stream) hushed ||= now;
    if (hushed && now - hushed > patience) [stream, hushed] = [false, 0];
    return stream;
  }

  // records takes notice of what has been folded in a stream. res is the picture after it.
  function records(list, now, res) {
    tokens.clear();
    if (stream && res) flow.look(res, now);
    for (const r of list) {
      if (!isAnomaly(infos.get(r.point), r) && !follow.matches(r)) continue;
      for (const move of plan([r], res).moves) {
        if (move.length >= 1) trails.push({ ...move, t0: now, done: now, t1: now + trailLasts, single: true });
      }
    }
  }

  // ---- drawing

  function draw(now, pile = 0, coming = () => []) {
    const stands = now === clock; // the stage's clock does: what is in the air is shown whole, with its name
    const turns = stands !== stood;
    if (turns) since = performance.now();
    const faded = now + (stands ? performance.now() - since : 0); // trails do not stand
    trails = trails.filter((each) => faded < each.t1);
    const moves = Boolean(air || trails.length > 0 || stream);
    [clock, stood] = [now, stands];
    if (!moves && !stale && !painted && !turns && pile === draw.pile) return;
    if (stream && !air && !stale && now - drawnAt < flowPeriod) return;
    nexts = stands && !stream ? ahead(...coming()) : [];
    [drawnAt, painted, draw.pile, stale] = [now, moves, pile, false];
    brush.clean();
    const moved = flying(now);
    const singles = trails.filter((each) => each.single);
    // What the dispatcher holds has the name: its copies are marks until they are in their lanes.
    const split = (m, [x]) => m.point === "InputSent" && moved.length > 1 && x < scene.boxOf("watcher").X;
    const waiting = stream ? [] : named();
    // On the first view one token has a name: other copies are marks, too.
    const { watchers, listeners } = scene.places;
    const copied = (m) => (watchers.lanes.get(m.owner) ?? listeners.lanes.get(m.owner))?.index > 0;
    const hero = scene.plain && [...moved, ...standing(), ...waiting].find((m) => !copied(m));
    // What has left result stands beside the flag of a story's client, which has to be read.
    const flagged = (m) => !stands && m.point === "ResultReceived"
      && scene.told?.members.some(({ subject }) => subject === m.owner);
    const bare = (m, at) => split(m, at) || flagged(m) || (scene.plain && m !== hero);
    const called = (m, at) => (bare(m, at) ? { ...m, label: "" } : m);
    // Where time stands they are read: none is drawn on a word, on another one, or on a queue that does not count it.
    const taken = stands && !stream ? [...scene.words(() => true), ...scene.wells()] : [];
    const free = (box, wells = true) => !taken.some((each) => (wells || !each.well) && meet(box, each));
    function lay(m, at = [m.x, m.y]) {
      if (taken.length === 0) return [brush.pill(called(m, at), at)];
      const made = brush.stand({ ...called(m, at), named: m.change === scene.named }, at, free);
      taken.push(...made.map(({ box }) => box));
      return made;
    }
    const placed = [...singles, ...standing()].flatMap((t) => lay(t));
    const pills = moved.flatMap((m) => lay(m, m.now));
    if (stands) placed.unshift(...pills);
    const [hx, hy] = scene.place(scene.geometry.anchors.dispatch);
    const covered = [...pills, ...placed].some(({ box }) => meet(box, [hx - 20, hy, hx + 20, hy]));
    mark(scene.stations.get("dispatch"), "covered", covered); // its arrow would be drawn over the token
    const tails = [
      ...trails.map((each) => tail(each, each.t0, each.done, faded)),
      ...moved.map((m) => tail(m, air.t0, air.t1, faded, done(m, now))),
    ].filter(Boolean);
    const dotted = nexts.map((way) => stretch(way, way.done, way.length)).filter(Boolean);
    const moving = [...tails, ...(stands ? dotted : pills)];
    const more = { label: `${pile} wait`, shape: "", colour: "moving" };
    if (pile > 0 && !scene.plain) placed.push(brush.pill(more, scene.place([209, 208])));
    placed.push(...waiting.flatMap((t) => (scene.plain ? lay(t) : brush.beside(t) ?? [])));
    const { view } = scene;
    const scale = canvas.width / view.w;
    ctx.setTransform(scale, 0, 0, scale, -view.x * scale, -view.y * scale);
    if (stream) flow.draw(ctx, now, brush, still.matches);
    for (const each of moving) each.paint();
    // What moves is behind what is written: there it has a hole.
    const near = (place) => moving.some(({ box }) => meet(box, place));
    for (const [l, t, r, b] of moving.length > 0 && !stream ? scene.words(near) : []) {
      if (near([l, t, r, b])) ctx.clearRect(l - 1, t + 2, r - l + 2, b - t - 4);
    }
    for (const each of placed) each.paint();
    sheet.show();
  }

  const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

  // stretch is what of a way lies between two of its lengths, as a thing to be painted; null: nothing does.
  function stretch({ legs, colour }, from, to, look) {
    if (to <= from) return null;
    const n = Math.ceil((to - from) / 8);
    const points = Array.from({ length: n + 1 }, (_, i) => along(legs, from + ((to - from) * i) / n));
    const [xs, ys] = [0, 1].map((side) => points.map((point) => point[side]));
    return {
      box: [Math.min(...xs) - 3, Math.min(...ys) - 3, Math.max(...xs) + 3, Math.max(...ys) + 3],
      paint() {
        ctx.save();
        Object.assign(ctx, { strokeStyle: brush.colours[colour], lineWidth: 3, lineCap: "butt", ...look });
        if (!look) ctx.setLineDash([3, 5]);
        ctx.beginPath();
        for (const point of points) ctx.lineTo(...point);
        ctx.stroke();
        ctx.restore();
      },
    };
  }

  // ahead returns the ways to their next places of what stands with the stage: the rest of one that is in the air, and
  // what the records that come say of every other copy. From one place copies may go several ways.
  function ahead(list = [], res) {
    const flies = (air?.moves ?? []).map((m) => ({ ...m, done: done(m, clock) }));
    const ways = flies.filter((m) => m.length - m.done >= 1);
    const arrived = flies.filter((m) => m.length - m.done < near);
    for (const m of arrived) tokens.set(m.copy, m); // for as long as it is asked
    const from = new Map(tokens);
    const known = new Set();
    const splits = (t, m) => (t.change === m.change && meet([t.x, t.y, t.x, t.y], around(m.points[0])))
      || (t.point === "HandlerCalled" && m.point === "WorkAdded" && t.key === m.key && t.owner.startsWith(m.owner));
    for (const r of from.size > 0 ? list.filter(({ seq }) => !(seq <= air?.seq)) : []) {
      if (!steps[r.point]) continue;
      for (const m of plan([r], res).moves) {
        const of = from.get(m.copy) ?? from.get(m.takes) ?? [...from.values()].find((t) => splits(t, m));
        if (!of || known.has(m.copy)) continue;
        const legs = legsOf([[of.x, of.y], ...m.points.filter((_, i) => i > 0 || of.queue)]);
        if (lengthOf(legs) < 1) continue;
        ways.push({ ...m, legs, length: lengthOf(legs), done: 0, of });
        known.add(m.copy);
        from.delete(m.copy);
      }
    }
    for (const m of arrived) tokens.delete(m.copy);
    return ways;
  }
  const around = ([x, y]) => [x - near, y - near, x + near, y + near];

  // tail is the part of a way that its token has passed in the last moments.
  function tail(move, begin, end, now, most = move.length) {
    const at = (t) => Math.min(most, Math.max(0, (t - begin) / Math.max(1, end - begin)) * move.length);
    return still.matches ? null : stretch(move, at(now - trailLasts), at(now), { globalAlpha: 0.4 });
  }

  function clear() {
    air = null;
    trails = [];
    tokens.clear();
    gone.clear();
    flow.clear();
    stale = true;
  }

  const queueOf = (r, queue) => making.res?.subjects[r.subject ?? ""]?.queues[queue];
  const steps = newSteps({ scene, go, end, where, queueOf, tokens });
  // etcd's watch may tell of a change before its writer does: what has left etcd has its number
  scene.leaving = () => air?.moves.find(({ station }) => station !== "etcd" && station !== "http")?.rv ?? "0";
  new ResizeObserver(resize).observe(canvas);
  resize();
  brush.restyle();
  return {
    plan, launch, land, stand, pass, closed, under, travelling, standing, flying, keyAt,
    records, rated, draw, clear, at, ahead: () => nexts,
    travels: (r) => here(r) && Boolean(steps[r.point]), restyle: () => (brush.restyle(), (stale = true)),
    touch: () => (stale = true),
    labels: () => brush.labels, flow,
    get anomalies() { return trails.filter((each) => each.single && each.colour === "anomaly").length; },
    get change() { return air?.moves.at(-1)?.change; }, // that is in the air
    get level() { return stream ? 3 : 0; },
  };
}
