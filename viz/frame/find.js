// Find: from a few letters to an object, a revision, a goroutine or a station on the stage. The browser offers what
// there is when the dialog opens.

import { $, make, when } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";

export function newFind(stage) {
  const dialog = $("#find-dialog");
  const input = dialog.querySelector("input");
  let things = new Map(); // by their words: how to come there

  function open() {
    const { scene, follow } = stage;
    const shelves = Object.values(stage.state.resources[stage.resource]?.shelves ?? {});
    const keys = new Set(shelves.flatMap((shelf) => (shelf.rows ?? []).map((row) => objectKey(row.key))));
    const place = ([id, el]) => {
      const station = el.closest(".station");
      return [`${id} · ${station.getAttribute("aria-label")}`, () => (el.closest("[tabindex]") ?? station).focus()];
    };
    things = new Map([
      ...[...keys].map((key) => [key, () => follow.set(key)]),
      ...Object.values(scene.lanes).flatMap((lanes) => [...lanes].map(place)),
      ...[...scene.stations].map(place),
    ]);
    dialog.querySelector("datalist").replaceChildren(...[...things.keys()].map((value) => make("option", { value })));
    input.value = "";
    dialog.showModal();
  }

  // go comes to what has the text in its words; a number is a version.
  function go(text) {
    if (/^[1-9]\d*$/.test(text)) return stage.follow.set("", text);
    const found = [...things].find(([words]) => words.toLowerCase().includes(text.toLowerCase()));
    if (text && found) found[1]();
    else stage.tell("nothing on the stage has that name");
  }

  when(dialog.querySelector("form"), "submit", () => requestAnimationFrame(() => go(input.value.trim())));
  when(dialog.querySelector(".close"), "click", () => dialog.close());
  return { keys: [[["/"], "find an object, a revision, a goroutine, a station", open]] };
}
