// Motion: records as tokens that travel. Every hop is there because a record says so, and the player
// (timeline/player.js) says when: a token is on its way before its record is folded, and where it goes when it is. So a
// chip on its way to a shelf is not on the shelf yet. Not to scale.
//
// All tokens are on one canvas over the scenery, drawn from one clock. Above twenty events a second the labels go,
// above two hundred only one event in k is drawn, above two thousand the ways have stripes instead (level.js, flow.js).
// Where the cursor moves faster than a token can, what is left is a trail: the way that it went, fading. The counters
// are the fold's and exact whatever is drawn here.

import { newBrush } from "./brush.js";
import { cut } from "../lib/dom.js";
import { isAnomaly } from "../log/fold.js";
import { flowPeriod, newFlow } from "./flow.js";
import { newLevel } from "./level.js";
import { shortKey } from "./pipe.js";
import { departs, newSteps } from "./steps.js";
import { shapeOf } from "./tokens.js";

const pace = 3.4; // units a millisecond, at reading pace
const shortest = 36; // ms of one hop
const longest = 190;
const slowest = 800; // ms of what has to be seen: an event that is seated in another slot, a request that falls
const visible = 3; // ms: a hop that takes less is a trail
const unhurried = 40; // ms: one that takes less leaves a trail, too
const trailLasts = 380; // ms
const rareLasts = 900; // ms: of an anomaly
const alive = 400; // tokens and trails drawn at once, at most
const trailPeriod = 50; // ms between two drawings where nothing is left to be seen but trails, and many
const glanced = 16; // records of one step of a sweep whose ways are looked for, the newest: more cannot be told apart
const forgotten = 8000; // ms after which an event's next hop begins where its record says, and not where it was seen

