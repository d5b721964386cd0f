// The flow: what is drawn of a stream that is too fast for tokens. Each way has stripes, the wider the more passes (by
// the logarithm), the faster the more passes; the number beside it is what was counted in the last second, exactly.

// Stripes are not looked at one by one, and where there are few cores they are the pipeline's before they are ours.
export const flowPeriod = navigator.hardwareConcurrency > 2 ? 50 : 150; // ms between two drawings
const stripe = 24; // units from one stripe to the next
const fastest = (0.45 * stripe) / flowPeriod; // units a millisecond: faster, they would seem to run backwards
const second = 1000; // ms
const apart = 100; // ms from one look at the counters to the next, at least

// newFlow returns {look(res, now), sums(now), draw(ctx, now, brush, still), clear()}.
export function newFlow(scene) {
  const g = scene.geometry;
  const a = g.anchors;
  const looks = []; // {at, counts} of the last second, oldest first
  let travelled = 0; // of the stripes
  let drawnAt = 0;

  const roomOf = { watchers: [g.lane, "watcher"], listeners: [g.listen, "listener"] };
  // row is where a lane is drawn: those without a place of their own share the last.
  const row = (kind, subject) =>
    Math.min(scene.lanes[kind].get(subject)?.lane?.index ?? Infinity, roomOf[kind][0].room - 1);
  const lane = (kind, subject, x) => {
    const [size, box] = roomOf[kind];
    return [g.boxes[box].X + x, g.boxes[box].Y + row(kind, subject) * size.height + 26];
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
    InputSent: (r) => [
      `input ${row("watchers", r.subject)}`, [lane("watchers", r.subject, 0), lane("watchers", r.subject, 104)],
    ],
    ResultSent: (r) => [
      `result ${row("watchers", r.subject)}`, [lane("watchers", r.subject, 114), lane("watchers", r.subject, 218)],
    ],
    FrameWritten: (r) => [
      `out ${row("watchers", r.subject)}`,
      [
        lane("watchers", r.subject, 218),
        [ours(r) ? scene.edges.wireX : scene.edges.right, lane("watchers", r.subject, 0)[1]],
      ],
    ],
    FrameDecoded: (r) => r.subject === scene.informer && ["wire", [[g.wireX, 120], [g.wireX, g.clientAxis - 10]]],
    ReflectorReceived: (r) => r.subject === scene.informer && [
      "reflector", [[1224, g.clientAxis], [1050, g.clientAxis]],
    ],
    FIFOAdded: (r) => r.subject === scene.informer && ["fifo", [[1050, g.clientAxis], [906, g.clientAxis]]],
    IndexerUpdated: () => ["indexer", [[906, g.clientAxis], [882, g.clientAxis]]],
    Distributed: () => ["processor", [[758, g.clientAxis], [742, g.clientAxis]]],
    AddReceived: (r) => [
      `add ${row("listeners", r.subject)}`, [lane("listeners", r.subject, 300), lane("listeners", r.subject, 268)],
    ],
    HandlerCalled: (r) => [
      `call ${row("listeners", r.subject)}`, [lane("listeners", r.subject, 32), lane("listeners", r.subject, -16)],
    ],
  };
  // owned are the points whose way is that of their subject.
  const owned = new Set([
    "InputSent", "ResultSent", "FrameWritten", "FrameDecoded", "ReflectorReceived", "FIFOAdded", "AddReceived",
    "HandlerCalled",
  ]);
  const ours = (r) => scene.serving.has(r.subject);

  // look reads the counters of a resource: what has passed a way is what they have grown by.
  function look(res, now) {
    while (looks[0]?.at < now - second - apart) looks.shift();
    if (now - (looks.at(-1)?.at ?? -Infinity) < apart) return;
    const counts = new Map(); // by record: {r, n}
    const note = (id, r, n = 0) => counts.set(`${r.point} ${id}`, { r, n });
    for (const point of Object.keys(ways)) {
      if (!owned.has(point)) note("", { point }, res.points[point]);
      else for (const [subject, s] of Object.entries(res.subjects)) {
        note(`${subject}@${s.opened}`, { point, subject }, s.counts[point]);
      }
    }
    looks.push({ at: now, counts });
  }

  // sums returns what passed each way in the last second.
  function sums(now) {
    const all = new Map();
    const [first, last] = [looks[0], looks.at(-1)];
    if (!last || now - last.at > second) return all;
    for (const [id, { r, n }] of last.counts) {
      const passed = n - (first.counts.get(id)?.n ?? 0);
      const way = passed > 0 && ways[r.point](r);
      if (way) all.set(way[0], { n: (all.get(way[0])?.n ?? 0) + passed, corners: way[1] });
    }
    return all;
  }

  function draw(ctx, now, brush, still) {
    const ms = Math.min(100, now - drawnAt);
    drawnAt = now;
    travelled += ms;
    for (const { n, corners } of sums(now).values()) drawWay(ctx, n, corners, brush, still);
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  }

  function drawWay(ctx, n, corners, { colours, letters }, still) {
    const [[ax, ay], [bx, by]] = corners.map(scene.place);
    const width = Math.min(12, 1.5 + 2.2 * Math.log10(1 + n));
    const speed = fastest * Math.min(1, 0.2 + 0.2 * Math.log10(1 + n));
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
    const words = letters.of(short(n));
    words.draw(ctx, (ax + bx - words.w) / 2, ay);
  }

  return { look, draw, sums, clear: () => (looks.length = 0) };
}

// short writes a rate in as few characters as a stripe has room for.
export function short(n) {
  return n < 1000 ? `${n}/s` : `${(n / 1000).toFixed(n < 10000 ? 1 : 0)}k/s`;
}
