// The flow: what is drawn of a stream that is too fast for tokens. Each way has stripes, the wider the more passes (by
// the logarithm), the faster the more passes; the number beside it is what was counted in the last second, exactly.

/**
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {[ax: number, ay: number, bx: number, by: number]} Ends of a way
 * @typedef {{ point: probe.PointName, subject?: string, n: number }} Count
 * @typedef {{ [point in probe.PointName]?: Ends }} Ways
 */

// Stripes are not looked at one by one, and where there are few cores they are the pipeline's before they are ours.
export const flowPeriod = navigator.hardwareConcurrency > 2 ? 50 : 150; // ms between two drawings
const stripe = 24; // units from one stripe to the next
const fastest = (0.45 * stripe) / flowPeriod; // units a millisecond: faster, they would seem to run backwards
const second = 1000; // ms
const apart = 100; // ms from one look at the counters to the next, at least

// lanesOf are the ways that each lane has one of, from and to how far in the lane; wire stands for where it leaves.
const wire = Infinity;
/** @param {stage.Geometry} g @returns {Map<probe.PointName, ["watchers" | "listeners", number, number]>} */
const lanesOf = ({ pipes: { input, result, add, next }, nodes }) => new Map([
  ["InputSent", ["watchers", input.X, input.X + input.W]], ["ResultSent", ["watchers", result.X, result.X + result.W]],
  ["FrameWritten", ["watchers", result.X + result.W, wire]],
  ["AddReceived", ["listeners", add.X + add.W, add.X]], ["PendingPushed", ["listeners", add.X + add.W, add.X]],
  ["HandlerCalled", ["listeners", next.X + next.W, 2 * nodes.run]],
]);
// oneInformers are the ways of the informer that is drawn: of several one is.
/** @type {Set<probe.PointName>} */
const oneInformers = new Set(["FrameDecoded", "ReflectorReceived", "FIFOAdded"]);

// waysOf are the other ones, from one point of the wide stage to another.
/** @param {stage.Geometry} g @returns {Ways} */
function waysOf({ boxes, pipes, ring, turns, wireX, serverAxis: server, clientAxis: client }) {
  const through = (/** @type {stage.Pipe} */ { X, Y, W, H }) => /** @type {Ends} */ ([X, Y + H / 2, X + W, Y + H / 2]);
  const right = (/** @type {{ X: number, W: number }} */ { X, W }) => X + W;
  const [, inside] = through(pipes["etcd3-result"]);
  return {
    TxnCommitted: [right(boxes.http), server, boxes.etcd.X, server],
    Etcd3IncomingSent: through(pipes["etcd3-incoming"]), Etcd3ResultSent: through(pipes["etcd3-result"]),
    RingAppend: [right(boxes.etcd3), inside, ring.x - ring.out, inside],
    StoreUpdate: [ring.x + ring.out, ring.y, boxes.store.X, ring.y],
    IncomingSent: [right(boxes.store), server, right(pipes.incoming), server],
    IncomingReceived: [right(pipes.incoming), server, ...turns["hub-in"]],
    FrameDecoded: [...turns["wire-above"], wireX, client - 10],
    ReflectorReceived: [...turns["wire-end"], boxes.reflector.X, client],
    FIFOAdded: [boxes.reflector.X, client, pipes.fifo.X, client],
    IndexerUpdated: [pipes.fifo.X, client, right(boxes.indexer), client],
    Distributed: [boxes.indexer.X, client, ...turns["processor-in"]],
  };
}

// tallOf are those that turn a corner on the tall stage, as its rails do.
/** @param {stage.Geometry} g @returns {Ways} */
const tallOf = ({ anchors: a, boxes: { store, incoming, fifo, indexer, processor }, pipes, ring, clientAxis }) => ({
  StoreUpdate: [ring.x - ring.out + 3, ring.y, store.X + store.W, ring.y],
  IncomingSent: [a.store[0], store.Y + store.H, pipes.incoming.X + pipes.incoming.W, incoming.Y],
  IndexerUpdated: [fifo.X + 52, fifo.Y + fifo.H, indexer.X + 8, indexer.Y],
  Distributed: [indexer.X + indexer.W, clientAxis, processor.X, clientAxis],
});

export class Flow {
  /** @param {Scene} scene */
  constructor(scene) {
    this.scene = scene;
    this.ways = waysOf(scene.geometry);
    this.tall = tallOf(scene.geometry);
    this.lanes = lanesOf(scene.geometry);
    this.points = /** @type {probe.PointName[]} */ (Object.keys(this.ways));
    /** @type {{ at: number, counts: Map<string, Count> }[]} */
    this.looks = []; // of the last second, oldest first
    this.drawnAt = 0;
    this.travelled = 0; // of the stripes
  }

