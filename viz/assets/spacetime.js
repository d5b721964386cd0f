// The space-time view: the same records with a line for every goroutine, time from left to right, a column for each record, and
// an arrow for whatever one of them handed to another. It is drawn from the picture before its first record, as everything
// is; where the stage shows one moment, it shows the eighty that led there.

import { cut, mark, pool, put, say, squeeze, svg } from "./dom.js";
import { objectKey, sentence } from "./fold.js";
import { milliseconds } from "./follow.js";
import { newHandovers } from "./handovers.js";
import { levels } from "./level.js";
import { toMiddle } from "./presenter.js";
import { shapeOf } from "./tokens.js";

const room = 80; // columns
const ahead = 20; // of them after the cursor, where time stands
const edge = 6; // columns that the cursor keeps from the ends before the view moves on
const looked = 4000; // records that are looked through for those of the resource
const period = 300; // ms between two drawings while time runs
const area = { left: 204, right: 1266, top: 46, bottom: 474 }; // of the stage's units
const pitches = [16, 30]; // units from line to line, at least and at most
const grace = 250e6; // ns of the log that a write to a client may last
const tick = 10; // columns from one time to the next

const views = ["loop", "space-time", "tape"];
const deeds = { // of those whose line a span is on
  room: "waits for room", taker: "waits for a taker", lock: "waits for a lock", version: "waits for a version",
  client: "writes to its client", return: "runs what it calls",
};
const throughs = { etcd: "by etcd's watch", wire: "over the wire", stream: "by hand: nothing lies between" };

export function newSpacetime(stage) {
  const { player, fold, infos, scene, follow } = stage;
  const root = document.querySelector("#spacetime");
  const button = document.querySelector("#view");
  const ground = document.querySelector(".ground");
  const part = (name) => root.querySelector(`.${name}`);
  const handovers = newHandovers(fold);
  let open = false;
  let stale = false; // something happened that is not drawn
  let busy = false;
  let drawnAt = 0;
  let drawn = null; // what trace returned
  let rows = 0; // lines that there is room for

  const columnX = (index) => area.left + ((index + 0.5) * (area.right - area.left)) / room;

  // ---- which of the views is shown

  const current = () => (open ? 1 : scene.unrolled ? 2 : 0);

  function turn() {
    const to = (current() + 1) % views.length;
    open = views[to] === "space-time";
    stage.unroll(views[to] === "tape");
    root.toggleAttribute("hidden", !open);
    drawn = null;
    stale = true;
    showView();
    if (open) stage.zoom("");
  }

  function showView() {
    const name = views[current()];
    say(button, `View: ${name}`);
    put(document.body, "data-view", name);
  }

  // ---- what is drawn

  // range returns the first and the last record to be drawn: so many of the resource on stage around the cursor, as far as no
  // record is missing.
  function range() {
    const after = [];
    const frozen = player.mode === "frozen";
    for (let seq = player.cursor + 1; frozen && seq <= player.head && after.length < ahead && seq - player.cursor < looked; seq++) {
      const r = player.tape.get(seq);
      if (!r) break;
      if (stage.here(r)) after.push(seq);
    }
    let first = player.cursor + 1;
    for (let seq = player.cursor, n = after.length; seq > player.oldest && n < room && player.cursor - seq < looked; seq--) {
      const r = player.tape.get(seq);
      if (!r) break;
      first = seq;
      n += stage.here(r);
    }
    return [first, after.at(-1) ?? player.cursor];
  }

  async function build() {
    busy = true;
    stale = false;
    const { tape, cursor, oldest, head } = player;
    let before = null;
    let records = [];
    try {
      // What has left the log is not to be had: then there is less to be drawn.
      if (player.mode === "frozen") await tape.load(Math.max(oldest + 1, cursor - 10 * room), Math.min(head, cursor + 10 * ahead) + 1).catch(() => {});
      const [first, last] = range();
      before = await tape.stateAt(Math.max(oldest, first - 1));
      records = tape.between(before.seq + 1, last + 1);
    } catch (problem) {
      blank(problem.message);
      stale = false; // another moment may be had
    }
    busy = false;
    if (!before || !open) return;
    if (tape !== player.tape) return again();
    drawn = handovers.trace(before, records, stage.here);
    drawn.columns.splice(room);
    paint();
  }

  // tooMuch reports whether records come faster than they are sent one by one, and than anybody can read them.
  const tooMuch = (now) => player.mode === "live" && stage.rates(now).events > levels[1].most;

  function draw(now) {
    if (!open || busy || now - drawnAt < (player.mode === "frozen" ? 0 : period)) return;
    if (tooMuch(now)) return blank("too much happens to be read: freeze (Space)");
    if (!stale) return;
    drawnAt = now;
    build();
  }

  function blank(why) {
    drawn = null;
    stale = true;
    mark(root, "blank", true);
    say(part("about"), why);
    put(root, "aria-label", `Space-time view: ${why}.`);
    put(root, "data-cursor", 0);
  }

  // moved keeps the view where it is as long as the cursor is well within it.
  function moved() {
    if (!open) return;
    const index = drawn?.columns.findIndex((c) => c.r.seq >= player.cursor) ?? -1;
    const last = (drawn?.columns.length ?? 0) - 1;
    if (busy || player.mode !== "frozen" || index < edge || index > last - edge) stale = true;
    else showCursor();
  }

  // ---- drawing

  function paint() {
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
    put(root, "data-spans", spans.length);
    const took = columns.length > 1 ? milliseconds(columns.at(-1).r.t - columns[0].r.t) : "no time";
    const words = `${count(columns.length, "record")} on ${count(drawn.lines.length, "line")} in ${took}, ${handed.length} handed over`;
    say(part("about"), words);
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
      say(names[i].querySelector("title"), rest ? `${hidden} lines that there is no room for` : l.place ? `${l.title}: whoever reports there` : `${l.title}: the goroutine of that name`);
    });
  }

  function paintSpans(spans, y, n) {
    const some = spans.filter((s) => !s.from || s.from.index < n);
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

  // runs reports whether a span is work of whoever waits: code that it has called, a write that goes through.
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
      const late = t.taken.index < t.sent.index ? ", and who took it was the first to write that down" : `, ${milliseconds(t.taken.r.t - t.sent.r.t)}`;
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

  const again = () => {
    stale = true;
    drawn = null;
  };

  button.addEventListener("click", () => turn());
  root.addEventListener("click", (event) => {
    const seq = Number(event.target.closest("[data-seq]")?.dataset.seq);
    if (seq) player.seek(seq);
  });
  showView();
  return {
    draw,
    begin: again,
    resource: again,
    applied: moved,
    summed: moved,
    jumped: moved,
    landed: moved,
    shown: showView, // the tape is chosen elsewhere, too
    switches: handovers.switches,
    followed: () => (stale = true),
    keys: [[["v"], "view: the loop, space-time, the loop with its ring as a tape", () => turn()]],
  };
}

// arrow is the way from one mark to the tip before another. On one line it would hide in it: there it leaps.
function arrow(x1, y1, x2, y2) {
  const gap = 7;
  if (y1 === y2) return `M${x1} ${y1 - 5}Q${(x1 + x2) / 2} ${y1 - 15} ${x2 - Math.sign(x2 - x1) * 2} ${y2 - gap}`;
  const length = Math.hypot(x2 - x1, y2 - y1);
  return `M${x1} ${y1}L${x2 - ((x2 - x1) * gap) / length} ${y2 - ((y2 - y1) * gap) / length}`;
}

const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
