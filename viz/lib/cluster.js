// @ts-nocheck
// What the page does to the cluster, it does as any client would, by requests to the Kubernetes API; what it does to
// the machine, by commands of the page.

import { ask, get } from "./api.js";

const pods = "/api/v1/namespaces/default/pods";

const pathOf = (key) => `/api/v1/namespaces/${key.split("/").map(encodeURIComponent).join("/pods/")}`;

// createPod creates a pod of the first name that is free, and returns its key. names(n) is the n-th, from 0.
export async function createPod(names, labels) {
  const spec = { containers: [{ name: "main", image: "example.com/main:1" }] };
  for (let n = 0; ; n++) {
    try {
      await ask("POST", pods, { apiVersion: "v1", kind: "Pod", metadata: { name: names(n), labels }, spec });
      return `default/${names(n)}`;
    } catch (problem) {
      if (problem.status !== 409) throw problem;
    }
  }
}

export const getPod = (key) => get(pathOf(key));
export const patchPod = (key, patch) => ask("PATCH", pathOf(key), patch, { type: "application/merge-patch+json" });
export const deletePod = (key) => ask("DELETE", `${pathOf(key)}?gracePeriodSeconds=0`);

// openWatcher opens a watcher, and returns {id, userAgent}: what it is, and what it calls itself.
export const openWatcher = (options) => ask("POST", "/viz/watchers", options);

export const closeWatcher = (id) => ask("DELETE", `/viz/watchers/${encodeURIComponent(id)}`);

// turnKnob returns how all knobs stand then; with an id if the command waits with the held world.
export const turnKnob = (name, target = "", value = "") => ask("POST", "/viz/knobs", { name, target, value });
