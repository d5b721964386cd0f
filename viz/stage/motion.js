// Motion: a change as a token that travels. The player (timeline/player.js) says which records are told, and when: a
// hop is a few records of one change, planned, launched and landed. A token is on its way before its record is folded,
// or sets out with it (departs). Between two hops it stands where its last record left it: in a queue, where the pipe
// draws it, or at a station, where it is drawn here.
//
// Above twenty changes a second nothing travels: what the cursor has passed leaves trails, of one event in k, and above
// two thousand the ways have stripes instead (level.js, flow.js). The counters are the fold's and exact whatever is
// drawn here.

import { newBrush } from "./brush.js";
import { fit } from "../lib/canvas.js";
import { cut, mark } from "../lib/dom.js";
import { isAnomaly, objectKey } from "../log/fold.js";
import { flowPeriod, newFlow } from "./flow.js";
import { newLevel } from "./level.js";
import { heldIn, shortKey } from "./pipe.js";
import { changeOf, departs, newSteps } from "./steps.js";
import { shapeOf } from "./tokens.js";
import { along, endOf, legsOf, lengthOf } from "./way.js";

const pace = 2.4; // units a millisecond, at reading pace
const shortest = 58; // ms of one hop
const longest = 330;
const slow = 800; // ms of what must not be overlooked: a watcher that is closed, a request that falls
const trailLasts = 380; // ms
const alive = 400; // trails drawn at once, at most
const trailPeriod = 50; // ms between two drawings where nothing is left to be seen but trails, and many
const glanced = 16; // records of one step of a sweep whose ways are looked for, the newest: more cannot be told apart
const kept = 48; // copies that stand, at most
const remembered = 400; // copies that have gone: what is reported late does not bring them back

