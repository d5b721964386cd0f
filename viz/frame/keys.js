// Keys: single keys act like buttons. Keys are off while a field has the focus, and while a dialog or menu is open;
// Escape closes the latter. A viewer whose screen reader or switch device needs the letters can turn the keys off.
// Keys are KeyboardEvent.key values, letters in lower case, with "Shift+ " for Shift and Space. While a story is open,
// guide() returns its actions for the arrows, a clicker and other keys. These work even if single keys are off.

import { $, part, when } from "../dom/dom.js";

const storage = "keys";
const slides = new Set(["Home", "End", "PageUp", "PageDown", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

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

  // busy reports whether a key already has a meaning at the target: for example, Space and Enter press a button.
  /** @param {HTMLElement} target @param {string} key */
  function busy(target, key) {
    if ($("dialog[open], :popover-open")) return true;
    if (target.closest("input, select, textarea")) return !target.matches("input[type=range]") || slides.has(key);
    return (key === " " || key === "Enter") && Boolean(target.closest("button, a[href], summary, [role=button]"));
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
