// The tour's steps: what each station is for, and what just happened there with this pod. What happened is read from
// the records alone, so that a run and a recording are told alike.

import { objectKey } from "../log/fold.js";
import { milliseconds } from "../lib/times.js";

// plotOf finds the tour in records, oldest first: what happened to the pod, to its first revision and to its last one,
// and to the client that was opened for the tour, which calls itself agent. reader is the watcher of the informer on
// stage.
export function plotOf(records, { key, agent, reader, informer = "informer" }) {
  // By number: a writer may tell of its commit after the next writer has.
  const revisions = records.filter((r) => r.point === "TxnCommitted" && objectKey(r.key ?? "") === key).map((r) => r.rv)
    .sort((a, b) => a - b);
  const [first, last] = [revisions[0], revisions.at(-1)];
  const begun = records.find((r) => r.rv === first && first);
  const client = records.findLast(
    (r) => r.point === "WireOpened" && (r.text ?? "").startsWith(`${agent} `)
  )?.subject ?? "";
  const of = (rv) => (point, subject) =>
    records.find((r) => r.rv === rv && r.point === point && (subject === undefined || r.subject === subject));
  const asked = records.findLast(
    (r) => r.point === "RequestReceived" && r.seq < (begun?.seq ?? 0) && (r.text ?? "").startsWith("POST ")
  )?.seq ?? 1;
  return {
    records, key, asked, name: key.split("/").at(-1), begun, first, last, client, reader, informer, one: of(first),
    two: of(last),
  };
}

// since says how long after its commit a revision came to a record. The writer tells of its commit when etcd has
// answered it; etcd's watch may have been faster.
function since(plot, rv, r) {
  const took = r.t - plot.records.find((each) => each.rv === rv).t;
  return took > 0 ? `, ${milliseconds(took)} after its commit` : "";
}

// stopped is what came of it that a client does not read, up to the record to.
export function stopped(plot) {
  const start = plot.records.find(
    (r) => r.point === "KnobTurned" && (r.text ?? "").startsWith("line.stall")
  )?.seq ?? plot.one("HandlerCalled")?.seq ?? 0;
  const end = plot.records.find((r) => r.rv === plot.last)?.seq ?? 0;
  const during = plot.records.filter((r) => r.seq > start && r.seq < end);
  const changes = new Set(
    during.filter((r) => r.point === "RingAppend" && objectKey(r.key ?? "") === plot.key).map((r) => r.rv)
  );
  const count = (point, subject) =>
    during.filter((r) => r.point === point && r.subject === subject && changes.has(r.rv)).length;
  return {
    to: end - 1, changes: changes.size, sent: count("ResultReceived", plot.client),
    stored: count("IndexerUpdated", plot.informer),
    waited: during.some((r) => r.point === "DispatchBlocked"),
    closed: during.some((r) => r.point === "WatcherForced" && r.subject === plot.client),
  };
}

// unread is how many changes wait in the server, up to a record, for the client that was stopped: in its queues, and
// one in its goroutine's hand.
function unread(plot, to) {
  const s = stopped(plot);
  const sent = plot.records.filter(
    (r) => r.rv === plot.last && r.seq <= to && r.point === "ResultReceived" && r.subject === plot.client
  ).length;
  return s.closed ? 0 : s.changes + 1 - s.sent - sent;
}

const fill = (queue) => `${queue?.len ?? 0} of ${queue?.cap ?? 0}`;

