// Motion: records as tokens that travel. Every hop is there because a record says so, and begins no earlier than the
// record came; hops of one event follow each other, so what took microseconds can be followed by eye. Not to scale.
//
// All tokens are on one canvas over the scenery, drawn from one clock. Above twenty events a second the labels go,
// above two hundred only one event in k travels; the counters are the fold's and exact whatever is drawn here.

import { objectKey } from "./fold.js";
import { cut } from "./dom.js";
import { agentOf, shortKey } from "./scene.js";
import { outline, shapeOf, sign } from "./tokens.js";

const pace = 2.3; // units a millisecond
const shortest = 45; // ms of one hop
const longest = 260;
const farBehind = 3500; // ms: what would be drawn so late is not drawn
const alive = 400; // tokens drawn at once, at most
const planned = 3000; // hops that may wait for their turn
const forgotten = 8000; // ms after which nobody continues from where an event was

export function newMotion(canvas, scene, infos, follow) {
  const ctx = canvas.getContext("2d");
  const g = scene.geometry;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const reduced = () => still.matches;
  const orders = new Map([...infos.keys()].map((name, i) => [name, i])); // the table is in path order
  const anomalies = new Set([...infos.values()].filter((info) => info.anomaly).map((info) => info.name));
  const chains = new Map(); // where an event was seen last, and until when it is on its way there
  const sprites = new Map();
  let hops = [];
  let flashes = [];
  let colours = {};
  let level = 0;
  let every = 1;
  let painted = false;
  let swept = 0;
  let following = false; // the record at hand is of what is followed
  let seen = 0; // records without a resource version, for sampling

  function restyle() {
    sprites.clear();
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    colours = {
      moving: of("--moving"), delivered: of("--delivered"), anomaly: of("--anomaly"), stored: of("--stored"),
      paper: of("--on-token"), ink: of("--ink"), halo: of("--panel"), followed: of("--followed"),
    };
  }

  function resize() {
    const box = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
    sprites.clear();
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
    const ms = Math.min(longest, Math.max(shortest, distance / pace)) / (1 + level * 0.6);
    chains.set(chainId, { x: to[0], y: to[1], free: t0 + ms, order });
    if (hops.length >= planned && !look.always) return;
    hops.push({
      a: begin, b: to, bend: look.bend ?? "across", t0, t1: t0 + ms, shape: shapeOf(r.type),
      colour: look.colour ?? "moving", label: look.label ?? "", fades: look.fades ?? false, followed: following,
    });
  }

  function flash(now, chainId, at, colour, radius = 14) {
    if (level > 1 && colour !== "anomaly") return;
    const free = chains.get(chainId)?.free ?? now;
    if (flashes.length < 80) flashes.push({ at, colour, radius, t0: Math.max(now, Math.min(free, now + farBehind)), ms: 620 });
  }

  function records(list, resource, now, rate) {
    level = rate > 200 ? 2 : rate > 20 ? 1 : 0;
    every = level < 2 ? 1 : Math.ceil(rate / 100);
    for (const r of list) {
      if ((r.resource ?? "") !== resource && (r.resource ?? "") !== "") continue;
      following = follow.matches(r);
      if (every > 1 && !following && !anomalies.has(r.point) && (r.rv ? Number(r.rv) : seen++) % every !== 0) continue;
      const step = steps[r.point];
      if (step) step(r, now);
    }
  }

  const id = (r, branch = "") => `${r.rv ?? ""}|${r.rv ? "" : objectKey(r.key ?? "")}|${branch}`;
  const label = (r) => ((level === 0 || following) && r.key ? cut(shortKey(r.key), 16) : "");
  const a = g.anchors;
  const pipe = (name) => g.pipes[name];

  // spotOf returns a point of a lane's pipe: 0 is where tokens come in, 1 where they go out.
  function spotOf(kind, subject, name, along) {
    const el = scene.lanes[kind].get(subject);
    const box = g.boxes[{ watchers: "watcher", listeners: "listener", handlers: "handler", workqueues: "workqueue" }[kind]];
    const size = kind === "watchers" ? g.lane : g.listen;
    const index = el?.lane ? Math.min(el.lane.index, size.room - 1) : 0; // those without a place share the last
    const p = pipe(name);
    const left = kind !== "watchers";
    const x = left ? p.X + p.W * (1 - along) : p.X + p.W * along;
    return [box.X + x, box.Y + index * size.height + p.Y + p.H / 2];
  }

  const ours = (r) => agentOf(scene.lanes.watchers.get(r.subject)?.lane?.subject ?? { texts: {} }).includes("informer");

  const steps = {
    RequestReceived(r, now) {
      if (!/\b(POST|PUT|PATCH|DELETE)\b/.test(r.text ?? "")) return;
      hop(now, `request|${r.seq}`, [], [g.loopX - 22, g.serverAxis], a.http, { type: "" });
    },
    TxnCommitted(r, now) {
      if (!chains.has(id(r))) hop(now, id(r), [], a.http, [a.http[0] + 1, a.http[1]], r, { as: "RequestReceived" });
      hop(now, id(r), [], a.http, a.etcd, r, { label: label(r) });
      flash(now, id(r), a.etcd, "stored");
    },
    Etcd3IncomingSent: (r, now) => hop(now, id(r), [], a.etcd, a["etcd3-incoming"], r, { label: label(r) }),
    Etcd3IncomingReceived(r, now) {
      hop(now, id(r), [], a["etcd3-incoming"], [pipe("etcd3-incoming").X + pipe("etcd3-incoming").W, a["etcd3-incoming"][1]], r, { bend: "straight" });
      hop(now, id(r), [], a["etcd3-incoming"], a.decode, r);
    },
    Etcd3ResultSent: (r, now) => hop(now, id(r), [], a.decode, a["etcd3-result"], r),
    ReflectorReceived(r, now) {
      if (r.subject === "cacher") {
        const look = { bend: "straight", as: "Etcd3ResultSent" };
        hop(now, id(r), [], a["etcd3-result"], a["etcd3-out"], r, look);
        hop(now, id(r), [], a["etcd3-out"], [g.ring.x - g.ring.out - 8, a["etcd3-out"][1]], r, look);
        return;
      }
      if (r.subject !== scene.informer) return;
      hop(now, id(r, "informer"), [], a["wire-client"], a.reflector, r, { label: label(r), bend: "straight" });
    },
    RingAppend(r, now) {
      const spot = scene.slotSpot((r.args?.[1] ?? 1) - 1);
      hop(now, id(r), [], [g.ring.x - g.ring.out, a["etcd3-out"][1]], spot, r, { bend: "straight" });
      flash(now, id(r), spot, "stored", 10);
    },
    StoreUpdate: (r, now) => hop(now, id(r), [], a.ring, a.store, r, { label: label(r) }),
    IncomingSent: (r, now) => hop(now, id(r), [], a.store, a.incoming, r),
    IncomingReceived(r, now) {
      hop(now, id(r), [], a.incoming, a["incoming-out"], r, { bend: "straight" });
      hop(now, id(r), [], a["incoming-out"], a.dispatch, r, { bend: "straight", label: label(r) });
    },
    InputSent: (r, now) => hop(now, id(r, r.subject), [id(r)], a.dispatch, spotOf("watchers", r.subject, "input", 0), r),
    InputReceived: (r, now) => hop(now, id(r, r.subject), [id(r)], a.dispatch, spotOf("watchers", r.subject, "input", 1), r, { bend: "straight" }),
    WatcherFiltered(r, now) {
      const [x, y] = spotOf("watchers", r.subject, "input", 1);
      hop(now, id(r, r.subject), [], [x, y], [x + 4, y + 22], r, { bend: "straight", fades: true });
    },
    ResultSent: (r, now) =>
      hop(now, id(r, r.subject), [id(r)], spotOf("watchers", r.subject, "input", 1), spotOf("watchers", r.subject, "result", 0), r, { bend: "straight" }),
    ResultReceived: (r, now) =>
      hop(now, id(r, r.subject), [], spotOf("watchers", r.subject, "result", 0), spotOf("watchers", r.subject, "result", 1), r, { bend: "straight" }),
    FrameWritten(r, now) {
      if (ours(r)) return; // drawn when the client has it: one token, one crossing
      const from = spotOf("watchers", r.subject, "result", 1);
      hop(now, id(r, r.subject), [], from, [g.width + 4, from[1]], r, { bend: "straight", fades: true });
    },
    FrameDecoded(r, now) {
      if (r.subject !== scene.informer) return; // another client's: it left the picture at the edge
      const watcher = [...scene.lanes.watchers.keys()].find((subject) => ours({ subject })) ?? "";
      const from = spotOf("watchers", watcher, "result", 1);
      const parents = [id(r, watcher)];
      hop(now, id(r, "informer"), parents, from, [g.wireX, from[1]], r, { bend: "straight" });
      hop(now, id(r, "informer"), parents, a.wire, a.wire, r, { bend: "straight", label: label(r) });
      hop(now, id(r, "informer"), parents, a.wire, [g.wireX, g.clientAxis], r, { bend: "straight", label: label(r) });
    },
    FIFOAdded: (r, now) => hop(now, id(r, "informer"), [], a.reflector, a.fifo, r, { bend: "straight" }),
    FIFOPopped: (r, now) => hop(now, id(r, "informer"), [], a.fifo, a["fifo-out"], r, { bend: "straight", label: label(r) }),
    IndexerUpdated(r, now) {
      hop(now, id(r, "informer"), [], a["fifo-out"], a.indexer, r, { bend: "straight", label: label(r) });
      flash(now, id(r, "informer"), a.indexer, "stored");
    },
    AddSent(r, now) {
      // Distributed is written down when every listener has it, so the way to the processor is drawn with the first.
      hop(now, id(r, "informer"), [], a.indexer, a.processor, r, { bend: "straight", as: "Distributed" });
      hop(now, id(r, r.subject), [id(r, "informer")], a.processor, spotOf("listeners", r.subject, "add", 0.5), r);
    },
    PendingPushed: (r, now) =>
      hop(now, id(r, r.subject), [id(r, "informer")], spotOf("listeners", r.subject, "add", 1), spotOf("listeners", r.subject, "pending", 0.2), r, { bend: "straight" }),
    PendingPopped: (r, now) =>
      hop(now, id(r, r.subject), [], spotOf("listeners", r.subject, "pending", 0.5), spotOf("listeners", r.subject, "pending", 1), r, { bend: "straight" }),
    NextSent: (r, now) =>
      hop(now, id(r, r.subject), [id(r, "informer")], spotOf("listeners", r.subject, "add", 1), spotOf("listeners", r.subject, "next", 0.5), r, { bend: "straight" }),
    HandlerCalled(r, now) {
      const y = spotOf("listeners", r.subject, "next", 1)[1];
      const spot = [g.boxes.handler.X + g.boxes.handler.W / 2, y];
      hop(now, id(r, r.subject), [id(r, "informer")], spotOf("listeners", r.subject, "next", 1), spot, r, { bend: "straight", colour: "delivered", label: label(r) });
      flash(now, id(r, r.subject), spot, "delivered", 20);
      chains.set(`called|${objectKey(r.key ?? "")}`, chains.get(id(r, r.subject)));
    },
    WorkAdded(r, now) {
      const key = objectKey(r.key ?? "");
      const to = spotOf("workqueues", r.subject, "workqueue", 0);
      if (scene.lanes.workqueues.get(r.subject)?.lane?.subject.counts.ReflectorWatching) {
        chains.delete(`work|${key}|${r.subject}`);
        flash(now, "", to, "moving", 12); // its owner watches by itself: the key did not come through these handlers
        return;
      }
      hop(now, `work|${key}|${r.subject}`, [`called|${key}`], [g.boxes.handler.X, to[1]], to, { ...r, type: "Sync" }, { fresh: true });
    },
    WorkGot: (r, now) => {
      const key = objectKey(r.key ?? "");
      hop(now, `work|${key}|${r.subject}`, [], spotOf("workqueues", r.subject, "workqueue", 0), spotOf("workqueues", r.subject, "workqueue", 1), { ...r, type: "Sync" }, { bend: "straight" });
    },
    Reconciled(r, now) {
      if (!/bound|done|created|deleted/.test(r.text ?? "")) return; // nothing was written: nothing goes up the loop
      const chain = `work|${objectKey(r.key ?? "")}|${r.subject}`;
      hop(now, chain, [], [g.boxes.workqueue.X, g.clientAxis], [g.loopX, g.clientAxis - 14], { ...r, type: "Sync" }, { bend: "straight" });
      hop(now, chain, [], a.loop, [g.loopX, g.serverAxis + 10], { ...r, type: "Sync" }, { bend: "straight" });
      hop(now, chain, [], a.loop, a.http, { ...r, type: "Sync" }, { bend: "straight" });
      chains.delete(chain);
    },
    WatcherForced(r, now) {
      hop(now, `forced|${r.seq}`, [], spotOf("watchers", r.subject, "input", 0), [g.width, spotOf("watchers", r.subject, "input", 0)[1]], { type: "ERROR" }, { colour: "anomaly", always: true, label: "closed", fades: true });
    },
    ReflectorBackoff: (r, now) => flash(now, "", r.subject === "cacher" ? a["etcd3-out"] : a.reflector, "anomaly", 40),
    RingResize: (r, now) => flash(now, "", a.ring, "anomaly", 96),
    DispatchBlocked: (r, now) => flash(now, "", a.dispatch, "anomaly", 34),
    CacherNotReady: (r, now) => flash(now, "", a.incoming, "anomaly", 40),
    WatchChanError: (r, now) => flash(now, "", a.decode, "anomaly", 50),
  };

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
    if (hops.length + flashes.length === 0 && !painted) return;
    painted = hops.length + flashes.length > 0;
    const scale = canvas.width / g.width;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    for (const f of flashes) if (now >= f.t0) drawFlash(f, (now - f.t0) / f.ms);
    const one = reduced() ? drawStill : drawHop;
    let left = alive;
    for (const h of hops) if (now >= h.t0 && (h.followed || left-- > 0)) one(h, now);
  }

  function drawFlash(f, t) {
    ctx.globalAlpha = (1 - t) * 0.9;
    ctx.strokeStyle = colours[f.colour];
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
        ctx.fillStyle = colours[h.colour];
        ctx.beginPath();
        ctx.arc(x, y, 7 - i * 0.9, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
    ctx.globalAlpha = h.fades ? 1 - t * t : 1;
    stamp(h, place(h, Math.min(1, t)));
    ctx.globalAlpha = 1;
  }

  // drawStill is for those who asked for no motion: the token is where it arrived, and its outline fades.
  function drawStill(h, now) {
    ctx.globalAlpha = Math.max(0, 1 - (now - h.t0) / 700);
    stamp(h, h.b);
    ctx.globalAlpha = 1;
  }

  function stamp(h, [x, y]) {
    const half = 11;
    ctx.drawImage(spriteOf(h.shape, h.colour), x - half, y - half, 2 * half, 2 * half);
    if (h.followed) {
      ctx.strokeStyle = colours.followed;
      ctx.lineWidth = 2;
      for (const r of [12, 16]) {
        ctx.beginPath();
        ctx.arc(x, y, r, 0, 2 * Math.PI);
        ctx.stroke();
      }
    }
    if (!h.label) return;
    ctx.font = "600 14px system-ui, sans-serif";
    ctx.textAlign = x > g.width - 90 ? "right" : "center";
    ctx.lineWidth = 4;
    ctx.lineJoin = "round";
    ctx.strokeStyle = colours.halo;
    ctx.strokeText(h.label, x, y - 14);
    ctx.fillStyle = colours.ink;
    ctx.fillText(h.label, x, y - 14);
  }

  // spriteOf returns a token as an image, drawn once for a theme and a size.
  function spriteOf(shape, colour) {
    const name = `${shape} ${colour}`;
    const known = sprites.get(name);
    if (known) return known;
    const scale = Math.max(1, canvas.width / g.width) * 2;
    const sprite = document.createElement("canvas");
    sprite.width = sprite.height = Math.ceil(22 * scale);
    const c = sprite.getContext("2d");
    c.setTransform(scale, 0, 0, scale, sprite.width / 2, sprite.height / 2);
    outline(c, shape);
    c.lineWidth = 2.5;
    c.strokeStyle = colours.halo;
    c.stroke();
    c.fillStyle = shape === "synthetic" ? colours.halo : colours[colour];
    c.fill();
    if (shape === "synthetic") {
      c.setLineDash([3.2, 2.6]);
      c.lineWidth = 2.4;
      c.strokeStyle = colours[colour];
      c.stroke();
    } else {
      sign(c, shape);
      c.lineWidth = 2.2;
      c.lineCap = "round";
      c.strokeStyle = colours.paper;
      c.stroke();
    }
    sprites.set(name, sprite);
    return sprite;
  }

  function sweep(now) {
    swept = now;
    for (const [key, chain] of chains) if (now - chain.free > forgotten) chains.delete(key);
  }

  function clear() {
    hops = [];
    flashes = [];
    chains.clear();
  }

  // behind is how many ms after its record the last token will have arrived.
  function behind(now) {
    let latest = now;
    for (const h of hops) latest = Math.max(latest, h.t1);
    return latest - now;
  }

  new ResizeObserver(resize).observe(canvas);
  resize();
  restyle();
  return { records, draw, clear, restyle, behind, get alive() { return hops.length; }, get level() { return level; }, get every() { return every; } };
}
