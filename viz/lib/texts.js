// Texts: counts with nouns, shortening to fit, times and durations.

/** @param {number} n @param {string} noun */
export const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

// cut shortens a text, which a client may have chosen, to at most n characters.
/** @param {string | undefined} text @param {number} n */
export function cut(text, n) {
  const all = Array.from(text ?? "");
  return all.length <= n ? all.join("") : all.slice(0, n - 1).join("") + "…";
}

// squeeze shortens a name to at most n characters by cutting out its middle, because names differ at their ends.
/** @param {string} name @param {number} n */
export function squeeze(name, n) {
  const all = Array.from(name);
  if (all.length <= n) return name;
  const tail = Math.ceil((n - 1) * 0.6);
  return all.slice(0, n - 1 - tail).join("") + "…" + all.slice(-tail).join("");
}

/** @param {number} ns @param {number} [decimals] */
export function clockText(ns, decimals = 0) {
  const seconds = ns / 1e9;
  const minutes = Math.floor(seconds / 60);
  const rest = (seconds - minutes * 60).toFixed(decimals);
  return `${minutes}:${rest.padStart(decimals ? decimals + 3 : 2, "0")}`;
}

// milliseconds formats a duration with its unit: µs, ms, or s from 10 s on.
/** @param {number} ns */
export function milliseconds(ns) {
  const ms = ns / 1e6;
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  return ms < 10_000 ? `${ms.toFixed(ms < 100 ? 2 : 0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

// times formats a speed as a multiple or a fraction: 2× or 1/2×.
/** @param {number} speed */
export const times = (speed) =>
  speed >= 1 ? `${Number(speed.toPrecision(2))}×` : `1/${Number((1 / speed).toPrecision(2))}×`;

// marks returns the round times in [from, to): up to eight for eight hours or less, else up to 200 full hours.
/** @param {number} from @param {number} to */
export function marks(from, to) {
  const steps = [1, 5, 10, 30, 60, 300, 600, 3600];
  const step = (steps.find((s) => (to - from) / 1e9 / s <= 8) ?? 3600) * 1e9;
  const first = Math.ceil(from / step);
  const n = Math.min(200, Math.max(0, Math.ceil(to / step) - first));
  return Array.from({ length: n }, (_, i) => (first + i) * step);
}
