// The tour's steps: what each station is for, and what just happened there with this pod. What happened is read from
// the records alone, so that a run and a recording are told alike.

import { objectKey } from "../log/fold.js";

// plotOf finds the tour in records, oldest first: what happened to the pod, to its first revision and to its last one,
// and to the client that was opened for the tour, which calls itself agent. It has one watcher until its connection is
// dropped, client, and another one when it comes back. reader is the watcher of the informer on stage.
export function plotOf(records, { key, agent, reader, informer = "informer" }) {
  // By number: a writer may tell of its commit after the next writer has.
  const revisions = records.filter((r) => r.point === "TxnCommitted" && objectKey(r.key ?? "") === key).map((r) => r.rv)
    .sort((a, b) => a - b);
  const [first, last] = [revisions[0], revisions.at(-1)];
  const begun = records.find((r) => r.rv === first && first);
  const turned = (what) => records.findLast((r) => r.point === "KnobTurned" && (r.text ?? "").startsWith(what));
  const stalled = records.find((r) => r.point === "KnobTurned" && (r.text ?? "").startsWith("line.stall"));
  const dropped = turned("line.drop")?.seq ?? Infinity;
  const opened = records.filter((r) => r.point === "WireOpened" && (r.text ?? "").startsWith(`${agent} `));
  const of = (rv) => (point, subject) =>
    records.find((r) => r.rv === rv && r.point === point && (subject === undefined || r.subject === subject));
  const asked = records.findLast(
    (r) => r.point === "RequestReceived" && r.seq < (begun?.seq ?? 0) && (r.text ?? "").startsWith("POST ")
  )?.seq ?? 1;
  return {
    records, key, asked, name: key.split("/").at(-1), begun, first, last, reader, informer, dropped,
    stalled: stalled?.seq ?? of(first)("HandlerCalled")?.seq ?? 0,
    client: opened.findLast((r) => r.seq < dropped)?.subject ?? "",
    back: opened.find((r) => r.seq > dropped)?.subject ?? "", one: of(first), two: of(last),
    who: agent.replace(/^listwatch-/, ""),
  };
}

