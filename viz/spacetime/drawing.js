// The drawing of the space-time view: lines, marks, arrows and spans as SVG, from what handovers.js has traced. Nothing
// here knows how that came about.

import { $, cut, mark, pool, put, say, svg, toMiddle, when } from "../lib/dom.js";
import { milliseconds } from "../lib/times.js";
import { objectKey } from "../log/fold.js";
import { shapeOf } from "../stage/tokens.js";

export const room = 80; // columns
const area = { left: 204, right: 1266, top: 46, bottom: 474 }; // of the stage's units
const pitches = [16, 30]; // units from line to line, at least and at most
const grace = 250e6; // ns of the log that a write to a client may last
const tick = 10; // columns from one time to the next

// deeds say what the line does on which a span is, by the kind of the wait.
const deeds = {
  room: "waits for room", taker: "waits for a receiver", lock: "waits for a lock", version: "waits for a version",
  client: "writes to its client", return: "runs what it calls",
};
const throughs = {
  etcd: "by etcd's watch", wire: "over the wire", stream: "by hand: nothing lies between",
  add: "by hand, through addCh", next: "by hand, through nextCh",
};

const columnX = (index) => area.left + ((index + 0.5) * (area.right - area.left)) / room;
const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

// newDrawing returns {paint(traced), showCursor(), blank(why)}: paint draws what was traced, which has a column at
// least, showCursor moves the cursor in it, and blank says why there is nothing to be drawn.
export function newDrawing(stage) {
  const { player, infos, scene, follow } = stage;
  const root = $("#spacetime");
  const ground = $(".ground");
  const part = (name) => root.querySelector(`.${name}`);
  let drawn = null; // what is painted

  function blank(why) {
    drawn = null;
    mark(root, "blank", true);
    say(part("about"), why);
    put(root, "aria-label", `Space-time view: ${why}.`);
    put(root, "data-cursor", 0);
  }

  // each draws one element of a layer for every item of a list, with a title.
  function each(name, list, make, fill) {
    const all = pool(part(name), list.length, () => {
      const el = make();
      if (!el.querySelector("title")) el.append(svg("title"));
      return el;
    });
    list.forEach((item, i) => fill(all[i], item, i, (text) => say(all[i].querySelector("title"), text)));
  }

  function paint(traced) {
    drawn = traced;
    const { columns, lines } = drawn;
    const height = area.bottom - area.top;
    const pitch = Math.min(pitches[1], Math.max(pitches[0], height / Math.max(1, lines.length)));
    const rows = Math.floor(height / pitch); // that there is room for
    const places = new Map(lines.map((l, i) => [l.id, Math.min(i, rows - 1)]));
    const y = (l) => area.top + (places.get(l.id) + 0.5) * pitch;
    const shown = new Set(columns);
    const whole = (list) => list.filter(({ sent, taken }) => shown.has(sent) && shown.has(taken));
    const [handed, passed] = [whole(drawn.transfers), whole(drawn.passages)];
    paintLines(lines.slice(0, rows), lines.length - rows, y);
    paintSpans(drawn.spans, y, columns);
    paintArrows("transfers", handed, y, (t) => `through ${t.queue.replace(/@\d+/, "")}`);
    paintArrows("passages", passed, y, (p) => throughs[p.through]);
    paintRecords(columns, y);
    const times = columns.filter((c) => c.index % tick === 0);
    each("times", times, () => svg("text", { y: area.bottom + 22 }), (el, c, i) => {
      put(el, "x", columnX(c.index));
      el.textContent = i === 0 ? "0 ms" : `+${((c.r.t - columns[0].r.t) / 1e6).toFixed(2)}`;
    });
    const mine = follow.has() ? columns.filter((c) => follow.matches(c.r)) : []; // the thread joins what is followed
    put(part("thread"), "d", mine.map((c, i) => `${i ? "L" : "M"}${columnX(c.index)} ${y(c.line)}`).join(""));
    mark(root, "blank", false);
    put(root, "data-from", columns[0].r.seq);
    put(root, "data-to", columns.at(-1).r.seq);
    put(root, "data-transfers", handed.length);
    put(root, "data-passages", passed.length);
    const took = columns.length > 1 ? milliseconds(columns.at(-1).r.t - columns[0].r.t) : "no time";
    const [records, on] = [count(columns.length, "record"), count(lines.length, "line")];
    say(part("about"), `${records} in ${took}, one column each, not to scale`);
    const words = `${records} on ${on} in ${took}, ${handed.length} handed over`;
    put(root, "aria-label", `Space-time view: ${words}. The table below has the records in words.`);
    showNames();
    showCursor();
  }

  // paintLines draws a line and its name for each of a list, the last for all that there is no room for.
  function paintLines(list, beyond, y) {
    const more = (i) => (beyond > 0 && i === list.length - 1 ? beyond + 1 : 0);
    const place = (l, i) => l.place || more(i) > 0;
    each("lines", list, () => svg("path"), (el, l, i) => {
      mark(el, "place", place(l, i));
      put(el, "d", `M${area.left} ${y(l)}H${area.right}`);
    });
    const name = () => {
      const el = svg("text", { x: area.left - 10 });
      el.append(svg("tspan"));
      return el;
    };
    each("names", list, name, (el, l, i, title) => {
      mark(el, "place", place(l, i));
      put(el, "y", y(l) + 4.5);
      say(el.querySelector("tspan"), more(i) ? `+${more(i)} more` : l.title);
      const whose = l.place ? "any goroutine that reports there" : "the goroutine of that name";
      title(more(i) ? `${more(i)} lines more, for which there is no room` : `${l.title}: ${whose}`);
    });
  }

  function paintSpans(spans, y, columns) {
    const n = columns.length;
    const some = spans.filter((s) => !s.from || s.from.index < n);
    put(root, "data-spans", some.length);
    each("spans", some, () => svg("rect", { height: 8, rx: 2 }), (el, s, i, title) => {
      const from = s.from ? columnX(s.from.index) : area.left;
      const to = s.to && s.to.index < n ? columnX(s.to.index) : columnX(n - 1) + 6;
      const end = s.to?.r.t ?? columns.at(-1).r.t;
      // A goroutine also works while it waits for code that it has called, and for a write that goes through.
      const runs = s.kind === "return" || (s.kind === "client" && end - s.since < grace);
      put(el, "class", runs ? "runs" : "waits");
      put(el, "x", from);
      put(el, "y", y(s.line) - 4);
      put(el, "width", Math.max(1, to - from));
      title(`${s.line.title} ${deeds[s.kind]}${s.to ? `, ${milliseconds(s.to.r.t - s.since)}` : ""}`);
    });
  }

  function paintArrows(name, list, y, through) {
    each(name, list, () => svg("path", { class: `arrow ${name.slice(0, -1)}` }), (el, arrow, i, title) => {
      const { sent, taken } = arrow;
      const back = taken.index < sent.index;
      put(el, "d", wayOf(columnX(sent.index), y(sent.line), columnX(taken.index), y(taken.line)));
      put(el, "data-sent", sent.r.seq);
      put(el, "data-taken", taken.r.seq);
      mark(el, "followed", follow.matches(sent.r));
      mark(el, "back", back);
      const late = back
        ? ": the receiver wrote its record before the sender wrote its own, so the arrow points back"
        : `, ${milliseconds(taken.r.t - sent.r.t)}`;
      title(`${sent.r.type ?? ""} ${objectKey(sent.r.key ?? "")} ${through(arrow)}${late}`.trim());
    });
  }

  function paintRecords(columns, y) {
    const make = () => {
      const g = svg("g");
      const target = svg("rect", { x: -6.5, y: -8, width: 13, height: 16, class: "target" });
      g.append(target, svg("circle", { r: 2.6 }), svg("use", { x: -6.5, y: -6.5, width: 13, height: 13 }));
      return g;
    };
    each("marks", columns, make, (el, { r, index, line }, i, title) => {
      const info = infos.get(r.point);
      const flag = stage.isFlag(r);
      put(el, "transform", `translate(${columnX(index)} ${y(line)})`);
      put(el, "data-seq", r.seq);
      mark(el, "carries", Boolean(info.queue && r.type) || flag);
      mark(el, "anomaly", flag);
      mark(el, "followed", follow.matches(r));
      put(el.querySelector("use"), "href", `#token-${flag ? "error" : shapeOf(r.type)}`);
      title(`${r.seq}: ${cut(stage.says(r), 200)}`);
    });
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

  when(ground, "scroll", showNames, { passive: true });
  return { paint, showCursor, blank };
}

// wayOf is the way from one mark to the tip before another. On one line it would hide in it: there it leaps.
function wayOf(x1, y1, x2, y2) {
  const gap = 7;
  if (y1 === y2) return `M${x1} ${y1 - 5}Q${(x1 + x2) / 2} ${y1 - 15} ${x2 - Math.sign(x2 - x1) * 2} ${y2 - gap}`;
  const length = Math.hypot(x2 - x1, y2 - y1);
  return `M${x1} ${y1}L${x2 - ((x2 - x1) * gap) / length} ${y2 - ((y2 - y1) * gap) / length}`;
}
