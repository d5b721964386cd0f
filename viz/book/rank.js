// The results of a search, best first (BM25). A place scores higher for a rarer word, and for being short.

/**
 * @typedef {[address: string, page: string, heading: string, words: string]} Row - words: text, line break, aliases
 * @typedef {{ row: Row, counts: Map<string, number>, size: number }} Place
 */

const inHeading = 4; // the weight of a word in a short heading
const inPage = 1.5; // the weight of a word in most pages' titles
const inCalled = 2.5; // the weight of a word in called.txt
const synonym = 0.6; // the weight of another word of the same meaning
const sated = 1.4; // BM25's k1: a lower value makes repeated words stop counting sooner
const long = 0.5; // BM25's b: the penalty for long places
/** @type {[addresses: RegExp, worth: number][]} */
const kinds = [ // the factors for places that answer a question less, or more, often than an ordinary section
  [/#L\d+$/, 0.6], // a line of source
  [/docs\/(?:ARCHITECTURE|BEYOND|CHANGES|CONTRIBUTING|COSTS|DEBUGGING|KINDS|LABS|OLD-NAMES|WHERE)/, 0.5],
  [/#(?:\d+--|all-of-it|first-try|locks-and|the-data|the-picture|try-it|watch-it|what-else)/, 0.6],
  [/docs\/(?:GLOSSARY|REFERENCE|SNIPPETS|SYMPTOMS)|book\/[a-z\d-]+(?:\.html)?$/, 1.3], // also the pages of concepts
];
export const empty = new Set(`a after am an and any are as at be been being between but by can could did difference do
  does every for from get gets got had has happen happens have how i if in is it its just many me mean means much my
  need no not occur occurs of on one only or our out really right should so some still than that the their then there
  this to up us use vs want was way we were what when where which while who why will with would you your`.split(/\s+/));

// stemOf removes a word's ending: "cached", "caching" and "cache" have one stem, and so do "drop" and "dropped".
/** @param {string} word */
const stemOf = (word) => (word.length < 4 ? word : word.replace(/(?:ions?|ings?|ed|es|e|s)$/, (end) => (
  word.length - end.length < 3 || (end === "s" && word.endsWith("ss")) ? end : ""))
  .replace(/([bgmnpt])\1$/, "$1").replace(/(..)y$/, "$1i"));

/** @param {string} text - of a metric's name, "apiserver_" and a histogram's endings do not count */
const wordsOf = (text) => text.replace(/\bapiserver_|_(?:bucket|count|sum)\b/g, "").match(/[A-Za-z0-9_]+/g) ?? [];

// stems returns the stems of words. A camel-case name has one stem for itself, and one for each of its parts.
/** @param {string[]} words */
const stems = (words) => words.flatMap((word) => {
  const parts = word.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+/g) ?? [];
  return [word, ...(parts.length > 1 ? parts : [])].map((each) => stemOf(each.toLowerCase()));
});

// alike maps a stem to the stems of all words with about its meaning, itself included.
/** @type {Map<string, string[]>} */
const alike = new Map(`ready load fill sync populate warm initialize; forbid refuse reject invalid contradict;
  stale outdated obsolete old behind lag; retry repeat requeue again backoff; concurrent parallel simultaneous;
  evict kick terminate disconnect; hang stuck freeze deadlock dead; end close drop stop exit finish; quiet idle silent;
  page paginate pagination chunk; down unreachable crash outage; delete remove gone erase; talk ask request contact;
  reconnect resume rewatch; big large size capacity; twice duplicate double; modify mutate change; miss lose lost skip;
  cache store informer; throttle limit rate; memory ram oom leak; rv resourceversion; keep retain hold; compact forget;
  slow late delay; fail error; copy clone; start startup boot; newest latest recent; maximum max; update edit;
  handler callback; permission rbac; apiserver server; minute min`.split(";").map((line) => stems(wordsOf(line)))
  .flatMap((group) => group.map((stem) => [stem, group])));

/** @param {string} text */
const bare = (text) => wordsOf(text).join(" ").toLowerCase();

/** @param {Row} row @returns {Place} */
function placeOf([address, page, heading, all]) {
  const [words, called = ""] = all.split("\n");
  const short = Math.min(1, 0.25 + 6 / wordsOf(heading).length); // 1 for up to eight words
  const counts = new Map();
  for (const { text, worth } of [{ text: words, worth: 1 }, { text: called, worth: inCalled },
    { text: heading.replace(/\(\d+ \w+\)/, ""), worth: inHeading * short },
    { text: page, worth: /#at-[a-z]{3,}(-\d+)?$/.test(address) ? inHeading : inPage }]) {
    for (const stem of stems(wordsOf(text))) counts.set(stem, (counts.get(stem) ?? 0) + worth);
  }
  return { row: [address, page, heading, words], counts, size: stems(wordsOf(`${heading} ${words}`)).length + 10 };
}

// keyOf returns the section, source file or story of a place. The results have only the best place of each.
/** @param {Row} row */
function keyOf([address, page, heading]) {
  const [where, place = ""] = address.split("#");
  if (/^L\d/.test(place) || where.startsWith("/?story=")) return where.split("&")[0];
  return `${where} ${place.startsWith("at-") ? page : `${page} · ${heading}`}`;
}

// named returns a score's factor: above 1 if the name begins or ends with the query, or a section's text begins so.
/** @param {Row} row @param {string} query */
function named([address, page, heading, words], query) {
  const [title, text] = [heading || page, words.slice(0, 99)].map(bare);
  if (bare(address.replace("/book/", "")) === query) return 4; // the page of a concept
  const begins = text.startsWith(`${query} `) && !address.includes("#at-");
  if (begins || title === query || title.endsWith(` ${query}`)) return 2.5;
  return title.startsWith(`${query} `) ? 1.5 : 1;
}

export class Index {
  /** @param {Row[]} rows */
  constructor(rows) {
    this.places = rows.map(placeOf);
    this.mean = this.places.reduce((sum, { size }) => sum + size, 0) / this.places.length;
    /** @type {Map<string, Place[]>} */
    this.having = new Map(); // the places that contain a stem, by stem
    for (const place of this.places) {
      for (const stem of place.counts.keys()) if (!this.having.get(stem)?.push(place)) this.having.set(stem, [place]);
    }
  }

  // wanted returns the stems of a query's significant words, if any, else of all. A metric in the index has one stem.
  /** @param {string} query */
  wanted(query) {
    const telling = wordsOf(query).filter((word) => !empty.has(word.toLowerCase()));
    const all = [...new Set((telling.length > 0 ? telling : wordsOf(query)).flatMap((word) => (
      stems([word]).filter((_, i, [whole = ""]) => i === 0 || !whole.includes("_") || !this.having.has(whole)))))];
    const last = all.at(-1) ?? ""; // completed below if it may be the beginning of a word
    if (last.length < 3 || this.having.has(last) || alike.has(last)) return all;
    const [meant = last] = [...this.having.keys()].filter((stem) => stem.startsWith(last))
      .sort((a, b) => (this.having.get(b)?.length ?? 0) - (this.having.get(a)?.length ?? 0));
    return [...all.slice(0, -1), meant];
  }

  /** @param {string} query @param {number} most @returns {Row[]} */
  search(query, most) {
    /** @type {Map<Place, { sum: number, has: number }>} */
    const scores = new Map();
    query = query.replace(/\*\w+\.\w+/g, " "); // the Go type in a log line
    const called = bare(wordsOf(query).filter((word) => stems([word]).some((stem) => this.having.has(stem))).join(" "));
    let whole = 0;
    for (const stem of this.wanted(query)) {
      /** @type {Map<Place, number>} */
      const counts = new Map();
      for (const each of alike.get(stem) ?? [stem]) {
        for (const place of this.having.get(each) ?? []) {
          const n = (place.counts.get(each) ?? 0) * (each === stem ? 1 : synonym);
          counts.set(place, (counts.get(place) ?? 0) + n);
        }
      }
      const common = this.having.get(stem)?.length ?? counts.size;
      const weight = Math.log(1 + (this.places.length - common + 0.5) / (common + 0.5));
      whole += weight;
      for (const [place, n] of counts) {
        const { sum, has } = scores.get(place) ?? { sum: 0, has: 0 };
        const tells = n * (sated + 1) / (n + sated * (1 - long + long * place.size / this.mean));
        const part = weight * (place.counts.has(stem) ? 1 : synonym);
        scores.set(place, { sum: sum + part * tells, has: has + part });
      }
    }
    const hits = [...scores].map(([{ row }, { sum, has }]) => ({ row, score: sum * (has / whole) ** 1.5
      * named(row, called) * (kinds.find(([is]) => is.test(row[0]))?.[1] ?? 1) })).sort((a, b) => b.score - a.score);
    const seen = new Set();
    return hits.map(({ row }) => row).filter((row) => !seen.has(keyOf(row)) && seen.add(keyOf(row))).slice(0, most);
  }
}
