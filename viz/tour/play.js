// What the tour does to the running program: one pod, and one client that is opened for it. seen(fact) waits until
// fact(records since the tour began) is true of what arrived.

import { get } from "../lib/api.js";
import { closeWatcher, createPod, deletePod, isOpen, listPods } from "../lib/cluster.js";
import { openWatcher, patchPod, postPod, turnKnob } from "../lib/cluster.js";
import { laterRV } from "../log/fold.js";

const labels = { app: "my-app" };
const most = 60; // changes of the pod, at most
const largest = 400; // places of a ring that is made to lose a version
const spare = 3; // places of the ring that are left
const patience = 8000; // ms for the effect of a request

// until waits for a fact about what has arrived.
export async function until(fact) {
  for (const began = performance.now(); performance.now() - began < patience; ) {
    const found = await fact();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 30));
  }
  throw new Error("The program does not continue. Is it held, or stopped by a debugger?");
}

// openClient opens the client that may be stopped, and returns its id and what it calls itself. It watches from now on,
// and so has a version from its beginning.
async function openClient() {
  const { resourceVersion } = (await listPods("limit=1")).metadata;
  return openWatcher({ resource: "pods", tour: true, resourceVersion, bookmarks: true, watchList: true });
}

// named finds where a client's newest stream was opened.
const named = (agent) => (list) => list.findLast((r) => r.point === "WireOpened" && r.text.startsWith(`${agent} `));

// change changes the pod, by a few KB or by nearly nothing, and returns its version then.
async function change(key, n, size = 2000) {
  const patch = { metadata: { annotations: { tour: `${n} ${"·".repeat(size)}` } } };
  return (await patchPod(key, patch)).metadata.resourceVersion;
}

// handled waits until a handler was called with a version.
const handled = (rv, seen) => seen((list) => list.some((r) => r.rv === rv && r.point === "HandlerCalled"));

// begin opens the client and creates the pod.
export async function begin(seen) {
  const { id, agent } = await openClient();
  await seen(named(agent));
  return { key: await createPod((n) => (n ? `my-pod-${n + 1}` : "my-pod"), labels), id, agent };
}

// stop stops the client from reading, and changes the pod until the client can take no more: the next change would
// close it. A small ring must not lose what it has to come back for.
export async function stop({ key, id, agent, ring }, seen) {
  if (!(await isOpen(id))) { // the tour was left, and took its client and its pod along
    const name = key.split("/")[1];
    const { items } = await listPods(`fieldSelector=metadata.name%3D${name}`);
    if (items.length === 0) await postPod(name, labels);
    ({ id, agent } = await openClient());
  }
  const { subject: client, seq: since } = await seen(named(agent));
  await turnKnob("line.stall", agent, "true");
  // It is asked of the log itself: the feed is a tenth of a second behind, in which there are many changes.
  const said = async (point) => (await get(`/viz/records?point=${point}&subject=${client}&from=${since}`)).records;
  let last = "";
  for (let n = 1, left = Infinity; n <= most && left > 0; n++) {
    last = await change(key, n);
    if (left < Infinity || (await said("ResultBlocked")).length === 0) {
      left--;
      continue;
    }
    await until(async () => (await said("InputSent")).some(({ rv }) => rv === last));
    const [sent, received] = [await said("InputSent"), await said("InputReceived")];
    left = Math.min(sent.at(-1).args[1] - (sent.length - received.length), ring - spare - n);
  }
  await handled(last, seen);
  return { key, id, agent, last };
}

// comeBack lets the client come back, and read what it missed; then keeps it away until the ring of so many places has
// lost what it read last, and lets it come back again. At the end the pod is created once more.
export async function comeBack({ key, agent, ring, last }, seen) {
  const { subject: client } = await seen(named(agent));
  await turnKnob("line.drop", agent);
  await turnKnob("line.stall", agent, "false");
  const sent = (list) => list.findLast((r) => r.point === "FrameWritten" && r.rv
    && r.subject === named(agent)(list).subject);
  // The pod may have been changed by others, too, and, if this is tried again, the client may know the version.
  await seen((list) => {
    const { subject, text } = named(agent)(list);
    const known = [/resourceVersion=(\d+)/.exec(text)?.[1], sent(list)?.rv];
    return subject !== client && known.some((rv) => rv && !laterRV(last, rv));
  });
  if (ring <= largest) {
    await turnKnob("line.cut", agent, "true");
    for (let n = 0; n <= ring; n++) await change(key, n, 0);
    await turnKnob("line.cut", agent, "false");
    await seen((list) => sent(list)?.type === "BOOKMARK");
  }
  await deletePod(key);
  await handled((await postPod(key.split("/")[1], labels)).metadata.resourceVersion, seen);
}

// remove removes the pod and the client, as far as they are still there.
export async function remove({ key, id }) {
  if (await isOpen(id)) await closeWatcher(id);
  await deletePod(key);
}