// stopped is what came of it that a client does not read, up to the record to; or only as far as the record until.
export function stopped(plot, until = Infinity) {
  const end = Math.min(plot.dropped, plot.records.find((r) => r.rv === plot.last)?.seq ?? 0);
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

const fill = (queue) => `${queue?.len ?? 0} of ${queue?.cap ?? 0}`;

// steps are what is told, in order. look names the stations that are lit; rest finds the record at which the step
// rests, and happened says what happened up to it, res being the picture of the pods there.
export const steps = [
  {
    title: "etcd", look: ["http", "etcd"],
    purpose: () => "etcd stores every object, and numbers every change. Kubernetes calls the number the resource " +
      "version.",
    rest: (plot) => plot.begun,
    happened: (plot) => `This page created ${plot.name}, as kubectl does. It is version ${plot.first}.`,
  },
  {
    title: "watchChan", look: ["etcd3"],
    purpose: () => "The API server watches etcd once, for all clients. The watchChan decodes what etcd reports, " +
      "in order.",
    rest: (plot) => plot.one("Etcd3ResultSent"),
    happened: (plot) => `Version ${plot.first} is decoded, and waits in resultChan.`,
  },
  {
    title: "the ring", look: ["ring", "store"],
    purpose: () => "The ring keeps the newest changes, so that a client can catch up. The store keeps the newest " +
      "state of each object.",
    rest: (plot) => plot.one("StoreUpdate"),
    happened(plot) {
      const [start, end, capacity] = plot.one("RingAppend")?.args ?? [];
      return `Version ${plot.first} took the next place: ${end - start} of ${capacity} are taken.`;
    },
  },
  {
    title: "the dispatcher", look: ["incoming", "dispatch"],
    purpose: () => "Changes wait in incoming, while the cache goes on. One goroutine, the dispatcher, hands each " +
      "of them to every client that may want it. All slow ones together delay the others by at most 0.1 s.",
    rest: (plot) => plot.one("DispatchStarted"),
    happened(plot, res, r) {
      const all = Object.values(res?.subjects ?? {}).filter((s) => s.kind === "watcher").length;
      return `It took version ${plot.first}, and picked ${r.args?.[0] ?? 0} of ${all} clients.`;
    },
  },
  {
    title: "input", look: ["watcher"], queue: "input",
    purpose: () => "Each client has two channels in the server. The dispatcher drops the change into the first one, " +
      "input, and turns to the next client.",
    rest: (plot) => plot.one("InputSent", plot.reader),
    happened: (plot, res) => `Version ${plot.first} is in the informer’s input: ` +
      `${fill(res?.subjects[plot.reader]?.queues.input)} places.`,
  },
  {
    title: "result", look: ["watcher"], queue: "result",
    purpose: () => "A goroutine between the two keeps what the client asked for. The second channel, result, " +
      "waits for the network. Two, so that the dispatcher waits neither for that goroutine nor for the network.",
    rest: (plot) => plot.one("ResultSent", plot.reader),
    happened: (plot) => `The informer asked for all pods. Version ${plot.first} is in its result.`,
  },
  {
    title: "your turn", look: ["watcher"], act: true,
    purpose: (plot, acted) =>
      acted ? "When its input is full, too, the server closes this one watch."
        : `${plot.who} is a client that was opened for you. Stop it from reading: ${plot.name} is then changed until ` +
          "its channels fill. Guess first: will the others wait?",
    rest(plot) {
      const { to, changes } = stopped(plot);
      return changes > 0 ? { seq: to } : undefined;
    },
    happened(plot, res) {
      const s = stopped(plot);
      const queues = res?.subjects[plot.client]?.queues;
      const end = s.closed ? "It was closed."
        : `Its result holds ${fill(queues?.result)}, its input ${fill(queues?.input)}; the network’s buffers hold ` +
          `the rest.`;
      const wait = s.waited ? "the dispatcher waited a moment" : "nothing held it up";
      return `${plot.name} was changed ${s.changes} times. ${plot.who} does not read. ${end} ` +
        `The informer has ${s.stored === s.changes ? "all" : ""} ${s.stored}: ${wait}.`;
    },
  },
  {
    title: "come back", look: ["ring", "watcher"],
    purpose: () => "Connections break. The client watches again, and sends the last version it has read. The ring " +
      "answers with what came after. If it has lost that, the answer is 410 Gone, and the client lists everything " +
      "again. A bookmark is an event that carries nothing but a version: so a quiet client knows a recent one.",
    rest: (plot) => plot.back && plot.records.find((r) => r.subject === plot.back && r.point === "WatcherInterval"),
    happened(plot, res, r) {
      const from = plot.records.find((each) => each.subject === plot.back && each.point === "WatcherAdded")?.rv;
      return `${plot.who} lost its connection, came back with version ${from}, and got the ${r.args?.[0] ?? 0} ` +
        "changes since, from the ring.";
    },
  },
  {
    title: "the client", look: ["wire", "reflector", "fifo", "indexer"],
    purpose: () => "The reflector reads the stream into a queue, the FIFO, and keeps reading while your code " +
      "works. The indexer is the client’s own copy of all pods: your code reads it, and asks no server.",
    rest: (plot) => plot.two("IndexerUpdated", plot.informer),
    happened: (plot) => `The next change of ${plot.name}, version ${plot.last}, is in the indexer.`,
  },
  {
    title: "your controller", look: ["processor", "listener", "handler", "workqueue"],
    purpose: () => "The processor hands each change to every handler. A handler is your code; most only put the " +
      "pod’s name into the workqueue. Your controller takes it from there, reads the pod in the indexer, and acts.",
    rest: (plot) => plot.records.findLast((r) => r.rv === plot.last && r.point === "HandlerCalled"),
    happened: (plot) => `The handlers were called with ${plot.name}, version ${plot.last}.`,
  },
];

// restsOf returns the sequence numbers at which the steps of a plot rest, 0 for those that are not in it. The two sides
// of a channel write down their moments in either order; the cursor never goes back for that.
export function restsOf(plot) {
  let before = 0;
  return steps.map((step) => {
    const seq = step.rest(plot)?.seq ?? 0;
    if (seq > 0) before = Math.max(before, seq);
    return seq > 0 ? before : 0;
  });
}

// half is how many steps come before the visitor acts.
export const half = steps.findIndex((step) => step.act);
