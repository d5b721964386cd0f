// The tour's steps: where each one rests, and the words for what just happened there with this pod. Both are read from
// the records alone, so that a run and a recording are told alike. The texts are in steps.yaml.

import { objectKey } from "../log/fold.js";

const feeds = (handler) => handler.replace(/-handler$/, ""); // whose workqueue

// plotOf finds the tour in records, oldest first: what happened to the pod, to its first revision and to its last one,
// and to the client that was opened for the tour, which calls itself agent. It has one watcher until its connection is
// dropped, client, another one when it comes back, and, when it came too late, a third one, again. reader is the
// watcher of the informer on stage. The pod was created twice: first and last are its versions then.
export function plotOf(records, { key, agent, reader, informer = "informer" }) {
  const revisions = records.filter(
    (r) => r.point === "TxnCommitted" && r.type === "ADDED" && objectKey(r.key ?? "") === key
  ).map((r) => r.rv);
  const [first, last] = [revisions[0], revisions.at(-1)];
  const begun = records.find((r) => r.rv === first && first);
  const is = (point, words) => (r) => r.point === point && (r.text ?? "").startsWith(words);
  const stalled = records.find(is("KnobTurned", "line.stall"));
  const dropped = records.findLast(is("KnobTurned", "line.drop"))?.seq ?? Infinity;
  const opened = records.filter((r) => r.subject && is("WireOpened", `${agent} `)(r));
  const returns = opened.filter((r) => r.seq > dropped);
  const cut = records.findLast(is("KnobTurned", `line.cut of ${agent} to true`))?.seq ?? Infinity;
  const mended = records.findLast(is("KnobTurned", `line.cut of ${agent} to false`))?.seq ?? 0;
  const refused = records.find((r) => r.seq > cut && r.type === "ERROR" && r.point === "FrameWritten");
  const late = records.findLast((r) => r.seq < refused?.seq && is("WireOpened", `${agent} `)(r))?.text;
  const of = (rv) => (point, subject) =>
    records.find((r) => r.rv === rv && r.point === point && (subject === undefined || r.subject === subject));
  const two = of(last);
  const stored = two("IndexerUpdated", informer)?.seq ?? Infinity;
  const handled = records.filter((r) => r.rv === last && r.point === "HandlerCalled");
  const called = new Set(handled.map((r) => feeds(r.subject)));
  const asked = records.findLast((r) => r.seq < (begun?.seq ?? 0) && is("RequestReceived", "POST ")(r))?.seq ?? 1;
  return {
    records, key, asked, cut, mended, refused, begun, first, last, reader, informer, dropped, two, stored, called,
    stalled: stalled?.seq ?? of(first)("HandlerCalled")?.seq ?? Infinity, one: of(first),
    client: opened.findLast((r) => r.seq < dropped)?.subject ?? "", back: returns[0]?.subject ?? "",
    reads: records.find((r) => returns[0] && r.subject === returns[0].subject && r.point === "FrameWritten")?.seq,
    knew: /resourceVersion=(\d+)/.exec(late)?.[1],
    came: returns[0], again: returns.find((r) => r.seq > refused?.seq),
    name: key.split("/").at(-1), who: agent.replace(/^listwatch-/, ""),
  };
}

// stopped is what came of it that a client does not read, up to the record to; or only as far as the record until.
export function stopped(plot, until = Infinity) {
  const end = Math.min(plot.dropped, (plot.records.at(-1)?.seq ?? 0) + 1);
  const during = plot.records.filter((r) => r.seq > plot.stalled && r.seq < Math.min(end, until));
  const changes = new Set(
    during.filter((r) => r.point === "RingAppend" && objectKey(r.key ?? "") === plot.key).map((r) => r.rv)
  );
  const count = (point, subject) =>
    during.filter((r) => r.point === point && r.subject === subject && changes.has(r.rv)).length;
  return {
    to: end - 1, changes: changes.size, stored: count("IndexerUpdated", plot.informer),
    waited: during.some((r) => r.point === "DispatchBlocked"),
    closed: during.some((r) => r.point === "WatcherForced" && r.subject === plot.client),
  };
}

