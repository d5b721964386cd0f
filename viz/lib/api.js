// The page's only way to the program: every request and every stream begins here.
//
// A page whose program is not behind a port brings its own wire in window.listwatchWire, which it sets before page.js
// runs. So does a page without a program (viz/export): its wire leads to files, and says that there is no program.

/**
 * @typedef {(url: string | URL, options?: RequestInit) => Promise<Response>} Http
 * @typedef {{ program: boolean, request: (url: string, options: RequestInit, http: Http) => Promise<Response> }} Wire
 * @typedef {RequestInit & { type?: string }} Options
 * @typedef {{ id: string, event: string, data: string }} Message of a stream of events
 * @typedef {Error & { status?: number, gone?: boolean }} Refusal
 */

// wire.request returns a Response, whose body may still be on its way, and obeys options.signal. By default it goes to
// a program behind a port. A wire may use http for what lies elsewhere.
/** @type {Http} */
const http = (url, options) => fetch(url, options);
/** @type {Wire} */
const wire = globalThis.listwatchWire ?? { program: true, request: http };
export const program = wire.program; // is there one, which runs or replays? Then the page has a log to read

// send sends one request and returns the response. A refusal is an Error with the server's own words, its status, and
// gone for 410.
/** @param {string} method @param {string} url @param {unknown} [body] @param {Options} [options] */
async function send(method, url, body, { type = "application/json", ...options } = {}) {
  const content = body === undefined ? {} : { headers: { "Content-Type": type }, body: JSON.stringify(body) };
  const response = await wire.request(url, { method, cache: "no-store", ...content, ...options }, http);
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
/** @param {string} method @param {string} url @param {unknown} [body] @param {Options} [options] */
export async function ask(method, url, body, options) {
  const text = await (await send(method, url, body, options)).text();
  return text ? JSON.parse(text) : {};
}

// get returns the answer to GET url as JSON.
/** @param {string} url @param {Options} [options] */
export const get = (url, options) => ask("GET", url, undefined, options);

// refusal is what was thrown, as an error that may have a status.
/** @param {unknown} problem @returns {Refusal} */
export const refusal = (problem) => (problem instanceof Error ? problem : new Error(String(problem)));

// queryOf writes those parts of an address that have a value.
/** @param {{ [name: string]: string | number | undefined }} parts */
export const queryOf = (parts) =>
  new URLSearchParams(Object.entries(parts).flatMap(([name, value]) => (
    value || value === 0 ? [[name, String(value)]] : []
  )));

// text returns the answer to GET url as text.
/** @param {string} url */
export const text = async (url) => (await send("GET", url)).text();

// split yields what stands before each separator in an answer while it comes; with all, what comes after the last
// one, too.
/** @param {Response} response @param {string} separator @param {boolean} [all] */
export async function* split(response, separator, all = false) {
  const body = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body);
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  /** @type {string[]} */
  let held = []; // pieces without an end: a long line comes in many
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    held.push(piece.value);
    if (!piece.value.includes(separator.slice(-1))) continue;
    const whole = held.join("").split(separator);
    held = [whole.pop() ?? ""];
    yield* whole;
  }
  if (all) yield held.join("");
}

// lines sends a request and yields its answer as it comes: each line is a value in JSON.
/** @param {string} url @param {unknown} body @param {AbortSignal} signal */
export async function* lines(url, body, signal) {
  for await (const line of split(await send("POST", url, body, { signal }), "\n")) yield JSON.parse(line);
}

// watch yields the messages of a stream of events as they come, as {id, event, data}.
/** @param {string} url @param {AbortSignal} signal @returns {AsyncGenerator<Message>} */
export async function* watch(url, signal) {
  for await (const message of split(await send("GET", url, undefined, { signal }), "\n\n")) {
    const of = Object.fromEntries(message.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
    yield { id: of.id, event: of.event, data: of.data };
  }
}

// leave sends a last word that arrives also when the page goes away.
/** @param {string} url @param {unknown} body */
export const leave = (url, body) => void send("POST", url, body, { keepalive: true }).catch(() => {});

// fileAt returns what lies at an address of the program, as a file.
/** @param {string} url @param {string} name */
export async function fileAt(url, name) {
  return new File([await (await send("GET", url)).arrayBuffer()], name);
}

// take returns a recording that the program brings along, as a File; in pages without a program, one that has an
// address, too.
/** @param {string} name */
export const take = (name) => fileAt(`/viz/takes/${encodeURIComponent(name)}`, name);