export function newMotion(canvas, scene, infos, follow) {
  const ctx = canvas.getContext("2d");
  const brush = newBrush(canvas, ctx, scene);
  const g = scene.geometry;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const reduced = () => still.matches;
  const orders = new Map([...infos.keys()].map((name, i) => [name, i])); // the table is in path order
  const chains = new Map(); // where an event was seen last, and until when it is on its way there
  let hops = []; // tokens on their way, and trails of those that are not
  // by where it leads and how it looks: the newest trail there; the next one of its kind makes it last longer
  const trails = new Map();
  let flashes = [];
  let launched = []; // jobs that can be taken back
  let job = null; // that is being prepared
  const flow = newFlow(scene);
  const detail = newLevel();
  let level = 0; // detail's, as of the last records
  let painted = false;
  let swept = 0;
  let drawn = 0;
  let following = false; // the record at hand is of what is followed
  let seen = 0; // records without a resource version, for sampling

  function resize() {
    const box = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
    brush.forget();
  }

  // hop adds a leg to the job at hand: from where the token's chain (or its parent's) was left to `to`. The two sides
  // of a channel write down their moments in either order; on the path there is only one, so a hop to before where the
  // event is adds none.
  function hop(now, chainId, parents, start, end, r, look = {}) {
    const [from, to] = [start, end].map(scene.place);
    let chain = look.fresh ? undefined : chains.get(chainId);
    const order = orders.get(look.as ?? r.point) ?? 0;
    if (chain && order < chain.order) return;
    for (const id of parents) chain ??= chains.get(id);
    const known = chain && now - chain.free < forgotten;
    const begin = known ? [chain.x, chain.y] : from;
    const distance = Math.hypot(to[0] - begin[0], to[1] - begin[1]);
    if (distance < 1) return;
    if (known) job.after = Math.max(job.after, chain.free);
    const next = { x: to[0], y: to[1], free: now, order };
    keep(chainId);
    chains.set(chainId, next);
    job.ends.push(next);
    job.legs.push({
      a: begin, b: to, bend: look.bend ?? "across", shape: shapeOf(r.type), colour: look.colour ?? "moving",
      label: look.label ?? "",
      below: look.below, fades: look.fades ?? false, followed: following, always: look.always, slow: look.slow,
      distance,
      key: r.key ?? "", rv: r.rv ?? "", owner: job.r.subject ?? "", point: job.r.point, seq: job.r.seq,
      departs: departs(infos.get(job.r.point), job.r),
    });
  }

  // keep notes what a chain was before the job at hand, so that the job can be taken back.
  function keep(chainId) {
    if (!job.before.some(([id]) => id === chainId)) job.before.push([chainId, chains.get(chainId)]);
  }

  function forget(chainId) {
    keep(chainId);
    chains.delete(chainId);
  }

  function flash(now, chainId, at, colour, radius = 14) {
    if (level > 1 && colour !== "anomaly") return;
    job.flashes.push({ at: scene.place(at), colour, radius, ms: 620 });
  }

  // travels reports whether a record of the resource may have a way on this stage.
  const travels = (r, resource) => Boolean(steps[r.point])
    && ((r.resource ?? "") === resource || (r.resource ?? "") === "");

  // prepare returns the way of a record as a job for launch, null if it does not travel, or is not drawn.
  function prepare(r, resource, now) {
    if (!travels(r, resource)) return null;
    following = follow.matches(r);
    const single = following || isAnomaly(infos.get(r.point), r);
    const { every } = detail;
    if (!single && (level === 3 || (every > 1 && (r.rv ? Number(r.rv) : seen++) % every !== 0))) return null;
    job = { r, legs: [], flashes: [], before: [], ends: [], after: 0, ms: 0 };
    steps[r.point](r, now);
    const rows = job.legs.filter((leg) => !leg.slow); // one after the other; what is slow is all at once
    job.distance = rows.reduce((sum, leg) => sum + leg.distance, 0);
    job.ms = job.legs.some((leg) => leg.slow) ? slowest : rows.length > 0
      ? Math.min(longest * rows.length, Math.max(shortest, job.distance / pace)) : 0;
    return job.legs.length + job.flashes.length > 0 ? job : null;
  }

  // launch lets a job run from start to end: at its end, and not before, its token is where its record says. What is
  // too short to be seen, or over already, is a trail.
  function launch(job, start, end, now = start) {
    const from = Math.max(start, job.after);
    for (const chain of job.ends) chain.free = end;
    for (const f of job.flashes) if (flashes.length < 80) flashes.push({ ...f, t0: end });
    const trailing = reduced() || end - from < visible || end <= now;
    const hurried = end > start && end - from < unhurried; // a viewer does not read so fast
    let t = from;
    for (const leg of job.legs) {
      const plain = !leg.always && !leg.followed && leg.colour !== "anomaly";
      if (hops.length >= alive && plain) continue;
      if (hurried && plain) leg.label = "";
      if (trailing) {
        leave(leg, Math.max(end, now), plain);
      } else if (leg.slow) {
        hops.push({ ...leg, t0: from, t1: end, landed: end });
      } else {
        if (hurried) leave(leg, end, plain);
        const ms = ((end - from) * leg.distance) / Math.max(1, job.distance);
        hops.push({ ...leg, t0: t, t1: t + ms, landed: end });
        t += ms;
      }
    }
    launched.push([job, end]);
  }

  // leave leaves a trail. Where so many pass that they have no names, one that goes the same way makes the last one
  // last longer.
  function leave(leg, t0, plain) {
    const way = plain && level > 0 ? `${leg.a} ${leg.b} ${leg.shape}` : "";
    const known = trails.get(way);
    const t1 = t0 + (leg.colour === "anomaly" ? rareLasts : trailLasts);
    if (known && known.t1 > t0) return Object.assign(known, { t0, t1, key: leg.key, rv: leg.rv, seq: leg.seq });
    const trail = { ...leg, trail: true, t0, t1, label: level > 0 && plain ? "" : leg.label };
    if (way) trails.set(way, trail);
    hops.push(trail);
  }

  // abort takes back what is still on its way: it never left.
  function abort(now) {
    for (const [{ before }, end] of launched.reverse()) {
      if (end <= now) continue;
      for (const [id, chain] of before) {
        if (chain) chains.set(id, chain);
        else chains.delete(id);
      }
    }
    launched = [];
    hops = hops.filter((h) => (h.trail ? h.t0 : h.landed) <= now);
    flashes = flashes.filter((f) => f.t0 <= now);
  }

  // aim returns the legs of a way that is not gone yet, and leaves everything as it is.
  function aim(r, resource, now) {
    const one = prepare(r, resource, now);
    for (const [id, chain] of one?.before ?? []) {
      if (chain) chains.set(id, chain);
      else chains.delete(id);
    }
    return one?.legs ?? [];
  }

  // landed forgets how to take back what has arrived: with the record at the cursor everything has that is told to
  // arrive with it.
  function landed(now, cursor = 0) {
    launched = launched.filter(([, end]) => end > now);
    for (const h of hops) if (!h.trail && !h.departs && h.seq <= cursor) h.t1 = h.landed = Math.min(h.landed, now);
  }

  // travelling is what is on its way at a moment: what is going to leave is not.
  function travelling(now, cursor = Infinity) {
    return hops.filter((h) => !h.trail && now < h.landed && (!h.departs || h.seq <= cursor))
      .map(
        (h) => ({
          key: h.key, rv: h.rv, owner: h.owner, from: h.a.map(Math.round), to: h.b.map(Math.round),
          station: infos.get(h.point)?.station ?? "", point: h.point, seq: h.seq, departs: h.departs,
        })
      );
  }

  // sums counts what passed each way between two pictures of the log.
  function sums(before, after, resource, now) {
    if (after.resources[resource]) flow.difference(before.resources[resource], after.resources[resource], now);
  }

  // counts takes notice of records that are folded: of how many there are depends how they are drawn.
  function counts(list, resource, now, rate, counted = false) {
    detail.at(rate, now);
    level = detail.level;
    if (level === 3 && !counted) {
      flow.count(list.filter((r) => (r.resource ?? "") === resource || (r.resource ?? "") === ""), now);
    }
  }

  // records draws the ways of records that are folded already: as trails. They are counted by what passes, unless sums
  // has done so.
  function records(list, resource, now, rate, counted = false) {
    counts(list, resource, now, rate, counted);
    const first = list.length - glanced;
    for (const [i, r] of list.entries()) {
      if (i < first && !follow.matches(r) && !isAnomaly(infos.get(r.point), r)) continue;
      const one = prepare(r, resource, now);
      // a viewer does not read so many names
      if (one && list.length > 8) for (const leg of one.legs) if (leg.colour !== "anomaly") leg.label = "";
      if (one) launch(one, now, now);
    }
    landed(now);
  }

  const label = (r) => ((level === 0 || following) && r.key ? cut(shortKey(r.key), 16) : "");
  const steps = newSteps({ scene, hop, flash, chains, forget, keep, label });

  function place(h, t) {
    const e = t < 0.5 ? 2 * t * t : 1 - (2 - 2 * t) ** 2 / 2;
    const [ax, ay] = h.a;
    const [bx, by] = h.b;
    if (h.bend === "straight") return [ax + (bx - ax) * e, ay + (by - ay) * e];
    const m = (ax + bx) / 2;
    const u = 1 - e;
    return [
      u * u * u * ax + 3 * u * u * e * m + 3 * u * e * e * m + e * e * e * bx,
      u * u * u * ay + 3 * u * u * e * ay + 3 * u * e * e * by + e * e * e * by,
    ];
  }

  function draw(now) {
    hops = hops.filter((h) => now < h.t1);
    flashes = flashes.filter((f) => now < f.t0 + f.ms);
    if (now - swept > 2000) sweep(now);
    const busy = hops.length + flashes.length > 0 || level === 3;
    if (!busy && !painted) return;
    if (painted && now - drawn < (level === 3 ? flowPeriod : level === 2 ? trailPeriod : 0)
      && hops.every((h) => h.trail)) return;
    drawn = now;
    painted = busy;
    const view = scene.view;
    const scale = canvas.width / view.w;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.setTransform(scale, 0, 0, scale, -view.x * scale, -view.y * scale);
    if (level === 3) flow.draw(ctx, now, brush, reduced());
    for (const f of flashes) if (now >= f.t0) drawFlash(f, (now - f.t0) / f.ms);
    let left = alive;
    brush.clean();
    for (const h of hops) if (now >= h.t0 && (h.followed || left-- > 0)) (h.trail ? drawTrail : drawHop)(h, now);
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

  function drawHop(h, now) {
    const t = (now - h.t0) / (h.t1 - h.t0);
    if (level < 2) {
      for (let i = level === 0 ? 4 : 2; i > 0; i--) {
        const [x, y] = place(h, Math.max(0, t - i * 0.07));
        ctx.globalAlpha = 0.09 * (5 - i);
        ctx.fillStyle = brush.colours[h.colour];
        ctx.beginPath();
        ctx.arc(x, y, 7 - i * 0.9, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
    ctx.globalAlpha = h.fades ? 1 - t * t : 1;
    brush.stamp(h, place(h, Math.min(1, t)));
    ctx.globalAlpha = 1;
  }

  // drawTrail draws the way that a token went, and the token where it came to, as both fade.
  function drawTrail(h, now) {
    const fade = 1 - (now - h.t0) / (h.t1 - h.t0);
    ctx.globalAlpha = 0.55 * fade;
    ctx.strokeStyle = brush.colours[h.colour];
    ctx.lineWidth = 3;
    ctx.lineCap = "round";
    ctx.beginPath();
    const [[ax, ay], [bx, by]] = [h.a, h.b];
    ctx.moveTo(ax, ay);
    if (h.bend === "straight") ctx.lineTo(bx, by);
    else ctx.bezierCurveTo((ax + bx) / 2, ay, (ax + bx) / 2, by, bx, by);
    ctx.stroke();
    ctx.globalAlpha = fade;
    brush.stamp(h, h.b);
    ctx.globalAlpha = 1;
  }

  function sweep(now) {
    swept = now;
    for (const [key, chain] of chains) if (now - chain.free > forgotten) chains.delete(key);
    for (const [way, trail] of trails) if (trail.t1 < now) trails.delete(way);
  }

  function clear() {
    hops = [];
    flashes = [];
    launched = [];
    chains.clear();
    trails.clear();
    flow.clear();
  }

  new ResizeObserver(resize).observe(canvas);
  resize();
  brush.restyle();
  return {
    travels, aim, prepare, launch, landed, abort, travelling, counts, records, sums, draw, clear,
    restyle: brush.restyle, touch: () => (painted = true), labels: () => brush.labels,
    get alive() { return hops.length; }, get anomalies() { return hops.filter((h) => h.colour === "anomaly").length; },
    get level() { return level; }, get every() { return detail.every; }, detail, flow,
  };
}
