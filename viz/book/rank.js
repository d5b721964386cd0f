// The results of a search, best first (BM25). A place scores higher for a rarer word, and for being short.

/**
 * @typedef {[address: string, page: string, heading: string, words: string]} Row
 * @typedef {{ row: Row, counts: Map<string, number>, size: number }} Place
 */

const inHeading = 4; // the weight of a word in a heading
const inPage = 1.5;
const inSource = 0.6; // the weight of a line of source, relative to text
const sated = 1.4; // BM25's k1: a lower value makes repeated words stop counting sooner
const long = 0.6; // BM25's b: the penalty for long places
const empty = new Set(`a after am an and any are as at be but by can could did do does for from get gets got had has
  happen happens have how i if in is it its just me my no not occur occurs of on only or right should so than that the
  their then there this to use want was were what when where which while who why will with would you`.split(/\s+/));

// stemOf removes a word's ending: "cached", "caching" and "cache" have one stem.
/** @param {string} word */
const stemOf = (word) => (word.length < 4 ? word : word.replace(/(?:ions?|ings?|ed|es|e|s)$/, (end) => (
  word.length - end.length < 3 || (end === "s" && word.endsWith("ss")) ? end : "")));

/** @param {string} text */
const wordsOf = (text) => text.match(/[A-Za-z0-9_]+/g) ?? [];

// stems returns the stems of words. A camel-case name has one stem for itself, and one for each of its parts.
/** @param {string[]} words */
const stems = (words) => words.flatMap((word) => {
  const parts = word.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+/g) ?? [];
  return [word, ...(parts.length > 1 ? parts : [])].map((each) => stemOf(each.toLowerCase()));
});

/** @param {string} text */
const bare = (text) => wordsOf(text).join(" ").toLowerCase();

/** @param {Row} row @returns {Place} */
function placeOf(row) {
  const [, page, heading, words] = row;
  const counts = new Map();
  for (const { text, worth } of [{ text: heading.replace(/\(\d+ \w+\)/, ""), worth: inHeading },
    { text: page, worth: /#at-[a-z]{3,}(-\d+)?$/.test(row[0]) ? inHeading : inPage }, { text: words, worth: 1 }]) {
    for (const stem of stems(wordsOf(text))) counts.set(stem, (counts.get(stem) ?? 0) + worth);
  }
  return { row, counts, size: stems(wordsOf(`${heading} ${words}`)).length + 10 };
}

// keyOf returns the section, source file or story of a place. The results have only the best place of each.
/** @param {Row} row */
function keyOf([address, page, heading]) {
  const [where, place = ""] = address.split("#");
  if (/^L\d/.test(place) || where.startsWith("/?story=")) return where.split("&")[0];
  return `${where} ${place.startsWith("at-") ? page : `${page} · ${heading}`}`;
}

// named returns the factor for a place's score: above 1 if its name equals, begins with or ends with the query.
/** @param {Row} row @param {string} query */
function named([address, page, heading], query) {
  const title = bare(heading || page);
  if (bare(address.replace("/book/", "")) === query) return 4; // the page of a concept
  if (title === query || title.endsWith(` ${query}`)) return 2.5;
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
      for (const stem of place.counts.keys()) {
        if (!this.having.get(stem)?.push(place)) this.having.set(stem, [place]);
      }
    }
  }

  // wanted returns the distinct stems of a query's significant words or, if none is, of all. It may complete the last.
  /** @param {string} query */
  wanted(query) {
    const telling = wordsOf(query).filter((word) => !empty.has(word.toLowerCase()));
    const all = [...new Set(stems(telling.length > 0 ? telling : wordsOf(query)))];
    const last = all.at(-1) ?? "";
    if (last.length < 3 || this.having.has(last)) return all;
    const [meant = last] = [...this.having.keys()].filter((stem) => stem.startsWith(last))
      .sort((a, b) => (this.having.get(b)?.length ?? 0) - (this.having.get(a)?.length ?? 0));
    return [...all.slice(0, -1), meant];
  }

  /** @param {string} query @param {number} most @returns {Row[]} */
  search(query, most) {
    /** @type {Map<Place, { sum: number, has: number }>} */
    const scores = new Map();
    query = query.replace(/\*\w+\.\w+/g, " "); // the Go type in a log line
    const known = wordsOf(query).filter((word) => stems([word]).some((stem) => this.having.has(stem)));
    const called = bare(known.join(" "));
    let whole = 0;
    for (const stem of this.wanted(query)) {
      const having = this.having.get(stem) ?? [];
      const weight = Math.log(1 + (this.places.length - having.length + 0.5) / (having.length + 0.5));
      whole += weight;
      for (const place of having) {
        const n = place.counts.get(stem) ?? 0;
        const { sum, has } = scores.get(place) ?? { sum: 0, has: 0 };
        const tells = n * (sated + 1) / (n + sated * (1 - long + long * place.size / this.mean));
        scores.set(place, { sum: sum + weight * tells, has: has + weight });
      }
    }
    const hits = [...scores].map(([{ row }, { sum, has }]) => ({ row, score: sum * (has / whole) ** 1.5
      * named(row, called) * (/#L\d+$/.test(row[0]) ? inSource : 1) })).sort((a, b) => b.score - a.score);
    const seen = new Set();
    return hits.map(({ row }) => row).filter((row) => !seen.has(keyOf(row)) && seen.add(keyOf(row))).slice(0, most);
  }
}
