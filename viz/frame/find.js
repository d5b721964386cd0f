// Find: from a few letters to an object, a revision, a goroutine or a station on the stage.

import { $, cut, make, when } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";

const most = 8;

export function newFind(stage) {
  const dialog = $("#find-dialog");
  const input = dialog.querySelector("input");
  let found = [];

  // things are what there is to be found now: [words, what it is, act].
  function things(text) {
    const { scene, follow } = stage;
    const shelves = Object.values(stage.state.resources[stage.resource]?.shelves ?? {});
    const keys = new Set(shelves.flatMap((shelf) => (shelf.rows ?? []).map((row) => objectKey(row.key))));
    const focus = (el) => (el.closest("[tabindex]") ?? el.closest(".station")).focus();
    const place = ([id, el]) => [id, el.closest(".station").getAttribute("aria-label"), () => focus(el)];
    return [
      ...(/^[1-9]\d*$/.test(text) ? [[text, "resource version", () => follow.set("", text)]] : []),
      ...[...keys].map((key) => [key, "object", () => follow.set(key)]),
      ...Object.values(scene.lanes).flatMap((lanes) => [...lanes].map(place)),
      ...[...scene.stations].map(place),
    ];
  }

  function search() {
    const text = input.value.trim().toLowerCase();
    const fits = ([words, what]) => words.toLowerCase().includes(text) || what.toLowerCase().includes(text);
    found = text ? things(text).filter(fits).slice(0, most) : [];
    dialog.querySelector("ul").replaceChildren(...found.map((thing) => {
      const button = make("button", { type: "button" }, `${cut(thing[0], 60)} · ${cut(thing[1], 40)}`);
      when(button, "click", () => go(thing));
      return make("li", {}, button);
    }));
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

  when(input, "input", search);
  when(dialog.querySelector("form"), "submit", (event) => {
    event.preventDefault();
    if (found.length > 0) go(found[0]);
  });
  when(dialog.querySelector(".close"), "click", () => dialog.close());
  return { keys: [[["/"], "find an object, a revision, a goroutine, a station", open]] };
}
