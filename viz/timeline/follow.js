// Following: one object, or one revision, is outlined wherever it is, and its biography tells how long each hop took.

import { queryOf } from "../lib/api.js";
import { $, make, mark, options, part, put, say, svg, when } from "../dom/dom.js";
import { cut } from "../lib/texts.js";
import { clockText, milliseconds } from "../lib/times.js";
import { objectKey } from "../log/fold.js";
import { matches as matching } from "../log/query.js";

/**
 * @typedef {object} Hearer
 * @property {() => void} changed another thing is followed
 * @property {(seq: number) => unknown} seek a hop was clicked
 * @property {(query: string, matches: (r: { key?: string, rv?: string }) => boolean) => Promise<probe.Record[]>}
 *   records
 * @property {() => number} cursor where the stage is
 * @property {(problem: unknown) => void} trouble
 * @typedef {{ r: probe.Record, from: number }} Hop from: the time of the step before
 */

const most = 4000; // records of one object kept
const redraw = 250; // ms
const listed = 50; // of its revisions
const hopsShown = 400;
// kubectls are requests of kubectl to write.
const kubectls = {
  points: ["RequestReceived"], fields: { agent: "kubectl", method: "POST|PUT|PATCH|DELETE" },
};

// newFollow calls on.changed() when another thing is followed, on.seek(seq) when a hop is clicked. records(query,
// match) returns all there are, cursor() where the stage is.
/** @param {page.Infos} infos @param {Hearer} on */
export function newFollow(infos, on) {
  const panel = $("#biography");
  const list = part(panel, "ol");
  const select = part(panel, "select", HTMLSelectElement);
  /** @type {probe.Record[]} */
  let records = [];
  let drawnAt = 0;
  let ticket = 0;
  let shown = "";
  let picked = false; // the viewer chose a revision
  let asked = false; // kubectl has asked for a write that is not committed yet
  const f = {
    key: "", rv: "", by: "", matches, set, wrote, clear, add, draw, query, arrived,
    has: () => f.key !== "" || f.rv !== "",
  };

  // matches reports whether a record, or what stands in a queue, a shelf or the ring, is about what is followed.
  /** @param {{ key?: string, rv?: string }} r */
  function matches({ key = "", rv }) {
    return (f.key !== "" && objectKey(key) === f.key) || (f.rv !== "" && rv === f.rv);
  }

  // query is what is followed as the server is asked for it; "": nothing.
  function query() {
    if (!f.has()) return "";
    return `&${queryOf({ resource: document.body.dataset.resource, key: f.key, rv: f.rv })}`;
  }

  // wrote follows what this page, or kubectl, has written. The panel stays where it is.
  /** @param {string} key */
  function wrote(key) { set(key, "", "write"); }

  // arrived follows what kubectl writes, unless something is followed: a request is received with the name of its
  // client, and committed.
  /** @param {probe.Record[]} list */
  function arrived(list) {
    for (const r of list) {
      if (matching(kubectls, r)) asked = true;
      if (r.point !== "TxnCommitted" || !asked || r.resource !== document.body.dataset.resource) continue;
      asked = false;
      if (!f.has()) wrote(objectKey(r.key ?? ""));
    }
    add(list);
  }

  /** @param {string} key @param {string} [rv] @param {string} [by] */
  async function set(key, rv = "", by = "hand") {
    const mine = ++ticket;
    Object.assign(f, { key, rv, by });
    records = [];
    picked = false;
    select.replaceChildren();
    panel.hidden &&= by !== "hand";
    drawnAt = 0;
    shown = "";
    say(part(panel, "h2"), cut(rv ? `revision ${rv}` : key, 60));
    const asked = query().slice(1);
    on.changed();
    try {
      const known = await on.records(asked, matches);
      if (mine !== ticket) return;
      const seen = new Set(known.map((r) => r.seq));
      records = known.concat(records.filter((r) => !seen.has(r.seq)));
    } catch (problem) {
      on.trouble(problem);
    }
  }

  function clear() {
    ticket++;
    Object.assign(f, { key: "", rv: "", by: "" });
    records = [];
    panel.hidden = true;
    on.changed();
  }

  /** @param {probe.Record[]} some */
  function add(some) {
    if (!f.has()) return;
    records.push(...some.filter((r) => matches(r) && (r.resource ?? "") === document.body.dataset.resource));
    if (records.length > most) records.splice(0, records.length - most);
  }

  /** @param {number} now */
  function draw(now) {
    if (panel.hidden || now - drawnAt < redraw) return;
    drawnAt = now;
    const cursor = on.cursor();
    const ways = waysOf(records);
    const typeOf = (/** @type {Hop[]} */ steps) => cut(steps.find((h) => h.r.type)?.r.type ?? "", 12);
    options(select, [...ways].slice(-listed).reverse().map(([rv, steps]) => [rv, `${typeOf(steps)} ${rv}`]));
    // The revision that is under way at the cursor is shown as long as the viewer has picked none.
    const begun = [...ways].filter(([, steps]) => steps[0].r.seq <= cursor).at(-1);
    if (!picked) select.value = begun?.[0] ?? [...ways.keys()][0] ?? "";
    const steps = ways.get(select.value) ?? [];
    const name = `${select.value} ${steps.length}`;
    if (name !== shown) {
      shown = name;
      list.replaceChildren(...steps.slice(0, hopsShown).map((h) => hopRow(h, steps)));
      say(part(panel, ".total"), total(steps));
    }
    for (const row of list.children) {
      const seq = Number(row.dataset.seq);
      mark(row, "past", seq <= cursor);
      mark(row, "here", seq === cursor);
      put(part(row, "button"), "aria-current", seq === cursor ? "step" : "false");
    }
  }

  // hopRow is a hop as a button, with a bar for when it was in the whole time.
  /** @param {Hop} hop @param {Hop[]} steps */
  function hopRow({ r, from }, steps) {
    const begin = steps[0].r.t;
    /** @param {number} ns */
    const along = (ns) => (ns / Math.max(1, steps[steps.length - 1].r.t - begin)) * 99;
    const { name, station } = infos.get(r.point);
    const words = name + (r.subject ? ` ${cut(r.subject, 14)}` : "");
    const after = milliseconds(r.t - from);
    const bar = svg("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" });
    const width = Math.max(0.8, along(r.t - from)).toFixed(2);
    bar.append(svg("rect", { x: along(from - begin).toFixed(2), width, height: 4 }));
    const took = make("span", { className: "took" }, r === steps[0].r ? clockText(begin, 3) : `+${after}`);
    const ariaLabel = `${station}: ${words}, after ${after}. Go there.`;
    const texts = [make("span", { className: "words" }, words), took];
    const button = make("button", { type: "button", ariaLabel, onclick: () => on.seek(r.seq) }, ...texts, bar);
    return make("li", { data: { seq: r.seq } }, button);
  }

  /** @param {Hop[]} steps */
  function total(steps) {
    if (steps.length === 0) return "The log has no record of it yet.";
    const commit = steps.find((h) => h.r.point === "TxnCommitted");
    const calls = steps.filter((h) => h.r.point === "HandlerCalled");
    if (!commit) return "Its commit has left the log.";
    // The writer tells of its commit when etcd has answered it; etcd's watch may have been faster.
    const begin = Math.min(commit.r.t, steps[0].r.t);
    const { t } = steps[steps.length - 1].r;
    if (calls.length === 0) return `${milliseconds(t - begin)} since the commit; no handler yet`;
    const [first, last] = [calls[0], calls[calls.length - 1]].map((h) => milliseconds(h.r.t - begin));
    if (calls.length === 1) return `${first} from commit to handler`;
    return `${first} from commit to the first of ${calls.length} handlers, ${last} to the last`;
  }

  when(select, "change", () => ([picked, drawnAt] = [true, 0]));
  when(part(panel, ".close"), "click", clear);
  when(part(panel, ".side"), "click", () => panel.classList.toggle("left"));
  return f;
}

// waysOf groups records, oldest first, by resource version, and finds for each the step before it: what the same
// subject last did with the revision, or else what was last done with it at all. It returns a Map by version of lists
// of {r, from}, where from is the time of the step before. Records without a version are left out.
/** @param {probe.Record[]} records */
export function waysOf(records) {
  /** @type {Map<string, Hop[]>} */
  const ways = new Map();
  for (const r of records) {
    if (!r.rv) continue;
    const way = ways.get(r.rv) ?? [];
    const before = way.findLast((h) => (h.r.subject ?? "") === (r.subject ?? "")) ?? way.at(-1);
    ways.set(r.rv, way);
    way.push({ r, from: before ? before.r.t : r.t });
  }
  return ways;
}
