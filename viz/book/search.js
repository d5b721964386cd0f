// The search of every page of the book. Its index comes with the first word, whole; what it finds stands below it.

import { get } from "../lib/api.js";
import { $, make, part, parts, when } from "../dom/dom.js";
import { Index } from "./rank.js";

const most = 12; // places shown
const around = 80; // characters before and after the word that was found

const field = $("[data-search]", HTMLInputElement);
const list = $("#found");
/** @type {Promise<Index> | undefined} */
let index;

async function show() {
  const query = field.value.trim();
  index ??= get("/book/index.json").then((rows) => new Index(rows));
  const rows = (await index).search(query, most);
  if (query !== field.value.trim()) return; // there are newer words
  const none = make("li", {}, "No page has these words.");
  list.replaceChildren(...(rows.length > 0 ? rows.map((row) => item(row, query)) : [none]));
  list.hidden = query === "";
}

/** @param {import("./rank.js").Row} row @param {string} query */
function item([address, page, heading, text], query) {
  const words = (query.match(/[A-Za-z0-9_]+/g) ?? []).filter((word) => word.length > 2);
  const low = text.toLowerCase();
  const found = words.map((word) => low.indexOf(word.toLowerCase())).filter((at) => at >= 0);
  const from = Math.max(0, Math.min(...found, text.length) - around);
  const piece = found.length > 0 ? text.slice(from, from + 3 * around) : text.slice(0, 2 * around);
  return make("li", {}, make("a", { href: address, data: { searchResult: "" } }, heading || page),
    make("span", {}, heading ? page : ""), make("p", {}, ...marked(piece, words)));
}

// marked returns a text as nodes, with the words marked, the longest one where several begin.
/** @param {string} text @param {string[]} words */
function marked(text, words) {
  const longest = [...words].sort((a, b) => b.length - a.length);
  const pieces = longest.length > 0 ? text.split(new RegExp(`(${longest.join("|")})`, "i")) : [text];
  return pieces.map((piece, i) => (i % 2 ? make("mark", {}, piece) : piece));
}

// move goes from one place that was found to another, and back to the words before the first.
/** @param {number} by */
function move(by) {
  const stops = [field, ...parts(list, "a")];
  stops[stops.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + by]?.focus();
}

when(field, "input", show);
when(field, "focus", () => field.value && show());
when(window, "keydown", (event) => {
  const { key, target } = event;
  const writes = target.matches?.("input, textarea, select, [contenteditable]");
  if (key === "/" && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) field.focus();
  else if (key === "Escape" && !list.hidden) list.hidden = true;
  else if (!part(document, ".find").contains(target)) return;
  else if (key === "ArrowDown") move(1);
  else if (key === "ArrowUp") move(-1);
  else if (key === "Enter" && target === field) list.querySelector("a")?.click();
  else return;
  event.preventDefault();
});
when(document.body, "click", ({ target }) => (list.hidden ||= !part(document, ".find").contains(target)));
if (new URLSearchParams(location.search).has("q")) {
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  show();
}
