// Search, where the book lies as files: all of the index comes at once, and is looked through here.

import { $, make, when } from "../dom/dom.js";
import { counted } from "../lib/texts.js";

/** @typedef {[address: string, page: string, heading: string, words: string, all: string]} Row */

const most = 40; // places shown
const around = 80; // characters before and after the word that was found

const field = $("#search", HTMLInputElement);
const found = $("#found");
const list = $("#hits");
field.value = new URLSearchParams(location.search).get("q") ?? "";
// [address, page, heading, words], and all that in lower case
/** @type {[string, string, string, string][]} */
const places = await globalThis.listwatchData("data/search");
const index = places.map((row) => /** @type {Row} */ ([...row, row.slice(1).join(" \u2028").toLowerCase()]));

// score says how much a place is about a word: 0, not at all. The beginning of a word in its heading counts most.
/** @param {Row} row @param {string} word */
function score([, page, heading, , all], word) {
  const begins = new RegExp(`\\b${literally(word)}`, "i");
  const at = (/** @type {string} */ words) => Number(begins.test(words));
  return all.includes(word) ? 1 + 8 * at(heading) + 4 * at(page) + at(all) : 0;
}

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    found.textContent = "";
    return list.replaceChildren();
  }
  /** @type {{ score: number, row: Row }[]} */
  const hits = [];
  for (const row of index) {
    const scores = words.map((word) => score(row, word));
    const sum = scores.reduce((a, b) => a + b) + (words.length > 1 && row[4].includes(words.join(" ")) ? 10 : 0);
    // a declaration comes after what tells of it
    if (scores.every(Boolean)) hits.push({ score: row[3] ? sum : sum / 4, row });
  }
  hits.sort((a, b) => b.score - a.score);
  found.textContent = hits.length === 0 ? "Nothing has every one of these words."
    : `${counted(hits.length, "place")}${hits.length > most ? `, the first ${most}` : ""}`;
  list.replaceChildren(...hits.slice(0, most).map(({ row }) => item(row, words)));
}

/** @param {Row} row @param {string[]} words */
function item([address, page, heading, text], words) {
  const low = text.toLowerCase();
  const at = low.indexOf(words.find((word) => low.includes(word)) ?? "");
  const from = Math.max(0, at - around);
  const piece = (from > 0 ? "…" : "") + text.slice(from, at + 2 * around);
  const link = make("a", { href: address }, heading || page);
  return make("li", {}, link, " ", make("span", {}, heading ? page : ""), make("p", {}, ...marked(piece, words)));
}

/** @param {string} word */
const literally = (word) => word.replace(/[^a-z0-9]/g, "\\$&");

// marked returns a text as nodes, with the words marked, the longest one where several begin.
/** @param {string} text @param {string[]} words */
function marked(text, words) {
  const longest = [...words].sort((a, b) => b.length - a.length).map(literally);
  const parts = text.split(new RegExp(`(${longest.join("|")})`, "i"));
  return parts.map((part, i) => (i % 2 ? make("mark", {}, part) : part));
}

when(field, "input", show);
show();
