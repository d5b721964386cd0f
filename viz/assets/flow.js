// The flow: what is drawn of a stream that is too fast for tokens. Each way has stripes, the wider the more passes (by the
// logarithm), the faster the more passes; the number beside it is what was counted in the last second, exactly.

import { agentOf } from "./lanes.js";

const stripe = 16; // units from one stripe to the next
const bucket = 100; // ms
const buckets = 10;

// newFlow returns {count(list, now), draw(ctx, now, colours, still)}.
export function newFlow(scene) {
  const g = scene.geometry;
  const a = g.anchors;
  const spent = []; // [time, counts by way] of the last second, oldest first
  let travelled = 0; // of the stripes
  let drawnAt = 0;

  const lane = (kind, subject, x) => {
    const el = scene.lanes[kind].get(subject);
    const size = kind === "watchers" ? g.lane : g.listen;
    const box = g.boxes[kind === "watchers" ? "watcher" : "listener"];
    return [box.X + x, box.Y + Math.min(el?.lane?.index ?? 0, size.room - 1) * size.height + 26];
  };
  // ways by point: the name of the way, and its corners. A way with a subject is one for each lane.
  const ways = {
    TxnCommitted: () => ["commit", [[g.boxes.http.X + g.boxes.http.W, g.serverAxis], [g.boxes.etcd.X, g.serverAxis]]],
    Etcd3IncomingSent: () => ["etcd3", [[a["etcd3-incoming"][0], 102], [366, 102]]],
    Etcd3ResultSent: () => ["decoded", [[a["etcd3-result"][0], 204], [366, 204]]],
    RingAppend: () => ["ring", [[424, 204], [g.ring.x - g.ring.out, 204]]],
    StoreUpdate: () => ["store", [[g.ring.x + g.ring.out, g.ring.y], [g.boxes.store.X, g.ring.y]]],
    IncomingSent: () => ["incoming", [[766, g.serverAxis], [858, g.serverAxis]]],
    IncomingReceived: () => ["taken", [[858, g.serverAxis], [888, g.serverAxis]]],
    InputSent: (r) => [`input ${r.subject}`, [lane("watchers", r.subject, 0), lane("watchers", r.subject, 104)]],
    ResultSent: (r) => [`result ${r.subject}`, [lane("watchers", r.subject, 114), lane("watchers", r.subject, 218)]],
    FrameWritten: (r) => [`out ${r.subject}`, [lane("watchers", r.subject, 218), [ours(r) ? g.wireX : g.width, lane("watchers", r.subject, 0)[1]]]],
    FrameDecoded: (r) => r.subject === scene.informer && ["wire", [[g.wireX, 120], [g.wireX, g.clientAxis - 10]]],
    ReflectorReceived: (r) => r.subject === scene.informer && ["reflector", [[1224, g.clientAxis], [1050, g.clientAxis]]],
    FIFOAdded: (r) => r.subject === scene.informer && ["fifo", [[1050, g.clientAxis], [906, g.clientAxis]]],
    IndexerUpdated: () => ["indexer", [[906, g.clientAxis], [882, g.clientAxis]]],
    Distributed: () => ["processor", [[758, g.clientAxis], [742, g.clientAxis]]],
    AddReceived: (r) => [`add ${r.subject}`, [lane("listeners", r.subject, 300), lane("listeners", r.subject, 268)]],
    HandlerCalled: (r) => [`call ${r.subject}`, [lane("listeners", r.subject, 32), lane("listeners", r.subject, -16)]],
  };
  const ours = (r) => agentOf(scene.lanes.watchers.get(r.subject)?.lane?.subject ?? { texts: {} }).includes("informer");

  function count(list, now) {
    let last = spent.at(-1);
    if (!last || now - last.at > bucket) spent.push((last = { at: now, ways: new Map() }));
    while (spent.length > buckets) spent.shift();
    for (const r of list) {
      const way = ways[r.point]?.(r);
      if (!way) continue;
      const known = last.ways.get(way[0]);
      if (known) known.n++;
      else last.ways.set(way[0], { n: 1, corners: way[1] });
    }
  }

  // sums returns what passed each way in the last second.
  function sums(now) {
    const all = new Map();
    for (const { at, ways: counted } of spent) {
      if (now - at > bucket * buckets) continue;
      for (const [name, { n, corners }] of counted) {
        const known = all.get(name);
        if (known) known.n += n;
        else all.set(name, { n, corners });
      }
    }
    return all;
  }

  function draw(ctx, now, colours, still) {
    const ms = Math.min(100, now - drawnAt);
    drawnAt = now;
    travelled += ms;
    for (const { n, corners } of sums(now).values()) drawWay(ctx, n, corners, colours, still);
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  }

  function drawWay(ctx, n, corners, colours, still) {
    const [[ax, ay], [bx, by]] = corners;
    const width = Math.min(12, 1.5 + 2.2 * Math.log10(1 + n));
    const speed = Math.min(0.5, 0.04 + n / 24000); // units a millisecond
    ctx.beginPath();
    ctx.moveTo(ax, ay);
    ctx.lineTo(bx, by);
    ctx.strokeStyle = colours.moving;
    ctx.lineWidth = width;
    ctx.lineCap = "butt";
    ctx.globalAlpha = 0.28;
    ctx.setLineDash([]);
    ctx.stroke();
    ctx.globalAlpha = 0.95;
    ctx.setLineDash([stripe * 0.5, stripe * 0.5]);
    ctx.lineDashOffset = still ? 0 : -((travelled * speed) % stripe);
    ctx.stroke();
    ctx.setLineDash([]);
    if (Math.abs(bx - ax) < 60 || Math.abs(by - ay) > 30) return;
    ctx.globalAlpha = 1;
    ctx.font = "600 14px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.lineWidth = 4;
    ctx.lineJoin = "round";
    ctx.strokeStyle = colours.halo;
    ctx.fillStyle = colours.ink;
    const words = short(n);
    ctx.strokeText(words, (ax + bx) / 2, ay + 5);
    ctx.fillText(words, (ax + bx) / 2, ay + 5);
  }

  return { count, draw, sums, clear: () => (spent.length = 0) };
}

// short writes a rate in as few characters as a stripe has room for.
export function short(n) {
  return n < 1000 ? `${n}/s` : `${(n / 1000).toFixed(n < 10000 ? 1 : 0)}k/s`;
}
