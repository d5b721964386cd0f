// Find: from a few letters to an object, a revision, a goroutine or a station on the stage.

import { cut } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";

const most = 8;

export function newFind(stage) {
  const dialog = document.querySelector("#find-dialog");
  const input = dialog.querySelector("input");
  const list = dialog.querySelector("ul");
  let found = [];

  // things are what there is to be found now: [words, what it is, act].
  function things(text) {
    const res = stage.state.resources[stage.resource];
    const all = [];
    if (/^[1-9]\d*$/.test(text)) all.push([text, "resource version", () => stage.follow.set("", text)]);
    const keys = new Set(Object.values(res?.shelves ?? {}).flatMap((shelf) => (shelf.rows ?? []).map((row) => objectKey(row.key))));
    for (const key of keys) all.push([key, "object", () => stage.follow.set(key)]);
    for (const lanes of Object.values(stage.scene.lanes)) {
      for (const [id, el] of lanes) all.push([id, el.closest(".station").getAttribute("aria-label"), () => focus(el)]);
    }
    for (const [name, el] of stage.scene.stations) all.push([name, el.getAttribute("aria-label"), () => focus(el)]);
    return all;
  }

  function focus(el) {
    (el.closest("[tabindex]") ?? el.closest(".station")).focus();
  }

  function search() {
    const text = input.value.trim().toLowerCase();
    const fits = ([words, what]) => words.toLowerCase().includes(text) || what.toLowerCase().includes(text);
    found = text ? things(text).filter(fits).slice(0, most) : [];
    list.replaceChildren(...found.map(item));
  }

  function item(thing) {
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${cut(thing[0], 60)} · ${cut(thing[1], 40)}`;
    button.addEventListener("click", () => go(thing));
    row.append(button);
    return row;
  }

  function go(thing) {
    dialog.close();
    thing?.[2]();
  }

  function open() {
    input.value = "";
    search();
    dialog.showModal();
  }

  input.addEventListener("input", search);
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (found.length > 0) go(found[0]);
  });
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  return { keys: [[["/"], "find an object, a revision, a goroutine, a station", open]] };
}
