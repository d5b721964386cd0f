// The feed: a list, then a watch from there, and the list again when the watch says `gone`.
//
// One EventSource per tab at most, and none while the tab is hidden: a browser opens only six connections to an
// origin, and no viewer sees a hidden page.

import { get, watch as stream } from "../lib/api.js";

const silence = 3000; // the server sends a bookmark every second; after so long without a word it is not running

// newFeed calls on.snapshot(answer), on.records(list), on.coalesced(message) when the server has summed records up that
// the page was too slow for, or that were too many to be looked at, on.world(status) when the world is held or its
// clock moved, and on.state(word, title). on.follows() is the part of the query that says what it is not to sum up, and
// whether the page gives its tour; rejoin watches on with what it says now.
export function newFeed(on) {
  let source = null;
  let former = []; // streams that end when source is open
  let heard = 0;
  let retry = 0;
  let listing = false;
  let closed = false;
  let last = 0; // the sequence number of the newest message
  let watched = ""; // the log

  async function begin() {
    end();
    if (document.hidden || listing || closed) return;
    listing = true;
    try {
      const snapshot = await get("/viz/snapshot");
      if (closed) return;
      on.snapshot(snapshot);
      watch(snapshot.seq, snapshot.log);
    } catch {
      on.state("reconnecting", "The server does not answer; trying again.");
      again();
    } finally {
      listing = false;
    }
  }

  function watch(seq, log) {
    // The program closes the clients of tours with the last page that gives one: this page never seems to be away.
    if (source) former.push(source);
    const follows = on.follows();
    [last, watched] = [seq, log];
    source = stream(`/viz/events?since=${seq}&log=${encodeURIComponent(log)}${follows}`);
    heard = performance.now();
    const mine = source;
    mine.addEventListener("open", () => mine === source && leave());
    const hear = (event, act) => mine.addEventListener(event, (message) => {
      if (mine !== source) return;
      const began = performance.now();
      alive(message);
      act(JSON.parse(message.data));
      on.took(performance.now() - began);
    });
    hear("frame", on.records);
    hear("coalesced", (answer) => {
      on.coalesced(answer);
      if (on.follows() !== follows) watch(answer.seq, log);
    });
    hear("world", on.world);
    hear("bookmark", () => {});
    hear("gone", begin);
    mine.addEventListener("error", () => {
      if (mine !== source) return;
      // The browser connects again by itself, with Last-Event-ID, unless the answer was no stream at all.
      on.state("reconnecting", "The stream broke; resuming after the last record seen.");
      if (mine.readyState === mine.CLOSED) again();
    });
  }

  function alive(message) {
    last = Math.max(last, Number(message.lastEventId));
    heard = performance.now();
    on.state("live", "Every record as it is written.");
  }

  function again() {
    clearTimeout(retry);
    retry = setTimeout(begin, 1000);
  }

  function end() {
    clearTimeout(retry);
    source?.close();
    source = null;
    leave();
  }

  function leave() {
    for (const each of former) each.close();
    former = [];
  }

  setInterval(() => {
    if (source && source.readyState === source.OPEN && performance.now() - heard > silence) {
      on.state("silent", "Connected, but the process sends nothing: it is stopped, perhaps in a debugger.");
    }
  }, 1000);
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()));
  window.addEventListener("pagehide", end);
  return {
    begin,
    close: () => ((closed = true), end()), // for good: something else is shown
    reopen: () => ((closed = false), begin()), // after close
    rejoin: () => source && watch(last, watched),
  };
}
