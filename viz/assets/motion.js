// Motion: records as tokens that travel. Every hop is there because a record says so, and begins no earlier than the
// record came; hops of one event follow each other, so what took microseconds can be followed by eye. Not to scale.
//
// All tokens are on one canvas over the scenery, drawn from one clock. Above twenty events a second the labels go, above
// two hundred only one event in k travels, above two thousand the ways have stripes instead (level.js, flow.js); the
// counters are the fold's and exact whatever is drawn here.

import { newBrush } from "./brush.js";
import { cut } from "./dom.js";
import { isAnomaly } from "./fold.js";
import { flowPeriod, newFlow } from "./flow.js";
import { newLevel } from "./level.js";
import { shortKey } from "./pipe.js";
import { newSteps } from "./steps.js";
import { shapeOf } from "./tokens.js";

const pace = 2.3; // units a millisecond
const shortest = 45; // ms of one hop
const longest = 260;
const farBehind = 3500; // ms: what would be drawn so late is not drawn
const alive = 400; // tokens drawn at once, at most
const planned = 3000; // hops that may wait for their turn
const forgotten = 8000; // ms after which nobody continues from where an event was

export function newMotion(canvas, scene, infos, follow) {
  const ctx = canvas.getContext("2d");
  const brush = newBrush(canvas, ctx, scene.geometry.width);
  const g = scene.geometry;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const reduced = () => still.matches;
  const orders = new Map([...infos.keys()].map((name, i) => [name, i])); // the table is in path order
  const chains = new Map(); // where an event was seen last, and until when it is on its way there
  let hops = [];
  let flashes = [];
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

  // hop sends a token from where its chain (or its parent's) left it to `to`. The two sides of a channel write down
  // their moments in either order; on the path there is only one, so a hop to before where the event is, is none.
  function hop(now, chainId, parents, from, to, r, look = {}) {
    let chain = look.fresh ? undefined : chains.get(chainId);
    const order = orders.get(look.as ?? r.point) ?? 0;
    if (chain && order < chain.order) return;
    for (const id of parents) chain ??= chains.get(id);
    const known = chain && now - chain.free < forgotten;
    const begin = known ? [chain.x, chain.y] : from;
    const t0 = known ? Math.max(now, chain.free) : now;
    if (t0 - now > farBehind / (1 + level)) {
      chains.set(chainId, { x: to[0], y: to[1], free: t0, order });
      return;
    }
    const distance = Math.hypot(to[0] - begin[0], to[1] - begin[1]);
    if (distance < 1) return;
    const ms = look.slow ? 800 : Math.min(longest, Math.max(shortest, distance / pace)) / (1 + level * 0.6);
    chains.set(chainId, { x: to[0], y: to[1], free: t0 + ms, order });
    if (hops.length >= planned && !look.always) return;
    hops.push({
      a: begin, b: to, bend: look.bend ?? "across", t0, t1: t0 + ms, shape: shapeOf(r.type),
      colour: look.colour ?? "moving", label: look.label ?? "", below: look.below, fades: look.fades ?? false, followed: following,
    });
  }

  function flash(now, chainId, at, colour, radius = 14) {
    if (level > 1 && colour !== "anomaly") return;
    const free = chains.get(chainId)?.free ?? now;
    if (flashes.length < 80) flashes.push({ at, colour, radius, t0: Math.max(now, Math.min(free, now + farBehind)), ms: 620 });
  }

  // sums counts what passed each way between two pictures of the log.
  function sums(before, after, resource, now) {
    if (after.resources[resource]) flow.difference(before.resources[resource], after.resources[resource], now);
  }

  // records begins the ways of records. They are counted by what passes, unless sums has done so.
  function records(list, resource, now, rate, counted = false) {
    const { every } = detail.at(rate, now);
    level = detail.level;
    const here = list.filter((r) => (r.resource ?? "") === resource || (r.resource ?? "") === "");
    if (level === 3 && !counted) flow.count(here, now);
    for (const r of here) {
      following = follow.matches(r);
      const single = following || isAnomaly(infos.get(r.point), r);
      if (!single && (level === 3 || (every > 1 && (r.rv ? Number(r.rv) : seen++) % every !== 0))) continue;
      const step = steps[r.point];
      if (step) step(r, now);
    }
  }

  const label = (r) => ((level === 0 || following) && r.key ? cut(shortKey(r.key), 16) : "");
  const steps = newSteps({ scene, hop, flash, chains, label });

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
    hops = hops.filter((h) => now < h.t1 + (reduced() ? 500 : 0));
    flashes = flashes.filter((f) => now < f.t0 + f.ms);
    if (now - swept > 2000) sweep(now);
    const busy = hops.length + flashes.length > 0 || level === 3;
    if (!busy && !painted) return;
    if (level === 3 && painted && hops.length === 0 && now - drawn < flowPeriod) return;
    drawn = now;
    painted = busy;
    const view = scene.view;
    const scale = canvas.width / view.w;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.setTransform(scale, 0, 0, scale, -view.x * scale, -view.y * scale);
    if (level === 3) flow.draw(ctx, now, brush.colours, reduced());
    for (const f of flashes) if (now >= f.t0) drawFlash(f, (now - f.t0) / f.ms);
    const one = reduced() ? drawStill : drawHop;
    let left = alive;
    brush.clean();
    for (const h of hops) if (now >= h.t0 && (h.followed || left-- > 0)) one(h, now);
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

  // drawStill is for those who asked for no motion: the token is where it arrived, and its outline fades.
  function drawStill(h, now) {
    ctx.globalAlpha = Math.max(0, 1 - (now - h.t0) / 700);
    brush.stamp(h, h.b);
    ctx.globalAlpha = 1;
  }

  function sweep(now) {
    swept = now;
    for (const [key, chain] of chains) if (now - chain.free > forgotten) chains.delete(key);
  }

  function clear() {
    hops = [];
    flashes = [];
    chains.clear();
    flow.clear();
  }

  // behind is how many ms after its record the last token will have arrived.
  function behind(now) {
    let latest = now;
    for (const h of hops) latest = Math.max(latest, h.t1);
    return latest - now;
  }

  new ResizeObserver(resize).observe(canvas);
  resize();
  brush.restyle();
  return { records, sums, draw, clear, restyle: brush.restyle, touch: () => (painted = true), behind, get alive() { return hops.length; }, get anomalies() { return hops.filter((h) => h.colour === "anomaly").length; }, get level() { return level; }, get every() { return detail.every; }, detail, flow };
}
