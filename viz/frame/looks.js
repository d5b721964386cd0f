// Looks: which resource is on stage, and in which colours.

import { $, options, say, when } from "../lib/dom.js";
import { stopped } from "../log/fold.js";

const themes = ["", "light", "dark", "contrast"];
const names = { "": "as the system", light: "light", dark: "dark", contrast: "high contrast" };

export function newLooks(stage) {
  const select = $("#resource");
  const button = $("#theme");
  const { dataset } = document.documentElement;

  function pickResources() {
    const { resources } = stage.state;
    const known = Object.keys(resources).filter((name) => name !== "" && !stopped(resources[name])).sort();
    options(select, known.includes(stage.resource) ? known : [stage.resource, ...known]);
    select.value = stage.resource;
  }

  function name(theme) {
    say(button, `Theme: ${names[theme]}`);
  }

  function turn() {
    const theme = themes[(themes.indexOf(dataset.theme ?? "") + 1) % themes.length];
    if (theme) dataset.theme = theme;
    else delete dataset.theme;
    localStorage.setItem("theme", theme);
    name(theme);
    stage.restyle();
  }

  name(dataset.theme ?? "");
  when(select, "change", () => stage.setResource(select.value));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.restyle());
  const resource = (name) => (select.value = name);
  return { applied: pickResources, jumped: pickResources, resource, keys: [[["t"], "theme", turn]] };
}
