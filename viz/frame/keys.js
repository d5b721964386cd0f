// @ts-nocheck
// Keys: one letter does what a button does, and a button with data-stroke does what that key does, one with data-guides
// what it does for a guide. Keys are off while a field has the focus or a dialog is open, and can be switched off
// altogether, for those whose screen reader or switch needs the letters. `?` lists what there is.
//
// A row is [keys, words, act]: keys is a list of KeyboardEvent.key values, letters in lower case, with "Shift+ " for
// Shift and Space; words say what act does. Every part of the page hands in its rows. While a guide speaks, guide()
// returns what the arrows, a clicker and other keys do there, {key: act}; its own keys work also if the others are
// switched off. Of those, quiet, a RegExp, names which do nothing meanwhile.

import { $, make, when } from "../dom/dom.js";

const storage = "keys";

// sections is the order in which the list shows them. What is bound and not named here comes last.
const sections = [
  ["Time", [" ", "Shift+ ", "h", ".", ",", ">", "<", "n", "p", "Home", "End", "+", "-", "o"]],
  ["Stage", ["Enter", "Escape", "f", "b", "v", "u", "i", "e"]],
  ["Cluster", ["c", "m", "d", "w", "x", "y", "g", "r"]],
  ["Page", ["s", "a", "PageDown", "PageUp", "t", "?"]],
];
// slides are the keys that move a slider which has the focus.
const slides = new Set(["Home", "End", "PageUp", "PageDown", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);
const names = { " ": "Space", "Shift+ ": "Shift Space", Escape: "Esc" };

export function newKeys(rows, guide) {
  const dialog = $("#keys-dialog");
  const enabled = dialog.querySelector("input");
  const pairs = rows.flatMap((row) => row[0].map((key) => [key, row]));
  const bound = new Map(pairs); // by key: its row
  if (bound.size < pairs.length) console.error("a key is bound twice", pairs.map(([key]) => key).sort().join(" "));
  enabled.checked = localStorage.getItem(storage) !== "off";
  when(enabled, "change", () => localStorage.setItem(storage, enabled.checked ? "on" : "off"));

  const left = new Set(bound.values());
  const parts = [...sections, ["More", [...bound.keys()]]].map(([title, keys]) => {
    const mine = [...new Set(keys.map((key) => bound.get(key)))].filter((row) => left.delete(row));
    return mine.length > 0 ? part(title, mine) : "";
  });
  dialog.querySelector(".list").prepend(...parts);

  function part(title, rows) {
    const nameOf = (key) => names[key] ?? (key.length === 1 ? key.toUpperCase() : key);
    const pairs = rows.flatMap(([keys, words]) => {
      const shown = keys.slice(0, 2).flatMap((key) => [make("kbd", {}, nameOf(key)), " "]);
      return [make("dt", {}, ...shown), make("dd", {}, words)];
    });
    return make("section", {}, make("h3", {}, title), make("dl", {}, ...pairs));
  }

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
    const { quiet, [key]: told } = guide() ?? {};
    if (busy(event.target, letter) || quiet?.test(key) || (!enabled.checked && key !== "?" && !told)) return;
    const act = told ?? bound.get(key)?.[2];
    if (!act) return;
    event.preventDefault();
    if (!told || !event.repeat) act(event);
  });
  when(document, "click", ({ target }) => {
    const { stroke, guides } = target.closest("[data-stroke], [data-guides]")?.dataset ?? {};
    (bound.get(stroke)?.[2] ?? guide()?.[guides])?.();
  });
  return { show: () => dialog.showModal() };
}
