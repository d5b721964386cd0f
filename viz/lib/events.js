// Streams that are read in pieces while they come.

// split yields what stands before each separator in an answer; with all, what comes after the last one, too.
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

// Events is what an EventSource is, over any wire's request, but that it does not resume: the feed begins again.
export class Events extends EventTarget {
  OPEN = 1;
  CLOSED = 2;
  readyState = 0;
  #stop = new AbortController();

  constructor(request, url) {
    super();
    this.#read(request, url).catch(() => {}).finally(() => {
      const closed = this.readyState === this.CLOSED;
      this.readyState = this.CLOSED;
      if (!closed) this.dispatchEvent(new Event("error"));
    });
  }

  close() {
    this.readyState = this.CLOSED;
    this.#stop.abort();
  }

  async #read(request, url) {
    const response = await request(url, { headers: { Accept: "text/event-stream" }, signal: this.#stop.signal });
    if (!response.ok) return;
    this.readyState = this.OPEN;
    let lastEventId = "";
    for await (const message of split(response, "\n\n")) {
      const fields = new Map(message.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
      lastEventId = fields.get("id") ?? lastEventId;
      const type = fields.get("event") ?? "message";
      if (fields.has("data")) this.dispatchEvent(new MessageEvent(type, { data: fields.get("data"), lastEventId }));
    }
  }
}
