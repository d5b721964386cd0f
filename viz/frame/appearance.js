// Appearance: which resource is on stage, in which colours, and in which detail: the path (stations, queues, objects),
// or the machinery, too: locks, the budget, goroutines, gates, the ring's hands, versions in brackets. What an
// attribute says it says in either. And the stations as they are called with the switches as they are.

import { $, address, options, part, parts, put, say, when } from "../dom/dom.js";

/**
 * @typedef {object} Stage
 * @property {page.Player} player
 * @property {page.Scene} scene
 * @property {() => string} resource on stage
 * @property {(name: string) => void} setResource
 * @property {() => void} restyle
 */

/** @type {{ [theme: string]: string }} */
const themes = { "": "as the system", light: "light", dark: "dark", contrast: "high contrast" };

/** @param {Stage} stage */
export function newAppearance(stage) {
  const { scene } = stage;
  const select = $("#resource", HTMLSelectElement);
  const { root } = scene;
  const title = part(root, '[data-station="etcd3"] .title');
  title.dataset.etcd2 = "etcdWatcher";
  const named = [title, ...parts(root, "[data-named]")].map((el) => ({ el, words: el.textContent ?? "" }));

  function pickResources() {
    const { resources } = stage.player.state;
    const known = Object.keys(resources).filter((name) => name !== "").sort();
    options(select, known.includes(stage.resource()) ? known : [stage.resource(), ...known]);
    select.value = stage.resource();
  }

  // setDetail shows the path or the machinery; the address says which, so that a link to this moment does.
  /** @param {string} name */
  function setDetail(name) {
    put(document.body, "data-detail", name);
    put($("#detail"), "aria-pressed", String(name === "machinery"));
  }

  function turnDetail() {
    const other = document.body.dataset.detail === "path" ? "machinery" : "path";
    setDetail(other);
    address({ detail: other === "path" ? "" : other });
  }

  // switches names the stations as what runs is called: a text of the scenery has its words for the value of a switch
  // in an attribute of that name. A recording brings the switches that it was made with.
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

  const turn = newTheme(stage.restyle);
  const asked = new URLSearchParams(location.search).get("detail") ?? "";
  const first = document.body.classList.contains("figure") ? "machinery" : "path";
  setDetail(["path", "machinery"].includes(asked) ? asked : first);
  when(select, "change", () => stage.setResource(select.value));
  /** @type {page.Part} */
  const appearance = {
    shown: pickResources, switches,
    /** @param {string} name */
    resource: (name) => (select.value = name),
    keys: { t: turn, k: turnDetail },
  };
  return appearance;
}

// newTheme returns what turns to the next theme.
/** @param {() => void} restyle */
function newTheme(restyle) {
  const { dataset } = document.documentElement;
  /** @param {string} theme */
  const name = (theme) => say($("#theme"), `Theme: ${themes[theme]}`);

  function turn() {
    const all = Object.keys(themes);
    const theme = all[(all.indexOf(dataset.theme ?? "") + 1) % all.length];
    put(document.documentElement, "data-theme", theme || null);
    localStorage.setItem("theme", theme);
    name(theme);
    restyle();
  }

  name(dataset.theme ?? "");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  return turn;
}
