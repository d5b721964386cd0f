// The detail: the path (stations, queues, objects), or the machinery, too: locks, the budget, goroutines, gates, the
// ring's hands, versions in brackets. What an attribute says it says in either.

import { $, address, put, when } from "../lib/dom.js";

const details = ["path", "machinery"];

export function newDetail() {
  const button = $("#detail");

  // setDetail shows one of the two; the address says which, so that a link to this moment does.
  function setDetail(name) {
    if (!details.includes(name)) return;
    put(document.body, "data-detail", name);
    put(button, "aria-pressed", String(name === "machinery"));
  }

  function turn() {
    setDetail(document.body.dataset.detail === "path" ? "machinery" : "path");
    address({ detail: document.body.dataset.detail === "path" ? "" : "machinery" });
  }

  when(button, "click", turn);
  const asked = new URLSearchParams(location.search).get("detail");
  setDetail(asked ?? (document.body.classList.contains("figure") ? "machinery" : "path"));
  return { keys: [[["k"], "the machinery: locks, budget, goroutines, hands; or the path alone", turn]] };
}
