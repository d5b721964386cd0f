// Following: one object, or one revision, gets an outline wherever it appears.

import { queryOf } from "../lib/api.js";
import { matches, parametersOf } from "../log/query.js";

export class Follow {
  /** @param {() => string} resource the resource on stage @param {() => void} changed called after each change */
  constructor(resource, changed) {
    this.resource = resource;
    this.changed = changed;
    this.key = this.rv = "";
    // matches reports whether a record, or an entry of a queue, a shelf or the ring, is about the followed object.
    /** @param {import("../log/query.js").Meant} r */
    this.matches = (r) => this.has() && matches({ key: this.key, rv: this.rv }, r);
  }

  has() { return this.key !== "" || this.rv !== ""; }

  /** @returns {probe.Query} */
  get query() { return { resource: this.resource(), key: this.key, rv: this.rv }; }

  // follows returns the query as parameters of a request, or "" if nothing is followed.
  follows() { return this.has() ? `&${queryOf(parametersOf(this.query))}` : ""; }

  set(key = "", rv = "") {
    [this.key, this.rv] = [key, rv];
    this.changed();
  }

  clear() { this.set(); }
}
