// Following: one object, or one revision, is outlined wherever it is, and its biography tells how long each hop took.

import { queryOf } from "../lib/api.js";
import { $, make, mark, options, part, put, say, svg, when } from "../dom/dom.js";
import { cut } from "../lib/texts.js";
import { clockText, milliseconds } from "../lib/times.js";
import { objectKey } from "../log/fold.js";
import { matches, parametersOf } from "../log/query.js";

/**
 * @typedef {object} Hearer
 * @property {() => void} changed another thing is followed
 * @property {(seq: number) => unknown} seek a hop was clicked
 * @property {(query: probe.Query) => Promise<probe.Record[]>} records all that are meant
 * @property {() => number} cursor where the stage is
 * @property {() => string} resource on stage
 * @property {(problem: unknown) => void} trouble
 * @typedef {{ r: probe.Record, from: number }} Hop from: the time of the step before
 */

const most = 4000; // records of one object kept
const redraw = 250; // ms
const listed = 50; // of its revisions
const hopsShown = 400;
// kubectls are requests of kubectl to write.
/** @type {probe.Query} */
const kubectls = { points: ["RequestReceived"], fields: { agent: "kubectl", method: "POST|PUT|PATCH|DELETE" } };

export class Follow {
  /** @param {page.Infos} infos @param {Hearer} on */
  constructor(infos, on) {
    this.infos = infos;
    this.on = on;
    this.key = this.rv = this.by = ""; // the followed object, and the control that chose it
    this.panel = $("#biography");
    this.list = part(this.panel, "ol");
    this.select = part(this.panel, "select", HTMLSelectElement);
    /** @type {probe.Record[]} */
    this.known = [];
    this.drawnAt = 0;
    this.ticket = 0;
    this.drawn = "";
    this.picked = false; // the viewer chose a revision
    this.asked = false; // kubectl has asked for a write that is not committed yet
    // matches reports whether a record, or what stands in a queue, a shelf or the ring, is about what is followed.
    /** @param {import("../log/query.js").Meant} r */
    this.matches = (r) => this.has() && matches({ key: this.key, rv: this.rv }, r);
    when(this.select, "change", () => ([this.picked, this.drawnAt] = [true, 0]));
    when(part(this.panel, ".close"), "click", () => this.clear());
    when(part(this.panel, ".side"), "click", () => this.panel.classList.toggle("left"));
  }

  has() { return this.key !== "" || this.rv !== ""; }

  // query is what is followed, of the resource on stage.
  /** @returns {probe.Query} */
  get query() { return { resource: this.on.resource(), key: this.key, rv: this.rv }; }

  // follows is that as the server is asked for it; "": nothing.
  follows() { return this.has() ? `&${queryOf(parametersOf(this.query))}` : ""; }

  // wrote follows what this page, or kubectl, has written. The panel stays where it is.
  /** @param {string} key */
  wrote(key) { this.set(key, "", "write"); }

  // arrived follows what kubectl writes, unless something is followed: a request is received with the name of its
  // client, and committed.
  /** @param {probe.Record[]} list */
  arrived(list) {
    for (const r of list) {
      if (matches(kubectls, r)) this.asked = true;
      if (!this.asked || !matches({ points: ["TxnCommitted"], resource: this.on.resource() }, r)) continue;
      this.asked = false;
      if (!this.has()) this.wrote(objectKey(r.key ?? ""));
    }
    this.add(list);
  }

  /** @param {string} key @param {string} [rv] @param {string} [by] */
  async set(key, rv = "", by = "hand") {
    const mine = ++this.ticket;
    [this.key, this.rv, this.by] = [key, rv, by];
    this.known = [];
    this.picked = false;
    this.select.replaceChildren();
    this.panel.hidden &&= by !== "hand";
    this.drawnAt = 0;
    this.drawn = "";
    say(part(this.panel, "h2"), cut(rv ? `revision ${rv}` : key, 60));
    const { query } = this;
    this.on.changed();
    try {
      const known = await this.on.records(query);
      if (mine !== this.ticket) return;
      const seen = new Set(known.map((r) => r.seq));
      this.known = known.concat(this.known.filter((r) => !seen.has(r.seq)));
    } catch (problem) {
      this.on.trouble(problem);
    }
  }

  clear() {
    this.ticket++;
    this.key = this.rv = this.by = "";
    this.known = [];
    this.panel.hidden = true;
    this.on.changed();
  }

  /** @param {probe.Record[]} some */
  add(some) {
    if (!this.has()) return;
    const { query, known } = this;
    known.push(...some.filter((r) => matches(query, r)));
    if (known.length > most) known.splice(0, known.length - most);
  }

  /** @param {number} now */
  draw(now) {
    const { panel, select, list } = this;
    if (panel.hidden || now - this.drawnAt < redraw) return;
    this.drawnAt = now;
    const cursor = this.on.cursor();
    const ways = waysOf(this.known);
    const typeOf = (/** @type {Hop[]} */ steps) => cut(steps.find((h) => h.r.type)?.r.type ?? "", 12);
    options(select, [...ways].slice(-listed).reverse().map(([rv, steps]) => [rv, `${typeOf(steps)} ${rv}`]));
    // The revision that is under way at the cursor is shown as long as the viewer has picked none.
    const begun = [...ways].filter(([, steps]) => steps[0].r.seq <= cursor).at(-1);
    if (!this.picked) select.value = begun?.[0] ?? [...ways.keys()][0] ?? "";
    const steps = ways.get(select.value) ?? [];
    const name = `${select.value} ${steps.length}`;
    if (name !== this.drawn) {
      this.drawn = name;
      list.replaceChildren(...steps.slice(0, hopsShown).map((h) => this.hopRow(h, steps)));
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
  hopRow({ r, from }, steps) {
    const begin = steps[0].r.t;
    /** @param {number} ns */
    const along = (ns) => (ns / Math.max(1, steps[steps.length - 1].r.t - begin)) * 99;
    const { name, station } = this.infos.get(r.point);
    const words = name + (r.subject ? ` ${cut(r.subject, 14)}` : "");
    const after = milliseconds(r.t - from);
    const bar = svg("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" });
    const width = Math.max(0.8, along(r.t - from)).toFixed(2);
    bar.append(svg("rect", { x: along(from - begin).toFixed(2), width, height: 4 }));
    const took = make("span", { className: "took" }, r === steps[0].r ? clockText(begin, 3) : `+${after}`);
    const ariaLabel = `${station}: ${words}, after ${after}. Go there.`;
    const texts = [make("span", { className: "words" }, words), took];
    const button = make("button", { type: "button", ariaLabel, onclick: () => this.on.seek(r.seq) }, ...texts, bar);
    return make("li", { data: { seq: r.seq } }, button);
  }
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
