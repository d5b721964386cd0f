// The results of a search, best first. A place is about a word the more, the rarer the word is, the oftener the place has
// it, and the shorter the place is (BM25); a word of its heading counts as several. Words that are together in the
// query and in the place count once more. Nothing here knows a document.

/**
 * @typedef {[address: string, page: string, heading: string, words: string]} Row
 * @typedef {{ row: Row, stems: string[], counts: Map<string, number>, size: number }} Place
 */

const inHeading = 4; // a word in a heading counts so many times
const inPage = 1.5;
const sated = 1.4; // one more of the same word then adds next to nothing
const long = 0.6; // the share that a long place loses
const together = 0.8; // the share of their weight that two neighbours add
/** @type {[RegExp, number][]} */
const worth = [ // what a place counts beside what tells of a thing
  [/#L\d+$/, 0.6], [/\/LABS/, 0.5], [/\/(OVERVIEW|ARCHITECTURE|WHERE|DEBUGGING|BEYOND|KINDS|CONTRIBUTING)/, 0.75],
];
const empty = new Set(("a about after again all also am an and any are as at be because been but by can could did do " +
  "does for from had has have how i if in into is it its just me my not of on only or our out so such than that the " +
  "their them then there these they this those to too up was we were what when where which while who why will with " +
  "would you your").split(" "));

// stemOf takes off what a word's form adds: "cached", "caching" and "cache" are one.
/** @param {string} word */
const stemOf = (word) => (word.length < 4 ? word : word.replace(/(?:ions?|ings?|ed|es|e|s)$/, (end) => (
  word.length - end.length < 3 || (end === "s" && word.endsWith("ss")) ? end : "")));

// stems are the words of a text. A name is one, and each of its parts is one more: a text has both.
/** @param {string} text @returns {string[]} */
function stems(text) {
  const all = [];
  for (const word of text.match(/[A-Za-z0-9_]+/g) ?? []) {
    all.push(stemOf(word.toLowerCase()));
    const parts = word.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+/g) ?? [];
    if (parts.length > 1) all.push(...parts.map((part) => stemOf(part.toLowerCase())));
  }
  return all;
}

// bare is a text as its words, in lower case.
/** @param {string} text */
const bare = (text) => text.toLowerCase().replace(/[^a-z0-9_]+/g, " ").trim();

/** @param {Row} row @returns {Place} */
function placeOf(row) {
  const [, page, heading, words] = row;
  const counts = new Map();
  const fields = [{ text: heading, worth: inHeading }, { text: page, worth: inPage }, { text: words, worth: 1 }];
  for (const { text, worth } of fields) {
    for (const stem of stems(text)) counts.set(stem, (counts.get(stem) ?? 0) + worth);
  }
  const all = stems(`${heading} ${words}`);
  return { row, stems: all, counts, size: all.length + 10 };
}

// spread leaves of each section, source file and story the best place: another page may have the answer.
/** @param {Row[]} rows */
function spread(rows) {
  const seen = new Set();
  return rows.filter(([address, page, heading]) => {
    const [where, place = ""] = address.split("#");
    const whole = /^L\d/.test(place) || address.startsWith("/?story=");
    const key = whole ? where.split("&")[0] : [where, place.startsWith("at-") ? page : `${page} · ${heading}`].join();
    return !seen.has(key) && seen.add(key);
  });
}

export class Index {
  /** @param {Row[]} rows */
  constructor(rows) {
    this.places = rows.map(placeOf);
    this.mean = this.places.reduce((sum, { size }) => sum + size, 0) / this.places.length;
    /** @type {Map<string, Place[]>} */
    this.having = new Map(); // by stem: the places that have it
    for (const place of this.places) {
      for (const stem of place.counts.keys()) {
        const having = this.having.get(stem) ?? [];
        if (having.length === 0) this.having.set(stem, having);
        having.push(place);
      }
    }
  }

  // weight is how much a word says, by how few places have it.
  /** @param {string} stem */
  weight(stem) {
    const n = this.having.get(stem)?.length ?? 0;
    return Math.log(1 + (this.places.length - n + 0.5) / (n + 0.5));
  }

  // wanted are the words of a query that say something, each once. The last may be only begun.
  /** @param {string} query */
  wanted(query) {
    const words = query.match(/[A-Za-z0-9_]+/g) ?? [];
    const telling = words.filter((word) => !empty.has(word.toLowerCase()));
    const all = [...new Set((telling.length > 0 ? telling : words).flatMap((word) => {
      const whole = stemOf(word.toLowerCase());
      return this.having.has(whole) ? [whole] : stems(word);
    }))];
    const last = all.at(-1) ?? "";
    if (last.length < 3 || this.having.has(last)) return all;
    const meant = [...this.having.keys()].filter((stem) => stem.startsWith(last));
    meant.sort((a, b) => (this.having.get(b)?.length ?? 0) - (this.having.get(a)?.length ?? 0));
    return meant.length > 0 ? [...all.slice(0, -1), meant[0]] : all;
  }

  // search returns the best places for a query, at most so many.
  /** @param {string} query @param {number} most @returns {Row[]} */
  search(query, most) {
    const wanted = this.wanted(query);
    const weights = wanted.map((stem) => this.weight(stem));
    const whole = weights.reduce((a, b) => a + b, 0);
    /** @type {Map<Place, { sum: number, has: number }>} */
    const scores = new Map();
    wanted.forEach((stem, i) => {
      for (const place of this.having.get(stem) ?? []) {
        const n = place.counts.get(stem) ?? 0;
        const score = scores.get(place) ?? { sum: 0, has: 0 };
        score.sum += weights[i] * n * (sated + 1) / (n + sated * (1 - long + long * place.size / this.mean));
        score.has += weights[i];
        scores.set(place, score);
      }
    });
    const hits = [...scores].map(([place, { sum, has }]) => ({ place, score: sum * (has / whole) ** 1.5 }));
    hits.sort((a, b) => b.score - a.score);
    const best = hits.slice(0, 120);
    const named = bare(query);
    for (const hit of best) {
      const [address, page, heading] = hit.place.row;
      const title = bare(heading || page);
      hit.score += together * this.neighbours(hit.place, wanted);
      for (const [where, factor] of worth) if (where.test(address)) hit.score *= factor;
      if (bare(address.replace("/book/", "")) === named) hit.score *= 4; // a concept
      else if (title === named || title.endsWith(` ${named}`)) hit.score *= 2.5;
      else if (title.startsWith(`${named} `)) hit.score *= 1.5;
    }
    best.sort((a, b) => b.score - a.score);
    return spread(best.map(({ place }) => place.row)).slice(0, most);
  }

  // neighbours weighs the pairs of the query that stand together in a place, too.
  /** @param {Place} place @param {string[]} wanted */
  neighbours({ stems: all }, wanted) {
    let sum = 0;
    for (let i = 1; i < wanted.length; i++) {
      const before = (/** @type {number} */ at) => all.slice(Math.max(0, at - 3), at).includes(wanted[i - 1]);
      if (!all.some((stem, at) => stem === wanted[i] && before(at))) continue;
      sum += this.weight(wanted[i - 1]) + this.weight(wanted[i]);
    }
    return sum;
  }
}
