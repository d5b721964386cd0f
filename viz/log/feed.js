// @ts-nocheck
// The feed: a list, then a watch from there, and the list again when the watch says `gone`.
//
// One stream per tab at most, and none while the tab is hidden: a browser opens only six connections to an origin, and
// no viewer sees a hidden page.

import { get, queryOf, watch as stream } from "../lib/api.js";

const silence = 3000; // the server sends a bookmark every second; after so long without a word it is not running
const pause = 500; // ms until what failed is tried again

// newFeed calls on.snapshot(answer), on.records(list), on.coalesced(message) when the server has summed records up that
// the page was too slow for, or that were too many to be looked at, on.world(status) when the world is held or its
// clock moved, and on.state(word, title). on.follows() is the part of the query that says what it is not to sum up, and
// whether the page gives its tour; rejoin watches on with what it says now.
export function newFeed(on) {
  let source = null; // what aborts the list or the stream that is read
  let heard = 0; // when it last said something; 0: it has not yet
  let retry = 0;
  let closed = false;
  let at = null; // {seq, log}: the newest message, and the log; null: it has to be listed
  let follows = ""; // what on.follows() said when the stream was opened

  function begin() {
    end();
    at = null;
    if (!document.hidden && !closed) read();
  }

  // read lists what has not been listed, and reads the stream of what comes after, until it is called again. A stream
  // that breaks is resumed; one that is refused begins again.
  async function read() {
    // The program closes the clients of tours with the last page that gives one. So the stream before stays until this
    // one is open, or gives up: this page never seems to be away.
    const before = source;
    const mine = (source = new AbortController());
    heard = 0;
    try {
      if (!at) {
        const snapshot = await get("/viz/snapshot", { signal: mine.signal });
        if (mine !== source) return;
        on.snapshot(snapshot);
        at = { seq: snapshot.seq, log: snapshot.log };
      }
      follows = on.follows();
      const query = queryOf({ since: at.seq, log: at.log }) + follows;
      for await (const message of stream(`/viz/events?${query}`, mine.signal)) {
        if (mine !== source) return;
        before?.abort();
        queueMicrotask(() => hear(message)); // an error of the page's own ends no stream
      }
    } catch (problem) {
      if (mine === source && problem.status) at = null;
    } finally {
      before?.abort();
    }
    if (mine !== source) return;
    source = null;
    on.state("reconnecting", at ? "The stream broke; resuming after the last record seen."
      : "The server does not answer; trying again.");
    retry = setTimeout(read, pause);
  }

  const acts = {
    frame: on.records,
    coalesced(answer) {
      on.coalesced(answer);
      if (on.follows() !== follows) read();
    },
    world: on.world,
    gone: begin,
  };

  function hear({ id, event, data }) {
    const began = performance.now();
    [at.seq, heard] = [Number(id), began];
    on.state("live", "Every record as it is written.");
    acts[event]?.(JSON.parse(data));
    on.took(performance.now() - began);
  }

  function end() {
    clearTimeout(retry);
    source?.abort();
    source = null;
  }

  setInterval(() => {
    if (source && heard > 0 && performance.now() - heard > silence) {
      on.state("silent", "Connected, but the process sends nothing: it is stopped, perhaps in a debugger.");
    }
  }, 1000);
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
  window.addEventListener("pagehide", end);
  return {
    begin,
    close: () => ((closed = true), end()), // for good: something else is shown
    reopen: () => ((closed = false), begin()), // after close
    rejoin: () => source && at && read(),
  };
}
