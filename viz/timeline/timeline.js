// @ts-nocheck
// The timeline: when how much happened, what must not be overlooked, and where we are. It is a slider: drag it, or move
// it by keys. What the ring's picture alone does not say stands on the stage, too: that a client was told 410 a moment
// ago, or that the ring has another size.

import { get } from "../lib/api.js";
import { $, asking, put, when } from "../dom/dom.js";
import { inks, newSheet, widthOf } from "../dom/canvas.js";
import { limits } from "../lib/limits.js";
import { clockText, marks } from "../lib/times.js";

const width = limits.bucketWidth; // ns
const period = 40; // ms between two drawings, while the viewer moves through the log
const livePeriod = 125; // ms between two drawings of what goes on by itself
const askPeriod = 2000; // ms between two questions for the index
const told = 8e9; // ns of the log's time that what happened is said on the stage
const gone = ["RequestAnswered", "FrameWritten"]; // they are flags when they say 410
const legend = `Records in each ${width / 1e9} s, and above them, darker, the changes; heights by the logarithm. ▲ ` +
  "is an anomaly. Click or drag to go there. It goes back ";
const font = "12px system-ui, sans-serif";

export function newTimeline({ player, scene, here, isFlag, says }) {
  const slider = $("#timeline");
  const sheet = newSheet(slider.querySelector("canvas"));
  const { ctx } = sheet;
  const select = $("#span");
  let buckets = []; // [number, first seq, records, changes], oldest first
  let flags = []; // {seq, t, point, resource, says}
  let counted = 0; // records up to here are in the buckets
  let passed = false; // there are records that did not come one by one
  let headT = 0;
  let headAt = 0;
  let end = 0; // right edge, ns
  let colours = {};
  let drawnAt = 0;

  const ask = asking(async () => {
    passed = false;
    index(await get("/viz/timeline"));
  });

  function clear() {
    [buckets, flags, counted, headT, passed] = [[], [], 0, 0, false];
  }

  // index takes the server's index, and adds what has come since.
  function index(line) {
    [buckets, flags, counted] = [line.buckets, line.flags, line.last];
    reached(line.t);
    add(player.tape.between(line.last + 1, player.head + 1));
  }

  // reached notes how far time has come.
  function reached(t) {
    if (t < headT) return;
    headT = t;
    headAt = performance.now();
  }

  function add(list) {
    if (list.length === 0) return;
    reached(list.at(-1).t);
    for (const r of list) {
      if (r.seq <= counted) continue;
      counted = r.seq;
      const number = Math.floor(r.t / width);
      if (buckets.length === 0 || buckets.at(-1)[0] < number) buckets.push([number, r.seq, 0, 0]);
      const bucket = buckets.at(-1);
      bucket[2]++;
      if (r.point === "RingAppend") bucket[3]++;
      if (isFlag(r)) flags.push({ seq: r.seq, t: r.t, point: r.point, resource: r.resource, says: says(r) });
    }
    let left = Math.max(0, buckets.length - limits.buckets); // or what has left the log, as the program forgets it
    while (buckets[left + 1]?.[1] <= player.oldest) left++;
    buckets.splice(0, left);
    flags = flags.filter((each) => each.seq >= player.oldest).slice(-limits.flags);
  }

  // skip is told of a sum: the server has counted what is in it.
  function skip({ state }) {
    reached(state.t);
    passed = true;
  }

  // edges returns the time at the left and the right edge.
  function edges(now) {
    const newest = player.recording ? headT : headT
      + Math.min(2000, Math.max(0, now - headAt)) * 1e6 * (player.worldPace ?? 1);
    const first = Math.max(0, (buckets[0]?.[0] ?? 0) * width);
    const whole = Math.max(1e9, newest - first);
    const shown = Math.min(Number(select.value) * 1e9 || whole, whole); // or "all"
    if (player.mode === "live" || end === 0 || shown === whole) end = newest;
    else if (!dragging) {
      const t = player.state?.t ?? newest;
      if (t > end) end = Math.min(newest, t + shown * 0.25);
      if (t < end - shown) end = Math.max(first + shown, t + shown * 0.75);
    }
    return [end - shown, end];
  }

  function seqAt(t) {
    const number = Math.floor(t / width);
    const b = buckets.findLast((each) => each[0] <= number);
    if (!b) return player.oldest;
    const part = b[0] === number ? t / width - number : 1;
    let seq = Math.min(player.head, Math.max(player.oldest, Math.round(b[1] - 1 + part * b[2])));
    for (let i = 0; i < 4000 && seq > player.oldest && player.tape.get(seq)?.t > t; i++) seq--;
    for (let i = 0; i < 4000 && seq < player.head && player.tape.get(seq + 1)?.t <= t; i++) seq++;
    return seq;
  }

  // ---- drawing

  function shown(res, state) {
    const lately = (points) => {
      const last = flags.findLast((f) => f.seq <= player.cursor && points.includes(f.point) && here(f));
      return last && state.t - last.t < told ? last : null;
    };
    const last = lately(gone);
    const { told: story } = scene; // which is about its own clients, and in this beat
    const tells = !story?.story || (last?.seq > story.from && story.members.some(({ word }) => word === "410"));
    put($("#ring-tray"), "visibility", last && tells ? "visible" : "hidden");
    scene.text("ring.resized", lately(["RingResize"]) ? "new size:" : "");
  }

  const restyle = () => (colours = inks("moving", "stored", "anomaly", "ink", "soft", "line", "panel"));

  function draw(now) {
    if (passed && player.mode === "live") ask(now, askPeriod);
    if (now - drawnAt < (player.mode === "live" ? livePeriod : period) && !dragging) return;
    drawnAt = now;
    const scale = window.devicePixelRatio || 1;
    const [w, h] = [ctx.canvas.width / scale, ctx.canvas.height / scale];
    const [from, to] = edges(now);
    const x = (t) => ((t - from) / (to - from)) * w;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    drawBars(x, w, h, from, to);
    drawTicks(x, h, from, to);
    for (const f of flags) if (f.t >= from && f.t <= to) drawFlag(x(f.t));
    const newest = player.mode === "live" && player.behind() === 0;
    drawCursor(Math.min(w - 1.5, Math.max(1.5, x(newest ? to : (player.state?.t ?? 0)))), h);
    sheet.show();
    tell();
  }

  function drawBars(x, w, h, from, to) {
    const shown = buckets.filter((b) => (b[0] + 1) * width > from && b[0] * width < to);
    const most = shown.reduce((m, b) => Math.max(m, b[2]), 20);
    const height = (n) => (n > 0 ? Math.max(2, ((h - 14) * Math.log1p(n)) / Math.log1p(most)) : 0);
    const pitch = (width / (to - from)) * w;
    const later = player.mode === "live" && player.behind() === 0 ? Infinity : (player.state?.t ?? Infinity);
    for (const b of shown) {
      ctx.globalAlpha = b[0] * width > later ? 0.4 : 1;
      for (const [n, ink] of [[b[2], colours.stored], [b[3], colours.moving]]) {
        ctx.fillStyle = ink;
        ctx.fillRect(x(b[0] * width), h - height(n), Math.max(1, pitch > 3 ? pitch - 1 : pitch), height(n));
      }
    }
    ctx.globalAlpha = 1;
  }

  function drawTicks(x, h, from, to) {
    Object.assign(ctx, { font, textBaseline: "middle" });
    for (const t of marks(from, to)) {
      ctx.fillStyle = colours.line;
      ctx.fillRect(x(t), 0, 1, h);
      ctx.fillStyle = colours.soft;
      const [text, left] = [clockText(t), Math.round(x(t)) + 3];
      if (left + widthOf(text, font) <= x(to)) ctx.fillText(text, left, 8); // and not half of it
    }
  }

  function drawFlag(x) {
    const path = new Path2D(`M${x} 2L${x + 6} 13L${x - 6} 13Z`);
    Object.assign(ctx, { fillStyle: colours.anomaly, strokeStyle: colours.panel, lineWidth: 1.5 });
    ctx.stroke(path);
    ctx.fill(path);
  }

  function drawCursor(x, h) {
    ctx.fillStyle = colours.ink;
    ctx.fillRect(x - 1, 0, 2, h);
    ctx.fill(new Path2D(`M${x - 5} ${h}L${x + 5} ${h}L${x} ${h - 8}Z`));
  }

  function tell() {
    put(slider, "aria-valuemin", player.oldest);
    put(slider, "aria-valuemax", player.head);
    put(slider, "aria-valuenow", player.cursor);
    const where = player.mode === "live" ? "live"
      : `${clockText(player.state?.t ?? 0, 3)}, ${player.behind()} records behind`;
    put(slider, "aria-valuetext", `record ${player.cursor}, ${where}`);
  }

  // ---- hands

  let dragging = false;
  // under returns what a pointer is at: a time, and an anomaly if it is at its flag; else null.
  const under = (event) => {
    const box = slider.getBoundingClientRect();
    const [from, to] = edges(performance.now());
    const t = from + (Math.min(box.width, Math.max(0, event.clientX - box.left)) / box.width) * (to - from);
    const near = (f) => Math.abs(f.t - t) <= (7 / box.width) * (to - from);
    return { t, flag: event.clientY - box.top > 16 ? null : flags.findLast(near) ?? null };
  };

  when(slider, "pointerdown", (event) => {
    if (event.button !== 0) return;
    slider.setPointerCapture(event.pointerId);
    slider.focus({ preventScroll: true });
    dragging = true;
    const { t, flag } = under(event);
    player.seek(flag?.seq ?? seqAt(t)); // a viewer who points at a flag means it
  });
  when(slider, "pointermove", (event) => {
    const { t, flag } = under(event);
    const all = player.recording ? "to the recording's beginning" : `${player.tape.room} records, as many as are kept`;
    put(slider, "title", flag ? flag.says : `${legend}${all}.`);
    if (dragging) player.seek(seqAt(t));
  });
  when(slider, "lostpointercapture", () => (dragging = false));
  when(slider, "keydown", (event) => {
    const [from, to] = edges(performance.now());
    const small = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -20, PageUp: 20 };
    const part = 0.005 * small[event.key];
    if (!part || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const t = (player.state?.t ?? to) + part * (to - from);
    const seq = seqAt(Math.max(0, t));
    player.seek(seq === player.target() ? seq + Math.sign(part) : seq); // never stuck between two records
  });

  new ResizeObserver(sheet.fit).observe(slider);
  sheet.fit();
  restyle();
  return {
    clear, index, add, arrived: add, skip, shown, draw, restyle,
    get flags() { return flags; }, get buckets() { return buckets; },
  };
}
