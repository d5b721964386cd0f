// @ts-nocheck
// Panels that the program renders, and that are renewed while they are in sight.

import { asking, html } from "../lib/api.js";
import { $, mark } from "./dom.js";

// newPanel returns a part of the page: a panel that a button and a key open. It is renewed once a second while it is
// open, and every so many ms while it is closed (0: not then). Its piece #NAME-state has data-news, "" as long as
// nothing is wrong: else the button is marked, and when it changes the banner says it. heed() is told when the
// panel was renewed. Without a button there is no panel.
export function newPanel(stage, name, [key, words], closed = 0, heed = () => {}) {
  const [panel, button] = [`#${name}`, `#open-${name}`].map($);
  if (button.hidden) return {};
  let known = "";
  const look = asking(async () => {
    await renew(`/viz/panel/${name}`);
    const { news = "" } = $(`#${name}-state`)?.dataset ?? {};
    mark(button, "broken", news !== "");
    if (news !== known && stage.source) stage.banner.notice(news); // "" takes away what is healed
    known = news;
    heed();
  });
  return {
    draw: (now) => (panel.hidden && !closed) || look(now, panel.hidden ? closed : 1000),
    keys: [[[key], words, () => button.click()]],
  };
}

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
}