export function newMotion(canvas, scene, infos, follow) {
  const ctx = canvas.getContext("2d");
  const brush = newBrush(canvas, ctx, scene);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const orders = new Map([...infos.keys()].map((name, i) => [name, i])); // the table is in path order
  const tokens = new Map(); // by copy: where each copy of a change is
  const gone = new Map(); // by copy: how far it had come
  let air = null; // the plan that is on its way: {moves, t0, t1}
  let trails = []; // {legs, colour, t0, t1, from, to} of what passed
  const newest = new Map(); // of a stream, by where it leads: the trail that the next one makes last longer
  let flashes = [];
  let making = null; // the plan that is being made
  const flow = newFlow(scene);
  const detail = newLevel();
  let painted = false;
  let stale = true;
  let drawnAt = 0;
  let seen = 0; // records without a resource version, for sampling

  function resize() {
    fit(canvas);
    brush.forget();
    stale = true;
  }

  // ---- plans

  // go adds to the plan at hand the way of a copy. Path is in points of the wide stage, and begins where the copy is if
  // it is not known. The two sides of a channel write down their moments in either order; on the path there is only
  // one, so a way to before where the copy has been adds none.
  function go(copy, path, look = {}) {
    const { r, moves } = making;
    const info = infos.get(r.point);
    const order = orders.get(look.as ?? r.point);
    const before = moves.get(copy) ?? tokens.get(copy);
    if (r.key && !look.fresh && order < (before?.order ?? gone.get(copy) ?? 0)) return;
    const parent = before ?? moves.get(look.takes) ?? tokens.get(look.takes);
    const places = path.map(scene.placed);
    const move = moves.get(copy) ?? { copy, points: [parent && !parent.queue ? [parent.x, parent.y] : places[0]] };
    if (parent && move !== before && !parent.queue) places.shift();
    move.points.push(...places);
    const [x, y] = endOf(move.points.at(-1));
    const queue = info.op === "send" || info.op === "push" ? info.queue : "";
    Object.assign(move, {
      key: look.key ?? objectKey(r.key ?? ""), rv: r.rv ?? "0", owner: r.subject ?? "",
      point: r.point, seq: r.seq, order, x, y, at: endOf(path.at(-1)), queue, in: queue || (look.at ?? info.station),
      station: info.station, ends: look.ends ?? false, takes: look.takes ?? move.takes,
      colour: look.colour ?? "moving", shape: shapeOf(r.type ?? (before ?? parent)?.type), followed: follow.matches(r),
      type: r.type ?? (before ?? parent)?.type, departs: departs(info, r), change: changeOf(r),
      label: look.label ?? (r.key ? cut(shortKey(r.key), 18) : r.type === "BOOKMARK" ? "bookmark" : ""),
    });
    making.slow ||= look.slow ?? false;
    moves.delete(copy);
    moves.set(copy, move);
  }

  // end takes a copy off the stage: what it was made for is done.
  const end = (copy) => making.ends.push(copy);
  const where = (copy) => (making.moves.get(copy) ?? tokens.get(copy))?.at;

  function flash(at, colour, radius = 14) {
    if (detail.level > 1 && colour !== "anomaly") return;
    making.flashes.push({ at: scene.place(at), colour, radius, ms: 620 });
  }

  // plan returns the ways of records, oldest first, as one hop: {moves, ms, length}. Res is the picture before them.
  function plan(list, res) {
    making = { moves: new Map(), ends: [], flashes: [], slow: false, r: null, res, seq: list.at(-1)?.seq ?? 0 };
    for (const r of list) {
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

  // aim returns where a record leads, null if nowhere.
  function aim(r, res) {
    const move = plan([r], res).moves.at(-1);
    return move ? [move.x, move.y] : null;
  }

  // launch lets a plan run from t0 to t1: at its end, and not before, its tokens are where its records say. Up to the
  // record folded, they are folded already.
  function launch(made, t0, t1, folded) {
    air = Object.assign(made, { t0, t1, folded, was: [] });
    for (const move of made.moves) {
      move.departs &&= move.seq <= folded;
      for (const id of [move.copy, move.takes]) if (tokens.has(id)) air.was.push(tokens.get(id));
    }
    for (const { copy } of air.was) tokens.delete(copy);
  }

  function drop(copy) {
    const order = tokens.get(copy)?.order ?? gone.get(copy) ?? 0;
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
      if (move.takes) drop(move.takes);
      tokens.delete(move.copy);
      tokens.set(move.copy, move);
      if (move.ends) drop(move.copy);
    }
    for (const copy of made.ends) drop(copy);
    for (const f of made.flashes) if (made.t1 && flashes.length < 80) flashes.push({ ...f, t0: now });
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

  // stand puts the copies where a list of records, oldest first, leaves them.
  function stand(list, res) {
    for (const r of list) land(plan([r], res), 0);
  }

  // abort takes back what is on its way: it never left. What left with its record is where it leads.
  function abort(now) {
    if (!air) return;
    if (air.folded >= air.seq) return land(air, now);
    for (const each of air.was) tokens.set(each.copy, each);
    air = null;
    stale = true;
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
      return t ? [{ ...held, label: t.label }] : [];
    });
  }

  function spot(move, now) {
    const t = still.matches ? 0 : Math.min(1, Math.max(0, (now - air.t0) / Math.max(1, air.t1 - air.t0)));
    return along(move.legs, t * move.length);
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

  // rated takes notice of how many changes arrive in a second.
  const rated = (rate, now) => detail.at(rate, now).level;

  // records draws the ways of records that are folded already, as trails. res is the picture after them.
  function records(list, resource, now, rate, res) {
    const { level, every } = detail.at(rate, now);
    tokens.clear();
    const ours = (r) => (r.resource ?? "") === resource || (r.resource ?? "") === "";
    if (level === 3 && res) flow.look(res, now);
    const first = list.length - glanced;
    for (const [i, r] of list.entries()) {
      const single = follow.matches(r) || isAnomaly(infos.get(r.point), r);
      if (!steps[r.point] || !ours(r) || (i < first && !single)) continue;
      const one = (r.rv ? Number(r.rv) : seen++) % every === 0;
      if (!single && (level === 3 || (every > 1 && !one))) continue;
      const { moves, flashes: lit } = plan([r], res);
      for (const f of lit) if (flashes.length < 80) flashes.push({ ...f, t0: now });
      for (const move of moves) if (move.length >= 1) leave(move, now, level > 0 && !single);
    }
  }

  // leave leaves a trail. One that goes the same way as another makes that one last longer.
  function leave(move, now, plain) {
    if (plain && trails.length >= alive) return;
    const way = plain ? `${move.points[0]} ${move.x} ${move.y} ${move.shape}` : "";
    const known = newest.get(way);
    const t1 = now + trailLasts;
    if (known && known.t1 > now) return Object.assign(known, { t1, key: move.key, rv: move.rv, seq: move.seq });
    const trail = { ...move, t0: now, t1, done: now, stamped: true, label: plain ? "" : move.label };
    if (way) newest.set(way, trail);
    trails.push(trail);
  }

  // ---- drawing

  function draw(now, pile = 0) {
    trails = trails.filter((each) => now < each.t1);
    flashes = flashes.filter((f) => now < f.t0 + f.ms);
    for (const [way, trail] of newest) if (trail.t1 <= now) newest.delete(way);
    const { level } = detail;
    const moves = air || trails.length + flashes.length > 0 || level === 3;
    if (!moves && !stale && !painted && pile === draw.pile) return;
    const period = air ? 0 : level === 3 ? flowPeriod : level === 2 ? trailPeriod : 0;
    if (!stale && now - drawnAt < period) return;
    [drawnAt, painted, stale, draw.pile] = [now, Boolean(moves), false, pile];
    const { view } = scene;
    const scale = canvas.width / view.w;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.setTransform(scale, 0, 0, scale, -view.x * scale, -view.y * scale);
    brush.clean();
    if (level === 3) flow.draw(ctx, now, brush, still.matches);
    for (const f of flashes) if (now >= f.t0) drawFlash(f, (now - f.t0) / f.ms);
    for (const each of trails) drawTrail(each, now);
    if (pile > 0) brush.pile(pile, scene.place([209, 222]));
    const moved = flying(now);
    for (const m of moved) drawTail(m, air.t0, air.t1, now); // behind all names
    for (const t of standing()) brush.pill(t, [t.x, t.y]);
    if (level === 0) for (const held of named()) brush.beside(held);
    const hub = scene.place(scene.geometry.anchors.dispatch);
    const there = (t, [x, y]) => Math.abs(x - hub[0]) < 26 + 5 * t.label.length && Math.abs(y - hub[1]) < 20;
    const visited = standing().some((t) => there(t, [t.x, t.y])) || moved.some((m) => there(m, m.now));
    mark(scene.stations.get("dispatch"), "visited", visited); // its arrow would be drawn over the token
    for (const m of moved) brush.pill(m, m.now);
  }

  function drawFlash(f, t) {
    ctx.globalAlpha = (1 - t) * 0.9;
    ctx.strokeStyle = brush.colours[f.colour];
    ctx.lineWidth = 3 * (1 - t) + 0.5;
    ctx.beginPath();
    ctx.arc(f.at[0], f.at[1], f.radius * (0.6 + 0.5 * t), 0, 2 * Math.PI);
    ctx.stroke();
    ctx.globalAlpha = 1;
  }

  // drawTail draws the part of a way that its token has passed in the last moments, paler where that is longer ago.
  function drawTail({ legs, length, colour }, begin, end, now) {
    if (still.matches) return;
    const at = (t) => Math.min(1, Math.max(0, (t - begin) / Math.max(1, end - begin))) * length;
    const pieces = 5;
    for (let i = 0; i < pieces; i++) {
      const [from, to] = [i, i + 1].map((n) => at(now - trailLasts * (1 - n / pieces)));
      if (to > from) stroke(legs, from, to, brush.colours[colour], (0.6 * (i + 1)) / pieces);
    }
  }

  // drawTrail draws what is left of a way. In a stream it is the whole way, with the token at its end.
  function drawTrail(trail, now) {
    if (!trail.stamped) return drawTail(trail, trail.t0, trail.done, now);
    const fade = (trail.t1 - now) / trailLasts;
    stroke(trail.legs, 0, trail.length, brush.colours[trail.colour], 0.55 * fade);
    ctx.globalAlpha = fade;
    brush.stamp(trail, [trail.x, trail.y]);
    ctx.globalAlpha = 1;
  }

  function stroke(legs, from, to, colour, alpha) {
    ctx.globalAlpha = alpha;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 3;
    ctx.beginPath();
    ctx.moveTo(...along(legs, from));
    for (let at = from + 8; at < to; at += 8) ctx.lineTo(...along(legs, at));
    ctx.lineTo(...along(legs, to));
    ctx.stroke();
    ctx.globalAlpha = 1;
  }

  function clear() {
    air = null;
    trails = [];
    flashes = [];
    tokens.clear();
    gone.clear();
    newest.clear();
    flow.clear();
    stale = true;
  }

  const lenOf = (r, queue) => making.res?.subjects[r.subject ?? ""]?.queues[queue];
  const wires = () => [...tokens.values()].filter((t) => t.in === "wire").length;
  const steps = newSteps({ scene, go, end, flash, where, lenOf, wires, tokens });
  new ResizeObserver(resize).observe(canvas);
  resize();
  brush.restyle();
  return {
    plan, aim, launch, land, stand, closed, abort, under, travelling, standing, flying, keyAt,
    records, rated, draw, clear,
    travels: (r) => Boolean(steps[r.point]), restyle: () => (brush.restyle(), (stale = true)),
    touch: () => (stale = true),
    labels: () => brush.labels, detail, flow,
    get alive() { return trails.length; },
    get anomalies() { return trails.filter((each) => each.colour === "anomaly").length; },
    get change() { return air?.moves.at(-1)?.change; }, // that is in the air
    get level() { return detail.level; }, get every() { return detail.every; },
  };
}
