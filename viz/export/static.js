"use strict";
// The shelf of pages without a program. It runs before every other deferred script of a page. What the program would be
// asked for lies in files beside the page, as scripts: a page that was opened from a folder may load those and nothing
// else. Each calls listwatchFile(name, gzip as base64).

{
  /**
   * @typedef {import("../lib/api.js").Http} Http
   * @typedef {import("../lib/api.js").Wire} Wire
   */
  const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
  const root = new URL(".", src).href;
  /** @type {Map<string, PromiseWithResolvers<string>>} */
  const files = new Map(); // by name: its text, promised and given by Promise.withResolvers

  globalThis.listwatchFile = (name, text) => {
    shelf(name).resolve(text);
  };

  // shelf is where a file is put, or will be.
  /** @param {string} name */
  function shelf(name) {
    const known = files.get(name) ?? Promise.withResolvers();
    files.set(name, known);
    return known;
  }

  /** @param {string} name */
  function file(name) {
    if (!files.has(name)) {
      const script = document.createElement("script");
      script.src = `${root}${name}.js`;
      script.onerror = () => shelf(name).reject(new Error("These pages do not have it."));
      document.head.append(script);
    }
    return shelf(name).promise;
  }

  /** @param {string} name */
  const bytes = async (name) => Uint8Array.from(atob(await file(name)), (c) => c.charCodeAt(0));

  /** @param {string} name */
  async function data(name) {
    const packed = await bytes(name);
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  /** @param {string} id */
  async function story(id) {
    const stories = await data("data/stories");
    if (!Object.hasOwn(stories, id)) throw new Error("These pages do not have it.");
    return Response.json(stories[id]);
  }

  // take answers with a recording of these pages; or, from a web server, with any that http finds there.
  /** @param {string} name @param {Http} http */
  async function take(name, http) {
    if (/^[\w-]+$/.test(name)) return new Response(await bytes(`takes/${name}`));
    const address = new URL(name, location.href);
    if (/^https?:$/.test(address.protocol)) return http(address, { cache: "no-store" });
    throw new Error("A recording has an address on a web server only. Drop its file onto the page instead.");
  }

  /** @param {string} station @param {string} tab @param {URLSearchParams} query */
  async function leaf(station, tab, query) {
    const leaves = await data("data/leaves");
    const part = [station, query.get("queue") ?? "", tab];
    const html = leaves[[...part, query.get("point") ?? ""].join("/")] ?? leaves[[...part, ""].join("/")];
    if (!html) {
      throw new Error(
        "This leaf needs the program, which these pages are without. In a checkout, go run ./cmd/viz -replay FILE " +
          "shows a recording with all leaves."
      );
    }
    return new Response(html);
  }

  // page turns an address of the book into that of the file: /book/06-cacher into book/06-cacher.html.
  /** @param {string} path */
  const page = (path) => root + path.replace(/\/?(?=$|[?#])/, (slash) => `${slash && "/index"}.html`).slice(1);

  // found is what the search of the book leads to, as files.
  async function found() {
    const rows = await data("data/search");
    return Response.json(rows.map((/** @type {string[]} */ [at, ...rest]) => [page(at), ...rest]));
  }

  // request answers for the program, by the first part of an address below /viz/.
  /** @param {string | URL} url @param {RequestInit} options @param {Http} http */
  async function request(url, { method }, http) {
    if (method === "POST") throw new Error("There is no machine to play it.");
    const { pathname, searchParams } = new URL(url, "http://files");
    if (pathname === "/book/index.json") return found();
    const [part, name, tab] = pathname.split("/").slice(2).map(decodeURIComponent);
    if (part === "scenario") return story(name);
    return part === "takes" ? take(name, http) : leaf(name, tab, searchParams);
  }

  /** @type {Wire} */
  const recorded = { program: false, request };
  globalThis.listwatchWire = recorded;

  /** @param {string} selector */
  const one = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));
  /** @param {string} selector */
  const all = (selector) => [...document.querySelectorAll(selector)].map((el) => /** @type {HTMLElement} */ (el));

  // tell says a sentence in the banner, once the page has one.
  /** @param {string} text @returns {unknown} */
  const tell = (text) => (globalThis.listwatch ? globalThis.listwatch.stage.banner.notice(text)
    : setTimeout(tell, 100, text));

  // runHere runs the program in this tab (cmd/tab) and puts its page in place of this one. page.js waits for that. The
  // recordings and the book stay those of these files. If the program does not begin, the page stays as it is.
  /** @param {number} size @param {number} parts */
  async function runHere(size, parts) {
    // The panel is that of the page which is there now: at the end of a machine it is the machine's own.
    /** @param {number} loaded @param {string} [text] */
    const say = (loaded, text) => {
      const panel = one("#run");
      const [said, again] = [one("#run-said"), one("#run button")];
      const bar = /** @type {HTMLProgressElement} */ (one("#run progress"));
      panel.hidden = false;
      again.hidden = loaded > 0;
      again.onclick = () => location.reload();
      [bar.max, bar.value, bar.hidden] = [size, loaded, loaded === 0];
      said.textContent = text ?? `${(loaded / 1e6).toFixed(1)} of ${(size / 1e6).toFixed(1)} MB`;
    };
    try {
      await file("machine/tab");
      const html = await globalThis.listwatchRun({ root, bytes, size, parts, say, tell });
      const made = new DOMParser().parseFromString(html, "text/html");
      for (const link of made.querySelectorAll('[href^="/book"]')) {
        link.setAttribute("href", page(link.getAttribute("href") ?? ""));
      }
      for (const link of made.querySelectorAll("a")) if (link.href) link.target = "_blank"; // this tab is the machine
      made.body.dataset.host = "tab";
      document.title = made.title;
      document.documentElement.dataset.tours = made.documentElement.dataset.tours;
      document.body.replaceWith(made.body);
      const machine = globalThis.listwatchWire ?? recorded; // cmd/tab has put its own there
      globalThis.listwatchWire = {
        program: true,
        request(url, options, http) {
          const ours = options.method === "GET" && /^\/viz\/(scenario|takes)\//.test(String(url));
          return (ours ? request : machine.request)(url, options, http);
        },
      };
    } catch (problem) {
      globalThis.listwatchWire = recorded;
      one("#run").hidden = true;
      const why = problem instanceof Error ? problem.message : String(problem);
      tell(`The machine does not run here: ${why} What you see are recordings.`);
    }
  }

  // begin shows what these pages have, or runs the program, if the address asks for that.
  function begin() {
    const { body } = document;
    for (const el of all("[data-program]")) el.hidden = true;
    for (const el of all("[data-recorded]")) el.hidden = false;
    let [size, parts] = (body.dataset.machine ?? "").split(" ").map(Number);
    const lacks = ["WebAssembly", "Worker", "DecompressionStream"].find((name) => !(name in globalThis));
    if (size && lacks) {
      size = 0;
      tell(`The machine does not run here: this browser has no ${lacks}. What you see are recordings.`);
    }
    if (size && new URLSearchParams(location.search).has("run")) {
      globalThis.listwatchReady = runHere(size, parts);
      return;
    }
    for (const el of all(".run")) el.hidden = !size;
    const tour = all("#open-tour")[0];
    if (!tour) return;
    const query = new URLSearchParams(location.search);
    const take = query.get("take");
    if (take) body.dataset.take = take;
    body.classList.toggle("figure", query.has("figure"));
    tour.hidden = body.dataset.take !== "story-tour";
  }

  begin();
}
