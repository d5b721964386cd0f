// Why is this blocked? From any queue the chain of waiting to the one that can end it: internal/observe/fold/why.go a second
// time, function by function, for the picture at the cursor.

// newWhy returns {why(res, queue, subject), causes(res)} for the infos of a fold.
export function newWhy(infos) {
  const holders = new Map(); // by queue: the points of waits during which nothing is taken from it
  for (const info of infos.values()) {
    for (const queue of info.holds ?? []) holders.set(queue, [...(holders.get(queue) ?? []), info.name]);
  }

  // why follows the waiting from a queue to the end.
  function why(res, queue, subject) {
    const chain = [];
    while (queue && !chain.some((l) => l.queue === queue && l.subject === subject)) {
      const q = res.subjects[subject]?.queues[queue];
      const link = {
        queue, subject, len: q?.len ?? 0, cap: q?.cap ?? 0,
        sender: senderOf(res, queue, subject), taker: takerOf(res, queue, subject),
      };
      chain.push(link);
      [queue, subject] = next(res, link.taker);
    }
    return chain;
  }

  function next(res, w) {
    if (!w) return ["", ""];
    if (w.kind !== "client") return [w.on, w.subject];
    const client = clientOf(res, w.subject);
    return client ? ["wire", client] : ["", ""];
  }

  // causes returns the last links of all chains that a goroutine waits at, each once, the longest wait first.
  function causes(res) {
    const found = [];
    for (const w of waitsAtQueues(res)) {
      const last = why(res, w.on, w.subject).at(-1);
      if (!found.some((l) => l.queue === last.queue && l.subject === last.subject)) found.push(last);
    }
    return found;
  }

  function takerOf(res, queue, subject) {
    let oldest = null;
    for (const name of holders.get(queue) ?? []) {
      for (const id of Object.keys(res.waits).sort()) {
        const w = res.waits[id][0];
        if (w.point === name && takes(res, w, queue, subject) && (!oldest || w.seq < oldest.seq)) oldest = w;
      }
    }
    return oldest;
  }

  return { why, causes };
}

// waitsAtQueues returns the waits of those who cannot put something into a queue, the oldest first.
export function waitsAtQueues(res) {
  return Object.values(res.waits)
    .filter(([w]) => w.on && w.kind !== "work")
    .flat()
    .sort((a, b) => a.seq - b.seq);
}

function senderOf(res, queue, subject) {
  return waitsAtQueues(res).find((w) => w.on === queue && w.subject === subject) ?? null;
}

// takes reports whether who waits is the receiver of this queue and not of another one's of that name.
function takes(res, w, queue, subject) {
  if (queue === "etcd3-result") return subject === youngest(res, "watchchan");
  return kindOf(res, w.subject) !== kindOf(res, subject) || w.subject === subject;
}

const kindOf = (res, subject) => res.subjects[subject]?.kind ?? "";

function youngest(res, kind) {
  let id = "";
  for (const each of Object.keys(res.subjects).sort()) {
    const sub = res.subjects[each];
    if (sub.kind === kind && (id === "" || sub.opened > res.subjects[id].opened)) id = each;
  }
  return id;
}

// clientOf returns the id of the client that a watcher serves, if it is one that reports, too.
function clientOf(res, watcher) {
  return clientNames(res, watcher).find((id) => (res.subjects[id]?.counts.FrameDecoded ?? 0) > 0) ?? "";
}

// clientNames returns how the client of a watcher may be called: as it calls itself on the wire, or as its informer.
export const clientNames = (res, watcher) => namesOf(res?.subjects[watcher]);

// namesOf is clientNames for a watcher that is at hand.
export function namesOf(subject) {
  const name = (subject?.texts.WireOpened ?? "").split(" ")[0].split("/")[0].replace(/^listwatch-/, "");
  return name ? [name, `${name}-informer`] : [];
}
