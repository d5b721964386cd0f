// Keys: one letter does what a button does, and a button with data-stroke does what that key does, one with data-guides
// what it does for a guide. Keys are off while a field has the focus or a dialog is open, and can be switched off
// altogether, for those whose screen reader or switch needs the letters. `?` lists what there is.
//
// Keys are KeyboardEvent.key values, letters in lower case, with "Shift+ " for Shift and Space. Every part of the page
// hands in what its keys do, {key: act}. While a guide speaks, guide() returns what the arrows, a clicker and other keys
// do there; its own keys work also if the others are switched off.

import { $, part, when } from "../dom/dom.js";

const storage = "keys";
// slides are the keys that move a slider which has the focus.
const slides = new Set(["Home", "End", "PageUp", "PageDown", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

// bindKeys binds them, and returns what each does by itself.
/** @param {page.Keys[]} all @param {() => page.Guide | null | undefined} guide */
export function bindKeys(all, guide) {
  const dialog = $("#keys-dialog", HTMLDialogElement);
  const enabled = part(dialog, "input", HTMLInputElement);
  /** @type {Map<string, () => unknown>} */
  const bound = new Map([["?", () => dialog.showModal()]]);
  for (const [key, act] of all.flatMap((each) => Object.entries(each))) {
    if (bound.has(key)) console.error("a key is bound twice", key);
    bound.set(key, act);
  }
  enabled.checked = localStorage.getItem(storage) !== "off";
  when(enabled, "change", () => localStorage.setItem(storage, enabled.checked ? "on" : "off"));

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
    const told = guide()?.[key];
    if (busy(event.target, letter) || (!enabled.checked && key !== "?" && !told)) return;
    const act = told ?? bound.get(key);
    if (!act) return;
    event.preventDefault();
    if (told && !event.repeat) told();
    else if (!told) act();
  });
  when(document, "click", ({ target }) => {
    const { stroke = "", guides = "" } = target.closest("[data-stroke], [data-guides]")?.dataset ?? {};
    const act = bound.get(stroke) ?? guide()?.[guides];
    if (typeof act === "function") act();
  });
  return bound;
}
