// Search, where the book lies as files: all of the index comes at once, and is looked through here.

const most = 40; // places shown
const around = 80; // characters before and after the word that was found

const field = document.querySelector("#search");
const found = document.querySelector("#found");
const list = document.querySelector("#hits");
let index = null; // [address, page, heading, words], and all that in lower case

async function read() {
  const rows = await globalThis.listwatchData("data/search");
  index = rows.map((row) => [...row, row.slice(1).join(" \u2028").toLowerCase()]);
  show();
}

// score says how much a place is about a word: 0, not at all. The beginning of a word in its heading counts most.
function score([, page, heading, , all], word) {
  if (!all.includes(word)) return 0;
  const begins = new RegExp(`(?:^|[^a-z0-9])${word.replace(/[^a-z0-9]/g, "\\$&")}`, "i");
  return 1 + (begins.test(heading) ? 8 : heading.toLowerCase().includes(word) ? 4 : 0) + (begins.test(page) ? 4 : 0)
    + (begins.test(all) ? 1 : 0);
}

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!index || words.length === 0) {
    found.textContent = "";
    return list.replaceChildren();
  }
  const phrase = words.join(" ");
  const hits = [];
  for (const row of index) {
    const scores = words.map((word) => score(row, word));
    if (!scores.every(Boolean)) continue;
    const sum = scores.reduce((a, b) => a + b) + (words.length > 1 && row[4].includes(phrase) ? 10 : 0);
    hits.push([row[3] ? sum : sum / 4, row]); // a declaration comes after what tells of it
  }
  hits.sort((a, b) => b[0] - a[0]);
  found.textContent = hits.length === 0 ? "Nothing has every one of these words."
    : `${hits.length} ${hits.length === 1 ? "place" : "places"}${hits.length > most ? `, the first ${most}` : ""}`;
  list.replaceChildren(...hits.slice(0, most).map(([, row]) => item(row, words)));
}

function item([address, page, heading, text], words) {
  const li = document.createElement("li");
  const link = document.createElement("a");
  link.href = address;
  link.textContent = heading || page;
  const where = document.createElement("span");
  where.textContent = heading ? page : "";
  const piece = document.createElement("p");
  const low = text.toLowerCase();
  const at = low.indexOf(words.find((word) => low.includes(word)) ?? "");
  const from = Math.max(0, at - around);
  piece.append(...marked((from > 0 ? "…" : "") + text.slice(from, at + 2 * around), words));
  li.append(link, " ", where, piece);
  return li;
}

// marked returns a text as nodes, with the words marked.
function marked(text, words) {
  const nodes = [];
  const low = text.toLowerCase();
  for (let i = 0; i < text.length; ) {
    const next = words.map((word) => [low.indexOf(word, i), word]).filter(([at]) => at >= 0)
      .sort((a, b) => a[0] - b[0] || b[1].length - a[1].length)[0];
    if (!next) {
      nodes.push(text.slice(i));
      break;
    }
    const mark = document.createElement("mark");
    mark.textContent = text.slice(next[0], next[0] + next[1].length);
    nodes.push(text.slice(i, next[0]), mark);
    i = next[0] + next[1].length;
  }
  return nodes;
}

field.addEventListener("input", show);
field.value = new URLSearchParams(location.search).get("q") ?? "";
read();
