// Keys: one letter does what a button does. They are off while a field has the focus or a dialog is open, and can be
// switched off altogether. `?` lists them.

const storage = "keys";

// newKeys binds rows of [keys, words, act]; keys is a list of KeyboardEvent.key values, in lower case if letters.
export function newKeys(rows) {
  const dialog = document.querySelector("#keys-dialog");
  const body = dialog.querySelector("tbody");
  const enabled = dialog.querySelector("input");
  enabled.checked = localStorage.getItem(storage) !== "off";
  enabled.addEventListener("change", () => localStorage.setItem(storage, enabled.checked ? "on" : "off"));
  dialog.querySelector("button").addEventListener("click", () => dialog.close());
  const acts = new Map();
  for (const [keys, words, act] of rows) {
    for (const key of keys) acts.set(key, act);
    body.append(row(keys, words));
  }

  function row(keys, words) {
    const tr = document.createElement("tr");
    const names = document.createElement("td");
    keys.slice(0, 3).forEach((key) => {
      const kbd = document.createElement("kbd");
      kbd.textContent = { " ": "Space" }[key] ?? (key.length === 1 ? key.toUpperCase() : key);
      names.append(kbd, " ");
    });
    const meaning = document.createElement("td");
    meaning.textContent = words;
    tr.append(names, meaning);
    return tr;
  }

  function busy(target, key) {
    if (document.querySelector("dialog[open]")) return true;
    if (target.isContentEditable || target.closest("input, select, textarea")) return !target.matches("input[type=range]");
    // A button is pressed by Space and Enter, whatever else they mean.
    return (key === " " || key === "Enter") && target.closest("button, a[href], summary") !== null;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (busy(event.target, key)) return;
    if (!enabled.checked && key !== "?") return;
    if (key === " " && event.shiftKey) return;
    const act = acts.get(key);
    if (!act) return;
    event.preventDefault();
    act(event);
  });
  return { show: () => dialog.showModal() };
}
