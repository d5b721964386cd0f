// Following: one object, or one revision, is outlined wherever it is, and its biography tells how long each hop took.

import { cut, mark, put, say } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";
import { clockText, milliseconds } from "../lib/times.js";
import { waysOf } from "./ways.js";

const most = 4000; // records of one object kept
const redraw = 250; // ms

// newFollow calls on.changed() when another thing is followed, on.seek(seq) when a hop is clicked. records(query, match)
// returns all there are.
export function newFollow(infos, on) {
  const panel = document.querySelector("#biography");
  const list = panel.querySelector("ol");
  const select = panel.querySelector("select");
  const f = { key: "", rv: "", matches, token, by: "", about: "", has: () => f.key !== "" || f.rv !== "", set, wrote, way, open: () => show(true), clear, add, draw, query, get count() { return records.length; }, hops: () => ways.get(select.value) ?? [] };
  let records = [];
  let ways = new Map();
  let stale = false;
  let changed = false; // the ways, since the panel was drawn
  let drawnAt = 0;
  let ticket = 0;
  let shown = "";
  let picked = false; // the viewer chose a revision

  function matches(r) {
    return (f.key !== "" && r.key !== undefined && objectKey(r.key) === f.key) || (f.rv !== "" && r.rv === f.rv);
  }

  // query is what is followed as the server is asked for it; "": nothing.
  function query() {
    if (!f.has()) return "";
    return `&resource=${encodeURIComponent(document.body.dataset.resource)}${f.key ? `&key=${encodeURIComponent(f.key)}` : ""}${f.rv ? `&rv=${f.rv}` : ""}`;
  }

  // token is matches for what stands in queues, shelves and the ring.
  function token(t) {
    return (f.key !== "" && objectKey(t.key ?? "") === f.key) || (f.rv !== "" && t.rv === f.rv);
  }

  // wrote follows what this page, or kubectl, has written, unless something is followed that was chosen. The panel stays
  // where it is.
  function wrote(key) {
    if (f.by !== "" && f.by !== "write") return;
    set(key, "", "write");
  }

  function show(open) {
    panel.hidden = !open;
    drawnAt = 0;
    shown = "";
  }

  // way returns the steps of a revision up to a cursor, or else of the one that is under way there.
  function way(cursor, rv = "") {
    update();
    const begun = [...ways].filter(([each, steps]) => steps[0].r.seq <= cursor && (!rv || each === rv)).at(-1);
    return begun ? { rv: begun[0], steps: begun[1].filter((h) => h.r.seq <= cursor) } : { rv: "", steps: [] };
  }

  function update() {
    if (!stale) return;
    stale = false;
    ways = waysOf(records);
    changed = true;
  }

  async function set(key, rv = "", by = "hand") {
    const mine = ++ticket;
    f.by = by;
    f.key = key;
    f.rv = rv;
    f.about = "";
    records = [];
    ways = new Map();
    picked = false;
    select.replaceChildren();
    show(by === "hand" || !panel.hidden);
    say(panel.querySelector("h2"), cut(rv ? `revision ${rv}` : key, 60));
    const asked = query().slice(1);
    const link = panel.querySelector("a");
    put(link, "href", `/viz/trace?${asked}`);
    link.hidden = Boolean(on.local());
    stale = true;
    on.changed();
    try {
      const known = await on.records(asked, matches);
      if (mine !== ticket) return;
      const seen = new Set(known.map((r) => r.seq));
      records = known.concat(records.filter((r) => !seen.has(r.seq)));
    } catch (problem) {
      on.trouble(problem);
    }
    stale = true;
  }

  function clear() {
    ticket++;
    f.key = f.rv = f.by = f.about = "";
    records = [];
    panel.hidden = true;
    on.changed();
  }

  function add(some) {
    if (!f.has()) return;
    for (const r of some) {
      if (!matches(r) || (r.resource ?? "") !== document.body.dataset.resource) continue;
      records.push(r);
      stale = true;
    }
    if (records.length > most) records.splice(0, records.length - most);
  }

  function draw(now, cursor) {
    if (panel.hidden || now - drawnAt < redraw) return;
    drawnAt = now;
    update();
    if (changed) {
      changed = false;
      options();
      shown = "";
    }
    if (!picked) choose(cursor);
    const way = f.hops();
    const name = `${select.value} ${way.length}`;
    if (name !== shown) {
      shown = name;
      list.replaceChildren(...hopRows(way));
      say(panel.querySelector(".total"), total(way));
    }
    for (const row of list.children) {
      mark(row, "past", Number(row.dataset.seq) <= cursor);
      mark(row, "here", Number(row.dataset.seq) === cursor);
      put(row.firstElementChild, "aria-current", Number(row.dataset.seq) === cursor ? "step" : "false");
    }
  }

  function options() {
    const before = select.value;
    const newest = [...ways.keys()].slice(-50).reverse();
    if ([...select.options].map((o) => o.value).join() === newest.join()) return;
    select.replaceChildren(...newest.map((rv) => new Option(`${typeOf(ways.get(rv))} ${rv}`, rv)));
    if (ways.has(before)) select.value = before;
  }

  // choose shows the revision that is under way at the cursor, as long as the viewer has picked none.
  function choose(cursor) {
    const begun = [...ways].filter(([, way]) => way[0].r.seq <= cursor).at(-1);
    const rv = begun?.[0] ?? [...ways.keys()][0] ?? "";
    if (select.value !== rv) select.value = rv;
  }

  const typeOf = (way) => cut(way.find((h) => h.r.type)?.r.type ?? "", 12);

  function hopRows(way) {
    if (way.length === 0) return [];
    const begin = way[0].r.t;
    const span = Math.max(1, way.at(-1).r.t - begin);
    return way.slice(0, 400).map((h) => {
      const item = document.createElement("li");
      item.dataset.seq = h.r.seq;
      const info = infos.get(h.r.point);
      const button = document.createElement("button");
      button.type = "button";
      const words = document.createElement("span");
      words.className = "words";
      words.textContent = info.name + (h.r.subject ? ` ${cut(h.r.subject, 14)}` : "");
      const took = document.createElement("span");
      took.className = "took";
      took.textContent = h === way[0] ? clockText(begin, 3) : `+${milliseconds(h.r.t - h.from)}`;
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      bar.setAttribute("viewBox", "0 0 100 4");
      bar.setAttribute("preserveAspectRatio", "none");
      bar.setAttribute("aria-hidden", "true");
      const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      rect.setAttribute("x", (((h.from - begin) / span) * 99).toFixed(2));
      rect.setAttribute("width", Math.max(0.8, ((h.r.t - h.from) / span) * 99).toFixed(2));
      rect.setAttribute("height", "4");
      bar.append(rect);
      button.append(words, took, bar);
      button.setAttribute("aria-label", `${info.station}: ${words.textContent}, after ${milliseconds(h.r.t - h.from)}. Go there.`);
      button.addEventListener("click", () => on.seek(h.r.seq));
      item.append(button);
      return item;
    });
  }

  function total(way) {
    if (way.length === 0) return "The log has no record of it yet.";
    const commit = way.find((h) => h.r.point === "TxnCommitted");
    const calls = way.filter((h) => h.r.point === "HandlerCalled");
    if (!commit) return "Its commit has left the log.";
    // The writer tells of its commit when etcd has answered it; etcd's watch may have been faster.
    const begin = Math.min(commit.r.t, way[0].r.t);
    if (calls.length === 0) return `${milliseconds(way.at(-1).r.t - begin)} since the commit; no handler yet`;
    const first = milliseconds(calls[0].r.t - begin);
    return calls.length === 1
      ? `${first} from commit to handler`
      : `${first} from commit to the first of ${calls.length} handlers, ${milliseconds(calls.at(-1).r.t - begin)} to the last`;
  }

  select.addEventListener("change", () => {
    picked = true;
    drawnAt = 0;
  });
  panel.querySelector(".close").addEventListener("click", clear);
  panel.querySelector(".side").addEventListener("click", () => panel.classList.toggle("left"));
  return f;
}
