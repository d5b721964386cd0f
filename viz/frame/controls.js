// Controls: what the page does to the cluster, it does as any client would, by requests to the Kubernetes API.

import { ask, get } from "../lib/api.js";
import { cut, make, say } from "../lib/dom.js";
import { objectKey } from "../log/fold.js";

const pods = "/api/v1/namespaces/default/pods";
const mergePatch = "application/merge-patch+json";
const colours = ["blue", "green", "amber", "rose"];
const apps = ["web", "db", "cache"];

// newControls calls on.wrote(key) when an object has been written.
export function newControls(scene, on) {
  const $ = (selector) => document.querySelector(selector);
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
    for (;;) {
      const name = letters(turn++);
      const labels = { app: apps[turn % apps.length], colour: colours[0] };
      const spec = { containers: [{ name: "main", image: "example.com/main:1" }] };
      try {
        await ask("POST", pods, { apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec });
        choose(`default/${name}`);
        return wrote(name, `created ${name}`);
      } catch (problem) {
        if (problem.status !== 409) throw problem;
      }
    }
  }

  function wrote(name, words) {
    on.wrote(`default/${name}`);
    tell(words);
  }

  const inDefault = "default/";
  const name = () => scene.marked.slice(inDefault.length);

  // marked names the marked pod on the buttons, which work while it is there.
  function shown() {
    const there = scene.marked.startsWith(inDefault) && document.body.dataset.resource === "pods"
      && scene.store.some((row) => objectKey(row.key) === scene.marked);
    for (const place of document.querySelectorAll("[data-marked]")) {
      say(place, there ? scene.marked : "the marked pod");
      place.parentElement.disabled = !there;
    }
  }

  async function changePod() {
    const pod = name();
    const url = `${pods}/${encodeURIComponent(pod)}`;
    const { labels } = (await get(url)).metadata;
    const colour = colours[(colours.indexOf(labels?.colour) + 1) % colours.length];
    await ask("PATCH", url, { metadata: { labels: { colour } } }, { type: mergePatch });
    wrote(pod, `${pod}: colour=${colour}`);
  }

  async function deletePod() {
    const pod = name();
    await ask("DELETE", `${pods}/${encodeURIComponent(pod)}?gracePeriodSeconds=0`);
    wrote(pod, `deleted ${pod}`);
  }

  function choose(key) {
    scene.marked = key;
    scene.stale = true;
  }

  const listWatchers = async () => $("#watcher-list").replaceChildren(...(await get("/viz/watchers")).map(watcherItem));

  function watcherItem({ id, userAgent, error, options: o }) {
    const wants = [
      o.labelSelector, o.fieldSelector, o.resourceVersion && `from ${o.resourceVersion}`,
    ].filter(Boolean).join(", ");
    const words = cut(`${userAgent}: ${wants || "everything"}${error ? ` (${error})` : ""}`, 120);
    const remove = make("button", { type: "button" }, "Remove");
    const act = async () => {
      await ask("DELETE", `/viz/watchers/${encodeURIComponent(id)}`);
      await listWatchers();
    };
    remove.addEventListener("click", () => attempt(remove, act));
    return make("li", {}, make("span", {}, words), remove);
  }

  async function submitWatcher(event) {
    event.preventDefault();
    const options = { resource: document.body.dataset.resource };
    for (const el of event.target.elements) {
      if (el.name) options[el.name] = el.type === "checkbox" ? el.checked : el.value.trim();
    }
    $("#watcher-refused").textContent = "";
    try {
      await ask("POST", "/viz/watchers", options);
      dialog.close();
      tell("added a watcher");
    } catch (problem) {
      $("#watcher-refused").textContent = cut(problem.message, 300);
    }
  }

  const when = (selector, event, act) => $(selector).addEventListener(event, act);
  for (const [id, act] of [["create", createPod], ["change", changePod], ["delete", deletePod]]) {
    when(`#${id}-pod`, "click", (event) => attempt(event.currentTarget, act));
  }
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
  return { tell, shown };
}

// letters counts a, b, … z, aa, ab, …
function letters(n) {
  const last = String.fromCharCode(97 + (n % 26));
  return n < 26 ? last : letters(Math.floor(n / 26) - 1) + last;
}
