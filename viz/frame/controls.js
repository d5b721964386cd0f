// Controls: what the page does to the cluster, it does as any client would, by requests to the Kubernetes API.

import { ask, get } from "../lib/api.js";
import { cut } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";

const pods = "/api/v1/namespaces/default/pods";
const mergePatch = "application/merge-patch+json";
const colours = ["blue", "green", "amber", "rose"];
const apps = ["web", "db", "cache"];

// newControls calls on.wrote(key) when an object has been written.
export function newControls(scene, on) {
  const notice = document.querySelector("#notice");
  const dialog = document.querySelector("#watcher-dialog");
  let quiet = 0;
  let turn = 0;

  function tell(text, refused = false) {
    notice.textContent = cut(text, 160);
    notice.classList.toggle("refused", refused);
    clearTimeout(quiet);
    quiet = setTimeout(() => (notice.textContent = ""), refused ? 8000 : 3000);
  }

  async function attempt(button, act) {
    button.disabled = true;
    try {
      await act();
    } catch (problem) {
      tell(problem.message, true);
    } finally {
      button.disabled = false;
    }
  }

  async function createPod() {
    for (let i = 0; i < 200; i++) {
      const name = letters(turn++);
      if (scene.store.some((row) => objectKey(row.key) === `default/${name}`)) continue;
      const labels = { app: apps[turn % apps.length], colour: colours[0] };
      const pod = {
        apiVersion: "v1", kind: "Pod", metadata: { name, labels },
        spec: { containers: [{ name: "main", image: "example.com/main:1" }] },
      };
      try {
        await ask("POST", pods, pod);
        choose(`default/${name}`);
        on.wrote(`default/${name}`);
        return tell(`created ${name}`);
      } catch (problem) {
        if (problem.status !== 409) throw problem;
      }
    }
  }

  // target is the marked pod if it is still there, or else the one of the default namespace that changed last.
  function target() {
    const known = scene.store.map((row) => objectKey(row.key)).filter((key) => key.startsWith("default/"));
    const key = known.includes(scene.marked) ? scene.marked : known.at(-1);
    if (!key) throw new Error("there is no pod in the default namespace: create one first");
    return key.slice("default/".length);
  }

  async function changePod() {
    const name = target();
    const pod = await get(`${pods}/${encodeURIComponent(name)}`);
    const next = colours[(colours.indexOf(pod.metadata.labels?.colour) + 1) % colours.length];
    await ask("PATCH", `${pods}/${encodeURIComponent(name)}`, { metadata: { labels: { colour: next } } }, { type: mergePatch });
    on.wrote(`default/${name}`);
    tell(`${name}: colour=${next}`);
  }

  async function deletePod() {
    const name = target();
    await ask("DELETE", `${pods}/${encodeURIComponent(name)}?gracePeriodSeconds=0`);
    on.wrote(`default/${name}`);
    tell(`deleted ${name}`);
  }

  function choose(key) {
    scene.marked = key;
    scene.stale = true;
  }

  async function listWatchers() {
    const list = document.querySelector("#watcher-list");
    const watchers = await get("/viz/watchers");
    list.replaceChildren(...watchers.map(watcherItem));
  }

  function watcherItem(watcher) {
    const item = document.createElement("li");
    const words = document.createElement("span");
    const o = watcher.options;
    const wants = [o.labelSelector, o.fieldSelector, o.resourceVersion && `from ${o.resourceVersion}`].filter(Boolean).join(", ");
    words.textContent = cut(`${watcher.userAgent}: ${wants || "everything"}${watcher.error ? ` (${watcher.error})` : ""}`, 120);
    const remove = document.createElement("button");
    remove.type = "button";
    remove.textContent = "Remove";
    remove.addEventListener("click", () =>
      attempt(remove, async () => {
        await ask("DELETE", `/viz/watchers/${encodeURIComponent(watcher.id)}`);
        await listWatchers();
      }),
    );
    item.append(words, remove);
    return item;
  }

  async function submitWatcher(event) {
    event.preventDefault();
    const form = event.target;
    const refused = document.querySelector("#watcher-refused");
    refused.textContent = "";
    const value = (name) => form.elements[name].value.trim();
    try {
      await ask("POST", "/viz/watchers", {
        resource: document.body.dataset.resource,
        labelSelector: value("labelSelector"),
        fieldSelector: value("fieldSelector"),
        resourceVersion: value("resourceVersion"),
        bookmarks: form.elements.bookmarks.checked,
        watchList: form.elements.watchList.checked,
        webSocket: form.elements.webSocket.checked,
      });
      dialog.close();
      tell("added a watcher");
    } catch (problem) {
      refused.textContent = cut(problem.message, 300);
    }
  }

  const when = (selector, event, act) => document.querySelector(selector).addEventListener(event, act);
  when("#create-pod", "click", (e) => attempt(e.currentTarget, createPod));
  when("#change-pod", "click", (e) => attempt(e.currentTarget, changePod));
  when("#delete-pod", "click", (e) => attempt(e.currentTarget, deletePod));
  when("#add-watcher", "click", () => {
    dialog.showModal();
    listWatchers().catch((problem) => tell(problem.message, true));
  });
  when("#watcher-form", "submit", submitWatcher);
  when("#watcher-cancel", "click", () => dialog.close());
  scene.root.addEventListener("click", (event) => {
    const key = event.target.closest(".row")?.dataset.key;
    if (key) choose(key);
  });
  return { tell };
}

// letters counts a, b, … z, aa, ab, …
function letters(n) {
  const last = String.fromCharCode(97 + (n % 26));
  return n < 26 ? last : letters(Math.floor(n / 26) - 1) + last;
}
