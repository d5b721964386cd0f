// The shelf: where everything comes from that is not the log: what points mean, stories and their recordings, the inspector's leaves. A page
// without a program (viz/export) puts a shelf of its own into window.listwatchShelf before page.js runs; nothing else is asked for there.

async function ask(url, options) {
  const response = await fetch(url, { cache: "no-store", ...options });
  if (response.ok) return response;
  const status = await response.json().catch(() => ({}));
  throw new Error(status.message ?? `the server answers ${response.status}`);
}

const server = {
  program: true, // it runs, or replays: the page has a log to read

  // points returns the table of points: no record can be read without it.
  points: async () => (await ask("/viz/points", { cache: "default" })).json(),

  // story returns a story as the page tells it: {id, title, …, beats, take, recorded, runs}. recorded says where its beats stand in
  // the recording called take; runs, whether there is a machine to play it; alone, why that one is not played on it.
  story: async (id) => (await ask(`/viz/scenario/${encodeURIComponent(id)}`)).json(),

  // take returns a recording that the program brings along, as a File.
  take: async (name) => new File([await (await ask(`/viz/takes/${encodeURIComponent(name)}`)).arrayBuffer()], name),

  // run plays a story on the machine and returns what was seen: {from, to, saw, beats, untold}. Aborted, it is undone.
  run: async (id, signal) => (await ask(`/viz/scenario/${encodeURIComponent(id)}`, { method: "POST", signal })).json(),

  // leaf returns a leaf of the inspector as HTML.
  leaf: async (station, tab, query) => (await ask(`/viz/part/${station}/${tab}?${query}`)).text(),

  // page returns the address of a page of the book.
  page: (path) => path,
};

export const shelf = globalThis.listwatchShelf ?? server;
