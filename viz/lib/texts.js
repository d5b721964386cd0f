// Texts: counts with nouns, and shortening to fit.

/** @param {number} n @param {string} noun */
export const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

// cut shortens a text that a client chose to n characters.
/** @param {string | undefined} text @param {number} n */
export function cut(text, n) {
  const all = Array.from(text ?? "");
  return all.length <= n ? all.join("") : all.slice(0, n - 1).join("") + "…";
}

// squeeze shortens a name to n characters from its middle: names differ at their ends.
/** @param {string} name @param {number} n */
export function squeeze(name, n) {
  const all = Array.from(name);
  if (all.length <= n) return name;
  const tail = Math.ceil((n - 1) * 0.6);
  return all.slice(0, n - 1 - tail).join("") + "…" + all.slice(-tail).join("");
}
