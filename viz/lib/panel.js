// Panels that the program renders, and that are renewed while they are in sight.

import { html } from "./api.js";

// renew fetches a panel. Its pieces with data-live and an id take the places of those in the page that have changed.
// One in which something has the focus waits until it has not, unless all are to be as the program says now: then the
// focus goes to the same control.
export async function renew(url, always = false) {
  const fresh = await html(url);
  for (const piece of fresh.querySelectorAll("[data-live]")) {
    const old = document.getElementById(piece.id);
    if (!old) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    if (!always && (focused || old.isEqualNode(piece))) continue;
    old.replaceWith(piece);
    const { id, dataset } = focused ?? {};
    if (id) document.getElementById(id)?.focus();
    else if (focused) piece.querySelector(
      `[data-knob="${dataset.knob}"][data-target="${CSS.escape(dataset.target ?? "")}"]`
    )?.focus();
  }
  return fresh;
}