  clear() { this.looks.length = 0; }

  // wayOf returns the name of the way that a record of a point takes, and its ends; null: it is not drawn.
  /**
   * @param {probe.PointName} point @param {string | undefined} subject @returns {{ name: string, ends: Ends } | null}
   */
  wayOf(point, subject) {
    const { scene } = this;
    const own = (scene.tall && this.tall[point]) || this.ways[point];
    if (own) return oneInformers.has(point) && subject !== scene.informer ? null : { name: point, ends: own };
    const [kind, from, to] = this.lanes.get(point) ?? ["watchers", 0, 0];
    const g = scene.geometry;
    const [size, box] = kind === "watchers" ? [g.lane, g.boxes.watcher] : [g.listen, g.boxes.listener];
    // those without a place of their own share the last
    const row = Math.min(scene.places[kind].lanes.get(subject ?? "")?.index ?? Infinity, size.room - 1);
    const y = box.Y + row * size.height + g.laneAxis;
    const end = to !== wire ? box.X + to : scene.serving.has(subject ?? "") ? scene.edges.wireX : scene.edges.right;
    return { name: `${kind} ${from} ${row}`, ends: [box.X + from, y, end, y] };
  }

  // look reads the counters of a resource: what has passed a way is what they have grown by.
  /** @param {fold.Resource} res @param {number} now */
  look(res, now) {
    const { looks } = this;
    while (looks.length > 0 && looks[0].at < now - second - apart) looks.shift();
    if (now - (looks.at(-1)?.at ?? -Infinity) < apart) return;
    /** @type {Map<string, Count>} */
    const counts = new Map(); // by point and subject
    for (const point of this.points) {
      if (!oneInformers.has(point)) counts.set(point, { point, n: res.points[point] ?? 0 });
    }
    for (const [subject, s] of Object.entries(res.subjects)) {
      for (const point of [...oneInformers, ...this.lanes.keys()]) {
        const n = s.counts[point];
        if (n) counts.set(`${point} ${subject}@${s.opened}`, { point, subject, n });
      }
    }
    looks.push({ at: now, counts });
  }

  // sums returns what passed each way in the last second, and its ends.
  /** @param {number} now */
  sums(now) {
    /** @type {Map<string, { n: number, ends: Ends }>} */
    const all = new Map();
    const [first, last] = [this.looks[0], this.looks.at(-1)];
    if (!last || now - last.at > second) return all;
    for (const [id, { point, subject, n }] of last.counts) {
      const passed = n - (first.counts.get(id)?.n ?? 0);
      const way = passed > 0 ? this.wayOf(point, subject) : null;
      if (way) all.set(way.name, { n: (all.get(way.name)?.n ?? 0) + passed, ends: way.ends });
    }
    return all;
  }

  /** @param {number} now @param {import("./paint.js").Brush} brush @param {boolean} still */
  draw(now, brush, still) {
    this.travelled += Math.min(100, now - this.drawnAt);
    this.drawnAt = now;
    for (const { n, ends } of this.sums(now).values()) this.drawWay(n, ends, brush, still);
  }

  /** @param {number} n @param {Ends} ends @param {import("./paint.js").Brush} brush @param {boolean} still */
  drawWay(n, [fromX, fromY, toX, toY], brush, still) {
    const { ctx, colours } = brush;
    const [[ax, ay], [bx, by]] = [this.scene.place([fromX, fromY]), this.scene.place([toX, toY])];
    const speed = fastest * Math.min(1, 0.2 + 0.2 * Math.log10(1 + n));
    const way = new Path2D(`M${ax} ${ay}L${bx} ${by}`);
    ctx.save();
    Object.assign(ctx, { strokeStyle: colours.moving, lineWidth: Math.min(12, 1.5 + 2.2 * Math.log10(1 + n)) });
    Object.assign(ctx, { lineCap: "butt", globalAlpha: 0.28, textAlign: "center" });
    ctx.stroke(way);
    Object.assign(ctx, { globalAlpha: 0.95, lineDashOffset: still ? 0 : -((this.travelled * speed) % stripe) });
    ctx.setLineDash([stripe / 2, stripe / 2]);
    ctx.stroke(way);
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
    if (Math.abs(bx - ax) >= 60 && Math.abs(by - ay) <= 30) brush.write(short(n), (ax + bx) / 2, ay);
    ctx.restore();
  }
}

// short writes a rate in as few characters as a stripe has room for.
/** @param {number} n */
const short = (n) => (n < 1000 ? `${n}/s` : `${(n / 1000).toFixed(n < 10000 ? 1 : 0)}k/s`);
