// @ts-nocheck
// The flow: what is drawn of a stream that is too fast for tokens. Each way has stripes, the wider the more passes (by
// the logarithm), the faster the more passes; the number beside it is what was counted in the last second, exactly.

// Stripes are not looked at one by one, and where there are few cores they are the pipeline's before they are ours.
export const flowPeriod = navigator.hardwareConcurrency > 2 ? 50 : 150; // ms between two drawings
const stripe = 24; // units from one stripe to the next
const fastest = (0.45 * stripe) / flowPeriod; // units a millisecond: faster, they would seem to run backwards
const second = 1000; // ms
const apart = 100; // ms from one look at the counters to the next, at least

// lanes are the ways that each lane has one of, from and to how far in the lane; wire stands for where it leaves.
const wire = Infinity;
const lanes = {
  InputSent: ["watchers", 0, 104], ResultSent: ["watchers", 114, 218], FrameWritten: ["watchers", 218, wire],
  AddReceived: ["listeners", 300, 268], PendingPushed: ["listeners", 300, 268], HandlerCalled: ["listeners", 32, -16],
};
// oneInformers are the ways of the informer that is drawn: of several one is.
const oneInformers = new Set(["FrameDecoded", "ReflectorReceived", "FIFOAdded"]);

// newFlow returns {look(res, now), sums(now), draw(ctx, now, brush, still), clear()}.
export function newFlow(scene) {
  const g = scene.geometry;
  const [a, server, client] = [g.anchors, g.serverAxis, g.clientAxis];
  const looks = []; // {at, counts} of the last second, oldest first
  let drawnAt = 0;
  let travelled = 0; // of the stripes
  // ways are the other ones, from one point of the wide stage to another.
  const ways = {
    TxnCommitted: [g.boxes.http.X + g.boxes.http.W, server, g.boxes.etcd.X, server],
    Etcd3IncomingSent: [a["etcd3-incoming"][0], 102, 366, 102], Etcd3ResultSent: [a["etcd3-result"][0], 204, 366, 204],
    RingAppend: [424, 204, g.ring.x - g.ring.out, 204],
    StoreUpdate: [g.ring.x + g.ring.out, g.ring.y, g.boxes.store.X, g.ring.y],
    IncomingSent: [766, server, 858, server], IncomingReceived: [858, server, 888, server],
    FrameDecoded: [g.wireX, 120, g.wireX, client - 10], ReflectorReceived: [1224, client, 1050, client],
    FIFOAdded: [1050, client, 906, client], IndexerUpdated: [906, client, 882, client],
    Distributed: [758, client, 742, client],
  };
  // tall are those that turn a corner on the tall stage, as its rails do.
  const tall = {
    StoreUpdate: [g.ring.x - g.ring.out + 3, g.ring.y, 766, g.ring.y], IncomingSent: [701, 246, 858, 62],
    IndexerUpdated: [950, 496, 766, 332], Distributed: [882, client, 668, client],
  };

  // wayOf returns the name of the way that a record of a point takes, and its ends; "" and none: it is not drawn.
  function wayOf(point, subject) {
    const own = (scene.tall && tall[point]) || ways[point];
    if (own) return oneInformers.has(point) && subject !== scene.informer ? ["", null] : [point, own];
    const [kind, from, to] = lanes[point];
    const [size, box] = kind === "watchers" ? [g.lane, g.boxes.watcher] : [g.listen, g.boxes.listener];
    // those without a place of their own share the last
    const row = Math.min(scene.places[kind].lanes.get(subject)?.index ?? Infinity, size.room - 1);
    const y = box.Y + row * size.height + 26;
    const end = to !== wire ? box.X + to : scene.serving.has(subject) ? scene.edges.wireX : scene.edges.right;
    return [`${kind} ${from} ${row}`, [box.X + from, y, end, y]];
  }

  // look reads the counters of a resource: what has passed a way is what they have grown by.
  function look(res, now) {
    while (looks[0]?.at < now - second - apart) looks.shift();
    if (now - (looks.at(-1)?.at ?? -Infinity) < apart) return;
    const counts = new Map(); // by point and subject: {point, subject, n}
    for (const point of Object.keys(ways)) {
      if (!oneInformers.has(point)) counts.set(point, { point, n: res.points[point] ?? 0 });
    }
    for (const [subject, s] of Object.entries(res.subjects)) {
      for (const point of [...oneInformers, ...Object.keys(lanes)]) {
        if (s.counts[point]) counts.set(`${point} ${subject}@${s.opened}`, { point, subject, n: s.counts[point] });
      }
    }
    looks.push({ at: now, counts });
  }

  // sums returns what passed each way in the last second, and its ends.
  function sums(now) {
    const all = new Map();
    const [first, last] = [looks[0], looks.at(-1)];
    if (!last || now - last.at > second) return all;
    for (const [id, { point, subject, n }] of last.counts) {
      const passed = n - (first.counts.get(id)?.n ?? 0);
      const [name, ends] = passed > 0 ? wayOf(point, subject) : ["", null];
      if (ends) all.set(name, { n: (all.get(name)?.n ?? 0) + passed, ends });
    }
    return all;
  }

  function draw(ctx, now, brush, still) {
    travelled += Math.min(100, now - drawnAt);
    drawnAt = now;
    for (const { n, ends } of sums(now).values()) drawWay(ctx, n, ends, brush, still);
  }

  function drawWay(ctx, n, ends, { colours, write }, still) {
    const [[ax, ay], [bx, by]] = [ends.slice(0, 2), ends.slice(2)].map(scene.place);
    const speed = fastest * Math.min(1, 0.2 + 0.2 * Math.log10(1 + n));
    const way = new Path2D(`M${ax} ${ay}L${bx} ${by}`);
    ctx.save();
    Object.assign(ctx, { strokeStyle: colours.moving, lineWidth: Math.min(12, 1.5 + 2.2 * Math.log10(1 + n)) });
    Object.assign(ctx, { lineCap: "butt", globalAlpha: 0.28, textAlign: "center" });
    ctx.stroke(way);
    Object.assign(ctx, { globalAlpha: 0.95, lineDashOffset: still ? 0 : -((travelled * speed) % stripe) });
    ctx.setLineDash([stripe / 2, stripe / 2]);
    ctx.stroke(way);
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
    if (Math.abs(bx - ax) >= 60 && Math.abs(by - ay) <= 30) write(short(n), (ax + bx) / 2, ay);
    ctx.restore();
  }

  return { look, draw, sums, clear: () => (looks.length = 0) };
}

// short writes a rate in as few characters as a stripe has room for.
const short = (n) => (n < 1000 ? `${n}/s` : `${(n / 1000).toFixed(n < 10000 ? 1 : 0)}k/s`);
