// The page's only way to the program: every request and every stream begins here.
//
// A page without a program (viz/export) brings its own answers in window.listwatchShelf, which it sets before page.js
// runs; such a page asks for nothing else. A page whose program is not behind a port brings its own wire in
// window.listwatchWire, in the same way.

// request returns a Response, whose body may still be on its way, and obeys options.signal. By default it goes to a
// program behind a port.
const { request } = globalThis.listwatchWire ?? { request: (url, options) => fetch(url, options) };

// send sends one request and returns the response. A refusal is an Error with the server's own words, its status, and
// gone for 410.
async function send(method, url, body, { type = "application/json", cache = "no-store", ...options } = {}) {
  const content = body === undefined ? {} : { headers: { "Content-Type": type }, body: JSON.stringify(body) };
  const response = await request(url, { method, cache, ...content, ...options });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    ({ message } = JSON.parse(text));
  } catch {
    // Another server's refusal need not be JSON.
  }
  const { status } = response;
  throw Object.assign(new Error(message || `the server answers ${status}`), { status, gone: status === 410 });
}

// ask returns the answer to a request as JSON; options are type (of the body), and those of fetch.
export async function ask(method, url, body, options) {
  const text = await (await send(method, url, body, options)).text();
  return text ? JSON.parse(text) : {};
}

// get returns the answer to GET url as JSON.
export const get = (url, options) => ask("GET", url, undefined, options);

// queryOf writes those parts of an address that have a value.
export const queryOf = (parts) =>
  new URLSearchParams(Object.entries(parts).filter(([, value]) => value || value === 0));

// html returns a part of a page that the program has rendered, as an element.
export async function html(url) {
  return elementOf(await (await send("GET", url)).text());
}

// split yields what stands before each separator in an answer while it comes; with all, what comes after the last
// one, too.
export async function* split(response, separator, all = false) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = []; // pieces without an end: a long line comes in many
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    held.push(piece.value);
    if (!piece.value.includes(separator.at(-1))) continue;
    const whole = held.join("").split(separator);
    held = [whole.pop()];
    yield* whole;
  }
  if (all) yield held.join("");
}

// lines sends a request and yields its answer as it comes: each line is a value in JSON.
export async function* lines(url, body, signal) {
  for await (const line of split(await send("POST", url, body, { signal }), "\n")) yield JSON.parse(line);
}

// elementOf returns HTML that the program has rendered as an element.
export const elementOf = (text) => new DOMParser().parseFromString(text, "text/html").body.firstElementChild;

// watch yields the messages of a stream of events as they come, as {id, event, data}.
export async function* watch(url, signal) {
  for await (const message of split(await send("GET", url, undefined, { signal }), "\n\n")) {
    yield Object.fromEntries(message.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
  }
}

// asking returns a function for each frame, which calls act when so many ms have passed, if the page is seen. What
// fails is no news: the banner says already that the program does not answer.
export function asking(act) {
  let asked = -Infinity;
  return (now, period) => {
    if (now - asked < period || document.hidden) return;
    asked = now;
    act().catch(() => {});
  };
}

// leave sends a last word that arrives also when the page goes away.
export const leave = (url, body) => void send("POST", url, body, { keepalive: true }).catch(() => {});

async function fileAt(url, name) {
  return new File([await (await send("GET", url)).arrayBuffer()], name);
}

const scenario = (id) => `/viz/scenario/${encodeURIComponent(id)}`;

const server = {
  program: true, // it runs, or replays: the page has a log to read

  // points returns the table of points: no record can be read without it.
  points: () => get("/viz/points", { cache: "default" }),

  // story returns a story as the page tells it: {id, title, …, beats, take, recorded, runs}. recorded says where its
  // beats stand in the recording called take; runs, whether there is a machine to play it; alone, why that one is not
  // played on it. "tour" is the tour, as it is told from its recording.
  story: (id) => get(scenario(id)),

  // take returns a recording that the program brings along, as a File.
  take: (name) => fileAt(`/viz/takes/${encodeURIComponent(name)}`, name),

  // recording returns what the program's log still holds, as a File.
  recording: () => fileAt("/viz/recording", "listwatch.lw.gz"),

  // run plays a story on the machine and returns what was seen: {from, to, saw, beats, untold}. Aborted, it is undone.
  run: (id, signal) => ask("POST", scenario(id), undefined, { signal }),

  // leaf returns a leaf of the inspector as HTML.
  leaf: async (station, tab, query) => (await send("GET", `/viz/part/${station}/${tab}?${query}`)).text(),

  // page returns the address at which a page of the program lies: of the book.
  page: (path) => path,
};

export const shelf = { ...server, ...globalThis.listwatchShelf };

// take returns a recording by its name, as a File; where the shelf has files, by its address, too.
export const take = (name) => shelf.take(name, fileAt);

// leaf returns a leaf of the inspector as an element.
export const leaf = async (station, tab, query) => elementOf(await shelf.leaf(station, tab, query));