// rests find the record at which each step rests.
const rests = [
  (plot) => plot.begun,
  (plot) => plot.one("Etcd3ResultSent"),
  (plot) => plot.one("StoreUpdate"),
  (plot) => plot.one("DispatchStarted"),
  (plot) => plot.one("InputSent", plot.reader),
  (plot) => plot.one("ResultSent", plot.reader),
  (plot) => (({ to, changes }) => changes > 0 && { seq: to })(stopped(plot)),
  (plot) => called(sent(plot, plot.back).findLast((r) => !(r.seq > plot.reads)), plot.came),
  (plot) => (plot.refused ? called(sent(plot, plot.again?.subject).find((r) => r.type === "BOOKMARK"), plot.again)
    : rests[7](plot)),
  (plot) => plot.two("IndexerUpdated", plot.informer),
  (plot) => plot.records.find((r) => r.seq > plot.stored && queues(plot, r))
    ?? plot.records.findLast((r) => r.rv === plot.last && r.point === "HandlerCalled"),
];
// called is where a channel has a record and the log has said whose that is.
const called = (r, opened) => r && opened && { ...r, seq: Math.max(r.seq, opened.seq) };
const sent = (plot, watcher) => plot.records.filter((r) => r.subject === watcher && r.point === "ResultSent");
// Of workqueues one counts whose handler is on the stage.
const queues = (plot, r) => r.point === "WorkAdded" && objectKey(r.key ?? "") === plot.key
  && plot.called.has(r.subject);

// restsOf returns the sequence numbers at which the steps of a plot rest, 0 for those that are not in it. The two sides
// of a channel write down their moments in either order; the cursor never goes back for that.
export function restsOf(plot) {
  let before = 0;
  return rests.map((rest) => {
    const seq = rest(plot)?.seq || 0;
    if (seq > 0) before = Math.max(before, seq);
    return seq > 0 ? before : 0;
  });
}

// happened says what happened up to the record at which the i-th step rests, res being the picture of the pods there.
export function happened(step, i, plot, res) {
  const s = stopped(plot);
  const [start, taken, capacity] = plot.one("RingAppend")?.args ?? [];
  const at = (watcher, name) => res?.subjects[watcher]?.queues[name] ?? { len: 0, cap: 0 };
  const fill = (watcher, name) => (({ len, cap }) => `${len} of ${cap}`)(at(watcher, name));
  const rest = rests[i](plot);
  // On a stage with several informers, another one's handler may have been earlier.
  const before = plot.records.findLast((r) => r.seq < rest.seq && r.rv !== plot.first && queues(plot, r));
  const both = rest.point === "HandlerCalled" && before && "both";
  const { len, cap } = at(plot.client, "input");
  const came = [
    s.closed ? "closed" : len > 0 && len === cap ? "full" : "open", taken - start < capacity ? "room" : "taken",
    both || rest.point, plot.refused ? "gone" : "kept",
  ].find((each) => step.end?.[each]);
  return filled(step.happened.replace("{end}", step.end?.[came] ?? ""), plot, {
    places: taken - start, capacity, other: before?.subject,
    knew: plot.knew,
    pods: sent(plot, plot.again?.subject).filter((r) => r.type === "ADDED" && r.seq <= rest.seq).length, mark: rest.rv,
    clients: Object.values(res?.subjects ?? {}).filter(({ kind }) => kind === "watcher").length,
    picked: plot.one("DispatchStarted")?.args?.[0],
    handler: feeds(rest.subject ?? ""),
    input: fill(plot.reader, "input"), result: fill(plot.client, "result"), full: fill(plot.client, "input"),
    stored: s.stored === s.changes ? "every change" : `${s.stored} of ${s.changes} changes`,
    wait: s.waited ? "the dispatcher waited a moment" : "nothing held it up",
    from: plot.records.find((r) => r.subject === plot.back && r.point === "WatcherAdded")?.rv,
  });
}

// filled is a text with the words in braces of a plot, or of what happened in it.
export const filled = (text, plot, words = {}) => text.replace(/\{(\w+)\}/g, (_, name) => words[name] ?? plot[name]);
