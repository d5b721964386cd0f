// Appearance: the resource on stage, the theme, the level of detail, and the names that depend on the switches.

import { $, address, parts, put, say, when } from "../dom/dom.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Scene} scene
 * @property {() => string} resource the resource on stage
 * @property {(name: string) => void} setResource
 * @property {() => void} restyle
 */

/** @param {Stage} stage @returns {page.Part} */
export function newAppearance(stage) {
  const { scene, scene: { root } } = stage;
  const select = $("#resource", HTMLSelectElement);
  const named = parts(root, "[data-named]").map((el) => ({ el, words: el.textContent ?? "" }));

  function pickResources() {
    const { resources } = stage.player.state;
    const known = Object.keys(resources).filter((name) => name !== "").sort();
    const names = known.includes(stage.resource()) ? known : [stage.resource(), ...known];
    const there = [...select.options].map(({ value }) => value);
    if (there.join() !== names.join()) select.replaceChildren(...names.map((name) => new Option(name)));
    select.value = stage.resource();
  }

  // setDetail sets the level of detail. turnDetail switches it, and stores it in the address and the browser.
  /** @param {string} name */
  function setDetail(name) {
    scene.detail = name;
    scene.opened.clear();
    scene.lay();
    put($("#detail"), "aria-pressed", String(name === "all"));
  }

  function turnDetail() {
    setDetail(scene.detail === "all" ? "boxes" : "all");
    localStorage.setItem("detail", scene.detail);
    address({ detail: scene.detail === "boxes" ? "" : scene.detail });
  }

  // switches adapts names and drawing to the implementations that the program's switches select, or a recording's did.
  /** @param {page.Switches} now */
  function switches(now) {
    const values = Object.values(now ?? {});
    for (const { el, words } of named) say(el, values.map((value) => el.dataset[value]).find(Boolean) ?? words);
    put(document.body, "data-server", now?.server ?? "");
    put(root, "data-etcd-watcher", now?.["etcd-watcher"] ?? "etcd3");
    scene.grouped = now?.fifo === "delta";
    scene.inTurn = now?.dispatch === "sequential";
    scene.stale = true;
  }

  const asked = new URLSearchParams(location.search).get("detail") ?? "";
  const first = document.body.classList.contains("figure") ? "all" : localStorage.getItem("detail") ?? "boxes";
  setDetail(["boxes", "all"].includes(asked) ? asked : first);
  // A click shows a station that is shut at this level of detail. The next click inspects the station.
  when(root, "click", (event) => {
    const el = event.target.closest(".station.shut");
    if (!el) return;
    event.stopPropagation();
    scene.opened.add(el.id || (el.dataset.station ?? ""));
    scene.stale = true;
  }, true);
  when("#open-promises", "click", () => setDetail("all")); // the promises are about all stations
  when(select, "change", () => stage.setResource(select.value));
  return { shown: pickResources, switches, keys: { t: newTheme(stage.restyle), k: turnDetail } };
}

// newTheme binds the list of themes, and returns a function that turns to the next one.
/** @param {() => void} restyle */
function newTheme(restyle) {
  const root = document.documentElement;
  const select = $("#theme", HTMLSelectElement);
  select.value = root.dataset.theme ?? "";
  const choose = () => {
    put(root, "data-theme", select.value || null);
    localStorage.setItem("theme", select.value);
    restyle();
  };
  when(select, "change", choose);
  when(matchMedia("(prefers-color-scheme: dark)"), "change", restyle);
  return () => {
    select.selectedIndex = (select.selectedIndex + 1) % select.length;
    choose();
  };
}
