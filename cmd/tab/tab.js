// The page's half of a machine in a tab: it loads the machine into a Worker, carries the page's requests there as
// messages (internal/server/messages), and then puts the machine's own page in place of the recorded one.

(() => {
  const room = 16 << 10; // bytes of an answer that may be on their way and unread
  const bodiless = [204, 205, 304];

  // newWire returns what viz/lib/api.js calls a wire, over a Worker. Each exchange has a number, by which its messages
  // are known. While the page is hidden it has room for nothing, so it is sent nothing: what it does not read waits in
  // the machine, as on the connection of any client that does not read.
  function newWire(worker) {
    const open = new Map(); // by number: {hear(message), grant()}
    let last = 0;
    worker.addEventListener("message", ({ data }) => open.get(data.id)?.hear(data));
    document.addEventListener("visibilitychange", () => open.forEach(({ grant }) => grant()));

    function request(url, { method = "GET", headers = {}, body = "", signal } = {}) {
      const id = ++last;
      const post = (message) => worker.postMessage({ id, ...message });
      return new Promise((answer, refuse) => {
        let reader = null; // of the answer's body
        let coming = 0; // bytes for which room was granted and which have not arrived
        const end = (reason) => {
          open.delete(id);
          post({ kind: "abort" });
          refuse(reason);
        };
        signal?.addEventListener("abort", () => {
          end(signal.reason);
          reader.error(signal.reason);
        });
        // grant grants what room there is; a hidden page takes back what has not been used.
        const grant = () => {
          const more = (document.hidden ? 0 : reader.desiredSize) - coming;
          if (more === 0 || (more < 0 && !document.hidden)) return;
          coming += more;
          post({ kind: "room", room: more });
        };
        const stream = new ReadableStream({
          start: (controller) => (reader = controller),
          pull: grant,
          cancel: end,
        }, new ByteLengthQueuingStrategy({ highWaterMark: room }));
        const hear = ({ kind, status, headers, body, reason }) => {
          if (kind === "head") answer(new Response(bodiless.includes(status) ? null : stream, { status, headers }));
          if (kind === "chunk") {
            coming -= body.length;
            reader.enqueue(body);
          }
          if (kind === "end") reader.close();
          if (kind === "abort") {
            const problem = new TypeError(reason);
            reader.error(problem);
            refuse(problem);
          }
          if (kind === "end" || kind === "abort") open.delete(id);
        };
        open.set(id, { hear, grant });
        const entries = Object.entries({ "User-Agent": navigator.userAgent, ...headers });
        post({ kind: "request", method, url: new URL(url, "http://localhost").href, headers: entries, body });
      });
    }

    return { request };
  }

  // load sends the machine as gzip to the Worker, piece by piece, and null behind the last. From a web server it is one
  // file; from a folder a page may load scripts only.
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

  // greet says in each tab of these pages that the others are not its own.
  function greet({ tell }) {
    const channel = new BroadcastChannel("listwatch");
    channel.onmessage = ({ data }) => {
      tell("Another tab runs a machine, too. Each is a world of its own: what happens in one is not seen in the other.");
      if (data === "begun") channel.postMessage("here");
    };
    channel.postMessage("begun");
  }

  // listwatchRun runs the machine and returns when its page is there. site has {root, bytes, size, parts, say, tell}.
  globalThis.listwatchRun = async (site) => {
    const code = new TextDecoder().decode(await site.bytes("machine/worker"));
    const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
    const ask = (event) => {
      event.preventDefault();
      setTimeout(site.tell, 100, "What happened here goes with this tab. “Save a recording”, in the menu, keeps it.");
    };
    const ready = new Promise((done, fail) => {
      worker.onerror = (event) => fail(new Error(event.message));
      worker.addEventListener("message", ({ data: { kind, reason } }) => {
        if (kind === "ready") done();
        if (kind === "died") {
          fail(new Error(reason));
          site.say(0, `The machine has ended: ${reason}`);
          removeEventListener("beforeunload", ask); // nothing is left to be lost
          worker.terminate();
        }
      });
    });
    try {
      await Promise.all([ready, load(worker, site)]);
    } catch (problem) {
      worker.terminate();
      throw problem;
    }
    const wire = newWire(worker);
    globalThis.listwatchWire = wire;
    greet(site);
    addEventListener("beforeunload", ask);
    return (await wire.request("/")).text();
  };
})();
