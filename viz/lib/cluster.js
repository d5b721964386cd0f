// What the page does to the cluster, it does as any client would, by requests to the Kubernetes API; what it does to
// the machine, by commands of the page.

import { ask, get, refusal } from "./api.js";

/** @typedef {{ metadata: { labels?: { [name: string]: string } } }} Pod */

const pods = "/api/v1/namespaces/default/pods";

/** @param {string} key */
const pathOf = (key) => `/api/v1/namespaces/${key.split("/").map(encodeURIComponent).join("/pods/")}`;

// createPod creates a pod of the first name that is free, and returns its key. names(n) is the n-th, from 0.
/** @param {(n: number) => string} names @param {{ [name: string]: string }} labels */
export async function createPod(names, labels) {
  const spec = { containers: [{ name: "main", image: "example.com/main:1" }] };
  for (let n = 0; ; n++) {
    try {
      await ask("POST", pods, { apiVersion: "v1", kind: "Pod", metadata: { name: names(n), labels }, spec });
      return `default/${names(n)}`;
    } catch (problem) {
      if (refusal(problem).status !== 409) throw problem;
    }
  }
}

/** @param {string} key @returns {Promise<Pod>} */
export const getPod = (key) => get(pathOf(key));
/** @param {string} key @param {unknown} patch */
export const patchPod = (key, patch) => ask("PATCH", pathOf(key), patch, { type: "application/merge-patch+json" });
/** @param {string} key */
export const deletePod = (key) => ask("DELETE", `${pathOf(key)}?gracePeriodSeconds=0`);

// openWatcher opens a watcher, and returns {id, userAgent}: what it is, and what it calls itself.
/** @param {unknown} options @returns {Promise<{ id: string, userAgent: string }>} */
export const openWatcher = (options) => ask("POST", "/viz/watchers", options);

/** @param {string} id */
export const closeWatcher = (id) => ask("DELETE", `/viz/watchers/${encodeURIComponent(id)}`);

// turnKnob returns how all knobs stand then; with an id if the command waits with the held world.
/** @param {string} name @param {string} [target] @param {string} [value] @returns {Promise<{ id?: number }>} */
export const turnKnob = (name, target = "", value = "") => ask("POST", "/viz/knobs", { name, target, value });
