// Panels that the program renders. The page renews the visible ones most often.

import { text } from "../lib/api.js";
import { $, asking, elementOf, mark, parts } from "./dom.js";

// newPanel returns a panel that a button and a key open. The page renews an open panel every second, a closed one every
// closed ms (0: never), and then calls heed. tell gets each piece of news (data-news of #NAME-state) once.
/**
 * @param {(news: string) => void} tell @param {string} name @param {string} key
 * @param {number} [closed] @param {() => void} [heed]
 * @returns {{ draw?: (now: number) => void, keys?: page.Keys }}
 */
export function newPanel(tell, name, key, closed = 0, heed = () => {}) {
  const [panel, button] = [`#${name}`, `#open-${name}`].map((each) => $(each));
  if (button.hidden) return {};
  let known = "";
  const look = asking(async () => {
    await renew(`/viz/panel/${name}`);
    const news = $(`#${name}-state`)?.dataset.news ?? "";
    mark(button, "broken", news !== "");
    if (news !== known) tell((known = news)); // "" clears the last message
    heed();
  });
  return {
    draw: (now) => (panel.hidden && !closed) || look(now, panel.hidden ? closed : 1000),
    keys: { [key]: () => button.click() },
  };
}

// renew fetches a panel and replaces the pieces (data-live, with an id) that differ, except one with the focus. With
// always, it replaces all pieces except a dragged slider, and gives the focus back to its control.
/** @param {string} url @param {boolean} [always] */
export async function renew(url, always = false) {
  const fresh = elementOf(await text(url));
  for (const piece of parts(fresh, "[data-live]")) {
    const old = document.getElementById(piece.id);
    const focused = old?.contains(document.activeElement) ? document.activeElement : null;
    if (!old || (always ? old.matches("input:active") : focused || old.isEqualNode(piece))) continue;
    old.replaceWith(piece);
    const label = `[aria-label="${CSS.escape(focused?.ariaLabel ?? "")}"]`;
    (focused?.id ? document.getElementById(focused.id) : piece.querySelector(label))?.focus();
  }
}
