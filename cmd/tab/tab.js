// This script runs the machine in a Worker, carries a page's requests to it, and fetches the machine's own page.

(() => {
  const room = 16 << 10; // the maximum number of bytes of a response in transit or unread
  const bodiless = [204, 205, 304];

  // newWire returns a wire (viz/lib/api.js) over a Worker. Bytes for which the page has no room wait in the machine.
  function newWire(worker) {
    const open = new Map(); // maps an exchange's number to functions, one for each kind of message
    let last = 0;
    worker.addEventListener("message", ({ data }) => open.get(data.id)?.[data.kind](data));

    function request(url, { method = "GET", headers = {}, body = "", signal } = {}) {
      const id = ++last;
      const post = (message) => worker.postMessage({ id, ...message });
      return new Promise((answer, refuse) => {
        let reader = null; // the controller of the answer's body
        let coming = 0; // bytes for which the page granted room, and which have not arrived
        const end = (reason) => {
          open.delete(id);
          post({ kind: "abort" });
          refuse(reason);
        };
        signal?.addEventListener("abort", () => {
          end(signal.reason);
          reader.error(signal.reason);
        });
        const pull = () => {
          const more = reader.desiredSize - coming;
          coming += Math.max(0, more);
          if (more > 0) post({ kind: "room", room: more });
        };
        const stream = new ReadableStream({ start: (controller) => (reader = controller), pull, cancel: end },
          new ByteLengthQueuingStrategy({ highWaterMark: room }));
        open.set(id, {
          head: ({ status, headers }) =>
            answer(new Response(bodiless.includes(status) ? null : stream, { status, headers })),
          chunk({ body }) {
            coming -= body.length;
            reader.enqueue(body);
          },
          end: () => reader.close(open.delete(id)),
          abort({ reason }) {
            open.delete(id);
            refuse(new TypeError(reason));
            reader.error(new TypeError(reason));
          },
        });
        const entries = Object.entries({ "User-Agent": navigator.userAgent, ...headers });
        post({ kind: "request", method, url: new URL(url, "http://localhost").href, headers: entries, body });
      });
    }

    return { request };
  }

  // load sends the machine as gzip to the Worker, piece by piece, and null after the last piece. A web server has the
  // machine as one file. A page opened from a folder may load only scripts, so there each piece is in a script.
  async function load(worker, { root, bytes, size, parts, say }) {
    let loaded = 0;
    const took = (piece) => {
      say((loaded += piece.length));
      worker.postMessage(piece, [piece.buffer]);
    };
    if (location.protocol === "file:") {
      for (let i = 0; i < parts; i++) took(await bytes(`machine/${i}`));
    } else {
      const response = await fetch(`${root}machine/machine.gz`);
      if (!response.ok) throw new Error(`The machine cannot be loaded: ${response.status}.`);
      const reader = response.body.getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) took(piece.value);
    }
    if (loaded !== size) throw new Error(`The machine has ${loaded} bytes, and ought to have ${size}.`);
    worker.postMessage(null);
    say(size, "The machine is starting.");
  }

  // listwatchRun starts the machine and returns its page's HTML. viz/export/static.js calls it and defines site.
  globalThis.listwatchRun = async (site) => {
    const code = new TextDecoder().decode(await site.bytes("machine/worker"));
    const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
    const ask = (event) => { // the browser asks the viewer first, because the program ends with this tab
      event.preventDefault();
      setTimeout(site.tell, 100, "What happened here ends with the tab. “Save a recording” in the menu keeps it.");
    };
    const ready = new Promise((done, fail) => {
      worker.onerror = (event) => fail(new Error(event.message));
      worker.addEventListener("message", ({ data: { kind, reason } }) => {
        if (kind === "ready") done();
        if (kind === "died") {
          fail(new Error(reason));
          site.say(0, `The machine has ended: ${reason}`);
          removeEventListener("beforeunload", ask); // the machine has already ended
          worker.terminate();
        }
      });
    });
    await Promise.all([ready, load(worker, site)]).catch((problem) => {
      worker.terminate();
      throw problem;
    });
    const wire = newWire(worker);
    globalThis.listwatchWire = wire;
    addEventListener("beforeunload", ask);
    return (await wire.request("/")).text();
  };
})();
