// Panels that the program renders, and that are renewed while they are in sight.

import { text } from "../lib/api.js";
import { $, asking, elementOf, mark, parts } from "./dom.js";

// newPanel returns a part of the page: a panel that a button and a key open. It is renewed once a second while it is
// open, and every so many ms while it is closed (0: not then). Its piece #NAME-state has data-news, "" as long as
// nothing is wrong: else the button is marked, and when it changes it is said. heed() is told when the panel was
// renewed. Without a button there is no panel.
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
    const { news = "" } = document.querySelector(`#${name}-state`)?.dataset ?? {};
    mark(button, "broken", news !== "");
    if (news !== known) tell(news); // "" takes away what is healed
    known = news;
    heed();
  });
  return {
    draw: (now) => (panel.hidden && !closed) || look(now, panel.hidden ? closed : 1000),
    keys: { [key]: () => button.click() },
  };
}

// renew fetches a panel. Its pieces with data-live and an id take the places of those in the page that have changed.
// One in which something has the focus waits until it has not, unless all are to be as the program says now: then the
// focus goes to the same control.
/** @param {string} url @param {boolean} [always] */
export async function renew(url, always = false) {
  const fresh = elementOf(await text(url));
  for (const piece of parts(fresh, "[data-live]")) {
    const old = document.getElementById(piece.id);
    if (!old) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    if (!always && (focused || old.isEqualNode(piece))) continue;
    old.replaceWith(piece);
    if (focused?.id) document.getElementById(focused.id)?.focus();
    else if (focused) {
      const { knob, target = "" } = focused.dataset;
      piece.querySelector(`[data-knob="${knob}"][data-target="${CSS.escape(target)}"]`)?.focus();
    }
  }
}
