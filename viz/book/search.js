// The search field of every page of the book. The first input loads the whole index.

import { get } from "../lib/api.js";
import { $, make, when } from "../dom/dom.js";
import { Index, empty } from "./rank.js";

const most = 12; // places shown
const around = 80; // characters shown before a match

const field = $("[data-search]", HTMLInputElement);
const list = $("#found");
/** @type {Promise<Index> | undefined} */
let index;

async function show() {
  const query = field.value.trim();
  index ??= get("/book/index.json").then((rows) => new Index(rows));
  const rows = (await index).search(query, most);
  if (query !== field.value.trim()) return; // the query has changed meanwhile
  const none = make("li", {}, "No page has these words.");
  list.replaceChildren(...(rows.length > 0 ? rows.map((row) => item(row, query)) : query ? [none] : []));
}

/** @param {import("./rank.js").Row} row @param {string} query */
function item([address, page, heading, text], query) {
  const words = query.toLowerCase().split(/\W+/).filter((word) => word.length > 2 && !empty.has(word));
  const at = words.map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
  const from = Math.max(0, Math.min(...at, text.length) - around) * Math.sign(at.length);
  const shown = text.slice(from && text.indexOf(" ", from) + 1, `${text} `.lastIndexOf(" ", from + 3 * around));
  return make("li", {}, make("a", { href: address, data: { searchResult: "" } }, heading || page),
    make("span", {}, heading ? page : ""), make("p", {}, shown));
}

when(field, "input", show);
when(window, "keydown", (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (key === "Enter" && target === field) list.querySelector("a")?.click();
  else if (key === "Escape") target.blur?.();
  else if (key === "/" && !target.matches?.("input") && !(ctrlKey || metaKey || altKey)) field.focus();
  else return;
  event.preventDefault();
});
