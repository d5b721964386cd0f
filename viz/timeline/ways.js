// The ways of revisions, for the biography of an object.

// waysOf groups records, oldest first, by resource version, and finds for each the step before it: what the same
// subject last did with the revision, or else what was last done with it at all. It returns a Map by version of lists
// of {r, from}, where from is the time of the step before. Records without a version are left out.
export function waysOf(records) {
  const ways = new Map();
  for (const r of records) {
    if (!r.rv) continue;
    let way = ways.get(r.rv);
    if (!way) ways.set(r.rv, (way = []));
    const before = way.findLast((h) => (h.r.subject ?? "") === (r.subject ?? "")) ?? way.at(-1);
    way.push({ r, from: before ? before.r.t : r.t });
  }
  return ways;
}
