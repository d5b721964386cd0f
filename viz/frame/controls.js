// @ts-nocheck
// Controls: the buttons and the dialog by which a viewer acts on the cluster.

import { createPod, deletePod, getPod, openWatcher, patchPod } from "../lib/cluster.js";
import { $, say, when } from "../dom/dom.js";
import { cut } from "../lib/texts.js";
import { objectKey } from "../log/fold.js";

const colours = ["blue", "green", "amber", "rose"];
const apps = ["web", "db", "cache"];

export function newControls(stage) {
  const { scene, follow } = stage;
  const notice = $("#notice");
  const dialog = $("#watcher-dialog");
  let quiet = 0;
  let turn = 0;

  function tell(text, refused = false) {
    notice.textContent = cut(text, 160);
    notice.classList.toggle("refused", refused);
    clearTimeout(quiet);
    quiet = setTimeout(() => (notice.textContent = ""), refused ? 8000 : 3000);
  }

  // attempt acts once at a time.
  async function attempt(button, act) {
    button.disabled = true;
    if (stage.hold.held && act !== addWatcher) {
      tell("the world is held: the request is paused at its first point until you resume");
    }
    await act().catch((problem) => tell(problem.message, true));
    button.disabled = false;
  }

  async function create() {
    const from = turn;
    const labels = { app: apps[from % apps.length], colour: colours[0] };
    // In a held world it is followed from its request on: no answer comes before it has been moved to its commit.
    if (stage.hold.held) follow.wrote(`default/${letters(from)}`);
    const key = await createPod((n) => letters((turn = from + n)), labels);
    turn++;
    follow.wrote(key);
    tell(`created ${nameOf(key)}`);
  }

  const inDefault = "default/";
  const nameOf = (key) => key.slice(inDefault.length);

  // shown names the pod that is followed on the buttons, which work while it is there.
  function shown() {
    const there = follow.key.startsWith(inDefault) && stage.resource === "pods"
      && scene.store.some((row) => objectKey(row.key) === follow.key);
    for (const place of document.querySelectorAll("[data-followed]")) {
      say(place, there ? follow.key : "the followed pod");
      place.parentElement.disabled = !there;
    }
  }

  async function change() {
    const { key } = follow;
    const { labels } = (await getPod(key)).metadata;
    const colour = colours[(colours.indexOf(labels?.colour) + 1) % colours.length];
    await patchPod(key, { metadata: { labels: { colour } } });
    tell(`${nameOf(key)}: colour=${colour}`);
  }

  async function remove() {
    const { key } = follow;
    await deletePod(key);
    tell(`deleted ${nameOf(key)}`);
  }

  async function submitWatcher(event) {
    event.preventDefault();
    const options = { resource: stage.resource };
    for (const el of event.target.elements) {
      if (el.name) options[el.name] = el.type === "checkbox" ? el.checked : el.value.trim();
    }
    const refused = await openWatcher(options).then(() => "", (problem) => cut(problem.message, 300));
    say($("#watcher-refused"), refused);
    if (refused) return;
    dialog.close();
    tell("added a watcher");
  }

  const addWatcher = async () => dialog.showModal();

  // by is what a button does, and its key: nothing where the button is not offered.
  const by = (id, act) => () => {
    const button = $(id);
    if (!button.closest("[hidden], [data-laid] [data-acts]") && !button.disabled) attempt(button, act);
  };
  when("#watcher-form", "submit", submitWatcher);
  when("#watcher-cancel", "click", () => dialog.close());
  return {
    tell, shown,
    keys: [
      [["c"], "create a pod", by("#create-pod", create)],
      [["m"], "modify the followed pod", by("#change-pod", change)],
      [["d"], "delete it", by("#delete-pod", remove)],
      [["w"], "add a watcher", by("#add-watcher", addWatcher)],
    ],
  };
}

// letters counts a, b, … z, aa, ab, …
function letters(n) {
  const last = String.fromCharCode(97 + (n % 26));
  return n < 26 ? last : letters(Math.floor(n / 26) - 1) + last;
}
