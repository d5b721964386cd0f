"use strict";
// The data of pages without a program. This script runs before all other deferred ones. Recorded answers are scripts
// beside it, because a page opened from disk may fetch no data. Each calls listwatchFile(name, gzip as base64).

{
  /**
   * @typedef {import("../lib/api.js").Http} Http
   * @typedef {import("../lib/api.js").Wire} Wire
   */
  const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
  const root = new URL(".", src).href;
  /** @type {Map<string, PromiseWithResolvers<string>>} */
  const files = new Map(); // a promise of each file's text, by name

  globalThis.listwatchFile = (name, text) => files.get(name)?.resolve(text);

  /** @param {string} name */
  function file(name) {
    /** @type {PromiseWithResolvers<string>} */
    const coming = files.get(name) ?? Promise.withResolvers();
    if (files.has(name)) return coming.promise;
    files.set(name, coming);
    const script = document.createElement("script");
    script.src = `${root}${name}.js`;
    script.onerror = () => coming.reject(new Error("These pages do not have it."));
    document.head.append(script);
    return coming.promise;
  }

  /** @param {string} name */
  const bytes = async (name) => Uint8Array.from(atob(await file(name)), (c) => c.charCodeAt(0));

  /** @param {string} name */
  async function data(name) {
    const packed = new Blob([await bytes(name)]);
    return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  // take answers with a recording of this export, or with the one at an address on a web server.
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
    const part = `${station}/${query.get("queue") ?? ""}/${tab}/`;
    const html = leaves[part + (query.get("point") ?? "")] ?? leaves[part];
    if (html) return new Response(html);
    throw new Error("This leaf needs the program, which these pages are without. In a checkout, " +
      "go run ./cmd/viz -replay FILE shows a recording with all leaves.");
  }

  // page returns the file for an address of the book: book/06-cacher.html for /book/06-cacher.
  /** @param {string} path */
  const page = (path) => root + path.replace(/\/?(?=$|[?#])/, (slash) => `${slash && "/index"}.html`).slice(1);

  // request answers in place of the program, with the search index, recordings, stories, and the inspector's leaves.
  /** @param {string | URL} url @param {RequestInit} options @param {Http} http */
  async function request(url, { method }, http) {
    if (method === "POST") throw new Error("There is no machine to play it.");
    const { pathname, searchParams } = new URL(url, "http://files");
    if (pathname === "/book/index.json") {
      const rows = await data("data/search");
      return Response.json(rows.map((/** @type {string[]} */ [at, ...rest]) => [page(at), ...rest]));
    }
    const [part, name, tab] = pathname.split("/").slice(2).map(decodeURIComponent);
    if (part !== "scenario") return part === "takes" ? take(name, http) : leaf(name, tab, searchParams);
    const { [name]: story } = await data("data/stories");
    if (!story) throw new Error("These pages do not have it.");
    return Response.json(story);
  }

  /** @type {Wire} */
  const recorded = { program: false, request };
  globalThis.listwatchWire = recorded;

  /** @param {string} selector */
  const all = (selector) => [...document.querySelectorAll(selector)].map((el) => /** @type {HTMLElement} */ (el));

  // tell shows a sentence in the banner as soon as the page has a banner.
  /** @param {string} text @returns {unknown} */
  const tell = (text) => (globalThis.listwatch ? globalThis.listwatch.stage.banner.notice(text)
    : setTimeout(tell, 100, text));

  // runHere runs the program in this tab (cmd/tab) and replaces this page by the program's. The bundle waits for that.
  /** @param {number} size @param {number} parts */
  async function runHere(size, parts) {
    // The panel is looked up each time, because the program's page with its own panel replaces this page.
    /** @param {number} loaded @param {string} [text] */
    const say = (loaded, text) => {
      const [panel, progress, said, again] = all("#run, #run > *");
      const bar = /** @type {HTMLProgressElement} */ (progress);
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
      for (const link of made.querySelectorAll("a")) if (link.href) link.target = "_blank"; // this tab runs the program
      made.body.dataset.host = "tab";
      document.title = made.title;
      document.documentElement.dataset.tours = made.documentElement.dataset.tours;
      document.body.replaceWith(made.body);
      const machine = globalThis.listwatchWire ?? recorded; // set by cmd/tab
      const ours = (/** @type {string} */ url) => /^\/viz\/(scenario|takes)\//.test(url);
      globalThis.listwatchWire = { program: true, request: (url, options, http) =>
        (options.method === "GET" && ours(url) ? request : machine.request)(url, options, http) };
    } catch (problem) {
      globalThis.listwatchWire = recorded;
      all("#run")[0].hidden = true;
      const why = problem instanceof Error ? problem.message : String(problem);
      tell(`The machine does not run here: ${why} What you see are recordings.`);
    }
  }

  function begin() {
    const { body } = document;
    const query = new URLSearchParams(location.search);
    for (const el of all("[data-program], [data-recorded]")) el.hidden = "program" in el.dataset;
    const [size, parts] = (body.dataset.machine ?? "").split(" ").map(Number);
    if (size && query.has("run")) return void (globalThis.listwatchReady = runHere(size, parts));
    for (const el of all(".run")) el.hidden = !size;
    const [tour] = all("#open-tour");
    if (!tour) return;
    if (query.get("take")) body.dataset.take = query.get("take") ?? "";
    for (const name of ["figure", "embed"]) body.classList.toggle(name, query.has(name));
    tour.hidden = body.dataset.take !== "story-tour";
  }

  begin();
}
