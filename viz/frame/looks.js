// Looks: which resource is on stage, and in which colours.

import { put } from "../lib/dom.js";

const themes = ["", "light", "dark", "contrast"];
const names = { "": "as the system", light: "light", dark: "dark", contrast: "high contrast" };

export function newLooks(stage) {
  const select = document.querySelector("#resource");
  const button = document.querySelector("#theme");

  function pickResources() {
    const known = Object.keys(stage.state.resources).filter((name) => name !== "").sort();
    if (!known.includes(stage.resource)) known.unshift(stage.resource);
    if ([...select.options].map((o) => o.value).join() === known.join()) return;
    select.replaceChildren(...known.map((name) => new Option(name, name, name === stage.resource, name === stage.resource)));
  }

  function name(theme) {
    put(button, "aria-label", `Theme: ${names[theme]}`);
    put(button, "title", `Theme: ${names[theme]} (T)`);
  }

  function turn() {
    const root = document.documentElement;
    const theme = themes[(themes.indexOf(root.dataset.theme ?? "") + 1) % themes.length];
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    localStorage.setItem("theme", theme);
    name(theme);
    stage.restyle();
  }

  name(document.documentElement.dataset.theme ?? "");
  select.addEventListener("change", () => stage.setResource(select.value));
  button.addEventListener("click", turn);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.restyle());
  return { applied: pickResources, jumped: pickResources, resource: (name) => (select.value = name), keys: [[["t"], "theme", () => button.click()]] };
}
