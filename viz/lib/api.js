// The page's only way to the program. A page whose program has no port sets its own wire in window.listwatchWire before
// page.js runs. So does a page without a program (viz/export), whose wire reads files.

/**
 * @typedef {(url: string | URL, options?: RequestInit) => Promise<Response>} Http
 * @typedef {{ program: boolean, request: (url: string, options: RequestInit, http: Http) => Promise<Response> }} Wire
 * @typedef {RequestInit & { type?: string }} Options
 * @typedef {{ id: string, event: string, data: string }} Message a message of a stream of events
 * @typedef {Error & { status?: number, gone?: boolean }} Refusal
 */

// wire.request resolves to a Response, whose body may still be arriving. options.signal aborts it. By default, it sends
// the request to a program behind a port. A wire may use http for other addresses.
/** @type {Http} */
const http = (url, options) => fetch(url, options);
/** @type {Wire} */
const wire = globalThis.listwatchWire ?? { program: true, request: http };
export const program = wire.program; // whether there is a program, running or replaying, with a log to read

// send resolves to an ok response. For any other it throws an Error with the server's message, status, and gone if 410.
/** @param {string} method @param {string} url @param {unknown} [body] @param {Options} [options] */
async function send(method, url, body, { type = "application/json", ...options } = {}) {
  const content = body === undefined ? {} : { headers: { "Content-Type": type }, body: JSON.stringify(body) };
  const response = await wire.request(url, { method, cache: "no-store", ...content, ...options }, http)
    .catch((problem) => { throw problem instanceof TypeError ? new Error("The program does not answer.") : problem; });
  if (response.ok) return response;
  const text = await response.clone().text(); // another server's refusal need not be JSON
  const { message = text } = await response.json().catch(() => ({}));
  const { status } = response;
  throw Object.assign(new Error(message || `the server answers ${status}`), { status, gone: status === 410 });
}

// ask sends a request and returns its JSON answer, or {} if empty. options has the body's type and fetch's options.
/** @param {string} method @param {string} url @param {unknown} [body] @param {Options} [options] */
export async function ask(method, url, body, options) {
  const text = await (await send(method, url, body, options)).text();
  return text ? JSON.parse(text) : {};
}

/** @param {string} url @param {Options} [options] */
export const get = (url, options) => ask("GET", url, undefined, options);

// refusal converts a thrown value to an error, which may have a status.
/** @param {unknown} problem @returns {Refusal} */
export const refusal = (problem) => (problem instanceof Error ? problem : new Error(String(problem)));

// queryOf returns parts as the parameters of a query, without those that are "" or undefined.
/** @param {{ [name: string]: string | number | undefined }} parts */
export const queryOf = (parts) => new URLSearchParams(Object.entries(parts)
  .filter(([, value]) => value || value === 0).map(([name, value]) => [name, String(value)]));

/** @param {string} url */
export const text = async (url) => (await send("GET", url)).text();

// split yields the part of an answer before each separator as it arrives and, with all, the part after the last one.
/** @param {Response} response @param {string} separator @param {boolean} [all] */
export async function* split(response, separator, all = false) {
  const body = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body);
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  /** @type {string[]} */
  let held = []; // pieces of an unfinished part: a long line arrives in many
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    held.push(piece.value);
    if (!piece.value.includes(separator.slice(-1))) continue;
    const whole = held.join("").split(separator);
    held = [whole.pop() ?? ""];
    yield* whole;
  }
  if (all) yield held.join("");
}

// lines sends a request and yields its answer as it arrives, one JSON value for each line.
/** @param {string} url @param {unknown} body @param {AbortSignal} signal */
export async function* lines(url, body, signal) {
  for await (const line of split(await send("POST", url, body, { signal }), "\n")) yield JSON.parse(line);
}

// watch yields the messages of a stream of events as they arrive, as {id, event, data}.
/** @param {string} url @param {AbortSignal} signal @returns {AsyncGenerator<Message>} */
export async function* watch(url, signal) {
  for await (const message of split(await send("GET", url, undefined, { signal }), "\n\n")) {
    const of = Object.fromEntries(message.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
    yield { id: of.id, event: of.event, data: of.data };
  }
}

/** @param {string} url @param {string} name */
export async function fileAt(url, name) {
  return new File([await (await send("GET", url)).arrayBuffer()], name);
}

// take returns an embedded recording as a File; in pages without a program, name may also be a recording's address.
/** @param {string} name */
export const take = (name) => fileAt(`/viz/takes/${encodeURIComponent(name)}`, name);