// steps are what is told, in order. look names the stations that are lit; rest finds the record at which the step
// rests, and happened says what happened up to it, res being the picture of the pods there.
export const steps = [
  {
    title: "etcd", look: ["http", "etcd"],
    purpose: () => "etcd stores every object. It gives each change the next number, its revision; Kubernetes calls " +
      "that the resource version.",
    rest: (plot) => plot.begun,
    happened: (plot) => `This page created the pod ${plot.name}, as kubectl does. etcd committed it as revision ` +
      `${plot.first}.`,
  },
  {
    title: "watchChan", look: ["etcd3"],
    purpose: () => "The API server watches etcd once, for all of its clients. The watchChan decodes what etcd " +
      "reports, and keeps it in order.",
    rest: (plot) => plot.one("Etcd3ResultSent"),
    happened: (plot, res, r) =>
      `Revision ${plot.first} was decoded and put into resultChan${since(plot, plot.first, r)}.`,
  },
  {
    title: "the ring", look: ["ring", "store"],
    purpose: () => "The ring keeps the newest changes, so that a client whose connection broke can resume where it " +
      "was. The store keeps the newest state of each object.",
    rest: (plot) => plot.one("StoreUpdate"),
    happened(plot) {
      const [start, end, capacity, oldest] = plot.one("RingAppend")?.args ?? [];
      return `Revision ${plot.first} took the next place in the ring. It holds ${end - start} of at most ${capacity} ` +
        `changes, from revision ${oldest} on. The store has ${plot.name}.`;
    },
  },
  {
    title: "the dispatcher", look: ["incoming", "dispatch"],
    purpose: () => "One goroutine, the dispatcher, hands each change to every client that may want it. No client may " +
      "hold it up for long.",
    rest: (plot) => plot.one("DispatchStarted"),
    happened(plot, res, r) {
      const all = Object.values(res?.subjects ?? {}).filter((s) => s.kind === "watcher").length;
      const picked = r.args?.[0] ?? 0;
      const others = picked < all ? ", and the others did not ask for such a pod" : "";
      return `It took revision ${plot.first} from its queue, incoming, and picked ${picked} of ${all} watchers: a ` +
        `watcher is one client’s place in the server${others}.`;
    },
  },
  {
    title: "input", look: ["watcher"], queue: "input",
    purpose: () => "Each client has two queues in the server. The left one is its input. The dispatcher puts the " +
      "change in and turns to the next client; it does not wait for this one to read.",
    rest: (plot) => plot.one("InputSent", plot.reader),
    happened: (plot, res) => `Revision ${plot.first} is in the input of ${plot.reader}, the informer’s watcher: ` +
      `${fill(res?.subjects[plot.reader]?.queues.input)} places are taken.`,
  },
  {
    title: "result", look: ["watcher"], queue: "result",
    purpose: () => "A goroutine of the server, one for each client, takes the change from input and checks it " +
      "against what the client asked for. A change that fits waits in the other queue, the result, until it is sent " +
        "to the client.",
    rest: (plot) => plot.one("ResultSent", plot.reader),
    happened: (plot, res, r) => `The informer asked for all pods. Revision ${plot.first} fits, and is now in the ` +
      `result of ${plot.reader} as ${r.type}.`,
  },
  {
    title: "your turn", look: ["watcher"], act: true,
    purpose: (plot, acted) =>
      acted
        ? "Each client has an input and a result of its own. They fill while it does not read. The others do not " +
          "wait for it. When its input is full, too, the server closes its stream: one of the stories at the end " +
            "plays that."
        : `${plot.client} is one more client, opened for you. Stop it from reading; then ${plot.name} is changed ` +
          `until the result of ${plot.client} is full and its input begins to fill. Guess first: will the others wait?`,
    rest(plot) {
      const { to, changes } = stopped(plot);
      return changes > 0 ? { seq: to } : undefined;
    },
    happened(plot, res) {
      const s = stopped(plot);
      const queues = res?.subjects[plot.client]?.queues;
      const rest = s.changes - s.sent - (queues?.result?.len ?? 0) - (queues?.input?.len ?? 0);
      const end = s.closed ? `Then ${plot.client} was closed.`
        : `Its result holds ${fill(queues?.result)},${rest === 1 ? " one waits to enter it," : ""} and its input ` +
          `holds ${fill(queues?.input)}.`;
      const wait = s.waited ? "the dispatcher waited a moment, then served the others" : "nothing held it up";
      return `${plot.name} was changed ${s.changes} times, and ${plot.client} read nothing. ${s.sent} changes filled ` +
        `the network’s buffers, which are not drawn. ${end} ` +
        `The informer has ${s.stored === s.changes ? "all" : ""} ${s.stored}: ${wait}.`;
    },
  },
  {
    title: "the FIFO", look: ["wire", "reflector", "fifo"],
    purpose: () => "In the client, the reflector reads the stream and puts each change into a queue, the FIFO. So " +
      "the reflector keeps reading while your code works.",
    rest: (plot) => plot.two("FIFOAdded", plot.informer),
    happened(plot, res, r) {
      const bytes = plot.two("FrameWritten", plot.reader)?.args?.[0];
      return `One more change of ${plot.name}, revision ${plot.last}, crossed the wire in ${bytes} bytes and entered ` +
        `the FIFO${since(plot, plot.last, r)}.`;
    },
  },
  {
    title: "the indexer", look: ["indexer"],
    purpose: () => "The indexer is the client’s own copy of all pods. Your controller reads it here, and does not " +
      "have to ask the server.",
    rest: (plot) => plot.two("IndexerUpdated", plot.informer),
    happened: (plot, res, r) => `The indexer has ${plot.name} at revision ${plot.last}${since(plot, plot.last, r)}.`,
  },
  {
    title: "your controller", look: ["processor", "listener", "handler", "workqueue"],
    purpose: () => "A handler is your code. The client calls it for each change. Most handlers only put the pod’s " +
      "name into the workqueue. Your controller takes the name from there, reads the pod in the indexer, and acts.",
    rest: (plot) => plot.records.findLast((r) => r.rv === plot.last && r.point === "HandlerCalled"),
    happened(plot, res, r) {
      const left = unread(plot, r.seq);
      const calls = plot.records.filter(
        (each) => each.rv === plot.last && each.point === "HandlerCalled" && each.seq <= r.seq
      ).length;
      const handlers = calls > 1 ? `${calls} handlers were called with ${plot.name}, the last one`
        : `One handler was called with ${plot.name}`;
      const waiting = ` ${left} changes still wait in the server for ${plot.client}, the client that you stopped; ` +
        "it is closed with the tour.";
      return `${handlers}${since(plot, plot.last, r)}.${left > 0 ? waiting : ""}`;
    },
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
