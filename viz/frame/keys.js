// Keys: one letter does what a button does, and a button with data-stroke does what that key does, one with data-guides
// what it does for a guide. Keys are off while a field has the focus or a dialog is open, and can be switched off
// altogether, for those whose screen reader or switch needs the letters. `?` lists what there is.
//
// A row is [keys, words, act]: keys is a list of KeyboardEvent.key values, letters in lower case, with "Shift+ " for
// Shift and Space; words say what act does. Every part of the page hands in its rows. While a guide speaks, guide()
// returns what the arrows, a clicker and other keys do there, {key: act}; its own keys work also if the others are
// switched off. Of those, quiet, a RegExp, names which do nothing meanwhile.

import { $, make, part, when } from "../dom/dom.js";

const storage = "keys";

// sections is the order in which the list shows them. What is bound and not named here comes last.
/** @type {[title: string, keys: string[]][]} */
const sections = [
  ["Time", [" ", "Shift+ ", "h", ".", ",", ">", "<", "n", "p", "Home", "End", "+", "-", "o"]],
  ["Stage", ["Enter", "Escape", "f", "b", "v", "u", "i", "e"]],
  ["Cluster", ["c", "m", "d", "w", "x", "y", "g", "r"]],
  ["Page", ["s", "a", "PageDown", "PageUp", "t", "?"]],
];
// slides are the keys that move a slider which has the focus.
const slides = new Set(["Home", "End", "PageUp", "PageDown", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);
/** @type {{ [key: string]: string }} */
const names = { " ": "Space", "Shift+ ": "Shift Space", Escape: "Esc" };

/** @param {page.Key[]} rows @param {() => page.Guide | null | undefined} guide */
export function newKeys(rows, guide) {
  const dialog = $("#keys-dialog", HTMLDialogElement);
  const enabled = part(dialog, "input", HTMLInputElement);
  /** @type {Map<string, page.Key>} */
  const bound = new Map(); // by key: its row
  const all = rows.flatMap((row) => row[0]);
  for (const row of rows) for (const key of row[0]) bound.set(key, row);
  if (bound.size < all.length) console.error("a key is bound twice", all.sort().join(" "));
  enabled.checked = localStorage.getItem(storage) !== "off";
  when(enabled, "change", () => localStorage.setItem(storage, enabled.checked ? "on" : "off"));

  const left = new Set(bound.values());
  /** @type {[title: string, keys: string[]]} */
  const more = ["More", [...bound.keys()]];
  part(dialog, ".list").prepend(...[...sections, more].map(([title, keys]) => {
    const found = keys.map((key) => bound.get(key)).filter((row) => row !== undefined);
    const mine = [...new Set(found)].filter((row) => left.delete(row));
    return mine.length > 0 ? section(title, mine) : "";
  }));

  /** @param {HTMLElement} target @param {string} key */
  function busy(target, key) {
    if ($("dialog[open]")) return true;
    if (target.isContentEditable || target.closest("input, select, textarea")) {
      return !target.matches("input[type=range]") || slides.has(key);
    }
    // A button is pressed by Space and Enter, whatever else they mean.
    return (key === " " || key === "Enter")
      && target.closest("button, a[href], summary, [role=button]") !== null;
  }

  when(document, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing) return;
    const letter = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const key = letter === " " && event.shiftKey ? "Shift+ " : letter;
    const { quiet, [key]: guided } = guide() ?? {};
    const told = typeof guided === "function" ? guided : null;
    if (busy(event.target, letter) || quiet?.test(key) || (!enabled.checked && key !== "?" && !told)) return;
    const act = told ?? bound.get(key)?.[2];
    if (!act) return;
    event.preventDefault();
    if (told && !event.repeat) told();
    else if (!told) act(event);
  });
  when(document, "click", ({ target }) => {
    const { stroke = "", guides = "" } = target.closest("[data-stroke], [data-guides]")?.dataset ?? {};
    const act = bound.get(stroke)?.[2] ?? guide()?.[guides];
    if (typeof act === "function") act();
  });
  return { show: () => dialog.showModal() };
}

/** @param {string} title @param {page.Key[]} rows */
function section(title, rows) {
  /** @param {string} key */
  const nameOf = (key) => names[key] ?? (key.length === 1 ? key.toUpperCase() : key);
  const pairs = rows.flatMap(([keys, words]) => {
    const shown = keys.slice(0, 2).flatMap((key) => [make("kbd", {}, nameOf(key)), " "]);
    return [make("dt", {}, ...shown), make("dd", {}, words)];
  });
  return make("section", {}, make("h3", {}, title), make("dl", {}, ...pairs));
}
