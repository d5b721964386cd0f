// The drawing of the space-time view: lines, marks, arrows and spans as SVG, from what handovers.js has traced. Nothing here
// knows how that came about.

import { cut, mark, pool, put, say, svg, toMiddle } from "../lib/dom.js";
import { objectKey, sentence } from "../log/fold.js";
import { milliseconds } from "../lib/times.js";
import { shapeOf } from "../stage/tokens.js";

export const room = 80; // columns
const area = { left: 204, right: 1266, top: 46, bottom: 474 }; // of the stage's units
const pitches = [16, 30]; // units from line to line, at least and at most
const grace = 250e6; // ns of the log that a write to a client may last
const tick = 10; // columns from one time to the next

const deeds = { // of those whose line a span is on
  room: "waits for room", taker: "waits for a receiver", lock: "waits for a lock", version: "waits for a version",
  client: "writes to its client", return: "runs what it calls",
};
const throughs = { etcd: "by etcd's watch", wire: "over the wire", stream: "by hand: nothing lies between", add: "by hand, through addCh", next: "by hand, through nextCh" };

// newDrawing returns {paint(traced), showCursor(), blank(why)}: paint draws what was traced, which has a column at least,
// showCursor moves the cursor in it, and blank says why there is nothing to be drawn.
export function newDrawing(stage) {
  const { player, infos, scene, follow } = stage;
  const root = document.querySelector("#spacetime");
  const ground = document.querySelector(".ground");
  const part = (name) => root.querySelector(`.${name}`);
  let drawn = null; // what is painted
  let rows = 0; // lines that there is room for

  const columnX = (index) => area.left + ((index + 0.5) * (area.right - area.left)) / room;

  function blank(why) {
    drawn = null;
    mark(root, "blank", true);
    say(part("about"), why);
    put(root, "aria-label", `Space-time view: ${why}.`);
    put(root, "data-cursor", 0);
  }

  function paint(traced) {
    drawn = traced;
    const { columns, transfers, passages, spans } = drawn;
    const pitch = Math.min(pitches[1], Math.max(pitches[0], (area.bottom - area.top) / Math.max(1, drawn.lines.length)));
    rows = Math.floor((area.bottom - area.top) / pitch);
    const hidden = drawn.lines.length > rows ? drawn.lines.length - rows + 1 : 0;
    const places = new Map(drawn.lines.map((l, i) => [l.id, Math.min(i, rows - 1)]));
    const y = (l) => area.top + (places.get(l.id) + 0.5) * pitch;
    paintLines(hidden, y);
    const shown = new Set(columns);
    const whole = (list) => list.filter((each) => shown.has(each.sent) && shown.has(each.taken));
    const [handed, passed] = [whole(transfers), whole(passages)];
    paintSpans(spans, y, columns.length);
    paintArrows("transfers", handed, y, (t) => `through ${t.queue.replace(/@\d+/, "")}`);
    paintArrows("passages", passed, y, (p) => throughs[p.through]);
    paintRecords(columns, y);
    paintTimes(columns);
    paintThread(columns, y);
    mark(root, "blank", false);
    put(root, "data-from", columns[0]?.r.seq ?? 0);
    put(root, "data-to", columns.at(-1)?.r.seq ?? 0);
    put(root, "data-transfers", handed.length);
    put(root, "data-passages", passed.length);
    const took = columns.length > 1 ? milliseconds(columns.at(-1).r.t - columns[0].r.t) : "no time";
    const words = `${count(columns.length, "record")} on ${count(drawn.lines.length, "line")} in ${took}, ${handed.length} handed over`;
    say(part("about"), `${count(columns.length, "record")} in ${took}, one column each, not to scale`);
    put(root, "aria-label", `Space-time view: ${words}. The table below has the records in words.`);
    showNames();
    showCursor();
  }

  function paintLines(hidden, y) {
    const list = hidden > 0 ? drawn.lines.slice(0, rows) : drawn.lines;
    const paths = pool(part("lines"), list.length, () => svg("path"));
    const names = pool(part("names"), list.length, () => {
      const el = svg("text", { x: area.left - 10 });
      el.append(svg("tspan"), svg("title"));
      return el;
    });
    list.forEach((l, i) => {
      const rest = hidden > 0 && i === rows - 1;
      for (const el of [paths[i], names[i]]) mark(el, "place", l.place || rest);
      put(paths[i], "d", `M${area.left} ${y(l)}H${area.right}`);
      put(names[i], "y", y(l) + 4.5);
      say(names[i].querySelector("tspan"), rest ? `+${hidden} more` : l.title);
      say(names[i].querySelector("title"), rest ? `${hidden} lines more, for which there is no room` : l.place ? `${l.title}: any goroutine that reports there` : `${l.title}: the goroutine of that name`);
    });
  }

  function paintSpans(spans, y, n) {
    const some = spans.filter((s) => !s.from || s.from.index < n);
    put(root, "data-spans", some.length);
    const all = pool(part("spans"), some.length, () => {
      const el = svg("rect", { height: 8, rx: 2 });
      el.append(svg("title"));
      return el;
    });
    some.forEach((s, i) => {
      const x1 = s.from ? columnX(s.from.index) : area.left;
      const x2 = s.to && s.to.index < n ? columnX(s.to.index) : columnX(n - 1) + 6;
      put(all[i], "class", runs(s) ? "runs" : "waits");
      put(all[i], "x", x1);
      put(all[i], "y", y(s.line) - 4);
      put(all[i], "width", Math.max(1, x2 - x1));
      const took = s.to ? `, ${milliseconds(s.to.r.t - s.since)}` : "";
      say(all[i].querySelector("title"), `${s.line.title} ${deeds[s.kind]}${took}`);
    });
  }

  // runs reports whether a span is work of the goroutine that waits: code that it has called, a write that goes through.
  function runs(span) {
    const end = span.to?.r.t ?? drawn.columns.at(-1).r.t;
    return span.kind === "return" || (span.kind === "client" && end - span.since < grace);
  }

  function paintArrows(name, list, y, through) {
    const all = pool(part(name), list.length, () => {
      const el = svg("path", { class: `arrow ${name.slice(0, -1)}` });
      el.append(svg("title"));
      return el;
    });
    list.forEach((t, i) => {
      put(all[i], "d", arrow(columnX(t.sent.index), y(t.sent.line), columnX(t.taken.index), y(t.taken.line)));
      put(all[i], "data-sent", t.sent.r.seq);
      put(all[i], "data-taken", t.taken.r.seq);
      mark(all[i], "followed", follow.matches(t.sent.r));
      const back = t.taken.index < t.sent.index;
      mark(all[i], "back", back);
      const late = back ? ": the receiver wrote its record before the sender wrote its own, so the arrow points back" : `, ${milliseconds(t.taken.r.t - t.sent.r.t)}`;
      say(all[i].querySelector("title"), `${t.sent.r.type ?? ""} ${objectKey(t.sent.r.key ?? "")} ${through(t)}${late}`.trim());
    });
  }

  function paintRecords(columns, y) {
    const all = pool(part("marks"), columns.length, () => {
      const g = svg("g");
      g.append(svg("title"), svg("rect", { x: -6.5, y: -8, width: 13, height: 16, class: "target" }), svg("circle", { r: 2.6 }), svg("use", { x: -6.5, y: -6.5, width: 13, height: 13 }));
      return g;
    });
    columns.forEach(({ r, index, line }, i) => {
      const el = all[i];
      const info = infos.get(r.point);
      const carries = Boolean(info.queue && r.type);
      put(el, "transform", `translate(${columnX(index)} ${y(line)})`);
      put(el, "data-seq", r.seq);
      mark(el, "carries", carries || stage.isFlag(r));
      mark(el, "anomaly", stage.isFlag(r));
      mark(el, "followed", follow.matches(r));
      put(el.querySelector("use"), "href", `#token-${stage.isFlag(r) ? "error" : shapeOf(r.type)}`);
      say(el.querySelector("title"), `${r.seq}: ${cut(sentence(info, r), 200)}`);
    });
  }

  function paintTimes(columns) {
    const marks = columns.filter((c) => c.index % tick === 0);
    const all = pool(part("times"), marks.length, () => svg("text", { y: area.bottom + 22 }));
    marks.forEach((c, i) => {
      put(all[i], "x", columnX(c.index));
      say(all[i], i === 0 ? "0 ms" : `+${((c.r.t - columns[0].r.t) / 1e6).toFixed(2)}`);
    });
  }

  // paintThread joins the records of what is followed.
  function paintThread(columns, y) {
    const mine = follow.has() ? columns.filter((c) => follow.matches(c.r)) : [];
    put(part("thread"), "d", mine.map((c, i) => `${i ? "L" : "M"}${columnX(c.index)} ${y(c.line)}`).join(""));
  }

  // showNames keeps the names in sight where the view is drawn larger than its place and was moved.
  function showNames() {
    const width = root.getBoundingClientRect().width;
    const shift = width > 0 ? (ground.scrollLeft * scene.geometry.width) / width : 0;
    put(part("margin"), "transform", `translate(${shift} 0)`);
    put(part("shade"), "x", shift > 0 ? 0 : 14); // at rest within the frame
  }

  function showCursor() {
    const at = drawn.columns.findLast((c) => c.r.seq <= player.cursor)?.index ?? -1;
    put(part("cursor"), "x", columnX(at) - 6.5);
    put(part("cursor"), "visibility", at < 0 ? "hidden" : "inherit");
    put(part("future"), "x", columnX(at) + 6.5);
    put(part("future"), "width", Math.max(0, area.right - columnX(at) - 6.5));
    put(root, "data-cursor", drawn.columns[at]?.r.seq ?? 0);
    // For the last row of a room it is drawn larger than its place.
    const larger = ground.scrollWidth > ground.clientWidth || ground.scrollHeight > ground.clientHeight;
    if (at >= 0 && larger && player.mode === "frozen") toMiddle(ground, part("marks").children[at]);
  }

  ground.addEventListener("scroll", showNames, { passive: true });
  return { paint, showCursor, blank };
}

// arrow is the way from one mark to the tip before another. On one line it would hide in it: there it leaps.
function arrow(x1, y1, x2, y2) {
  const gap = 7;
  if (y1 === y2) return `M${x1} ${y1 - 5}Q${(x1 + x2) / 2} ${y1 - 15} ${x2 - Math.sign(x2 - x1) * 2} ${y2 - gap}`;
  const length = Math.hypot(x2 - x1, y2 - y1);
  return `M${x1} ${y1}L${x2 - ((x2 - x1) * gap) / length} ${y2 - ((y2 - y1) * gap) / length}`;
}

const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
