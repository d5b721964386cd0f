// The speaker's notes. They are told by the stage that presents, in another window of this browser (presenter.js), and
// ask the server only for what is to be said of a station: the inspector's first leaf.

import { html } from "../lib/api.js";
import { $, say, when } from "../lib/dom.js";
import { clockText } from "../lib/times.js";

const silence = 3000; // ms without a word, after which the presenting page is gone

const channel = new BroadcastChannel("listwatch-notes");
let heard = -Infinity;
let began = performance.now();
let shown = ""; // the station whose leaf is here
let block; // of the half day, by the clock

when(channel, "message", ({ data }) => {
  if (!data.presents) return;
  heard = performance.now();
  for (const [id, text] of Object.entries(data.texts)) say($(`#${id}`), text);
  $("#story").hidden = !data.texts["story-title"];
  showStation(data);
  showWhether();
});

async function showStation({ station, title, resource }) {
  $("#station").hidden = !station;
  const wanted = station && `/viz/part/${station}/what?resource=${encodeURIComponent(resource)}`;
  if (wanted === shown) return;
  shown = wanted;
  if (!station) return;
  say($("#station-title"), title);
  try {
    const leaf = await html(wanted);
    if (shown !== wanted) return;
    // here they would lead nowhere
    for (const button of leaf.querySelectorAll("button")) button.replaceWith(button.textContent);
    for (const link of leaf.querySelectorAll("a")) link.target = "_blank"; // the notes stay
    $("#leaf").replaceChildren(leaf);
  } catch (problem) {
    if (shown !== wanted) return;
    shown = ""; // with the next word it is asked for again
    say($("#leaf"), problem.message);
  }
}

function showWhether() {
  const presents = performance.now() - heard < silence;
  $("#silent").hidden = presents;
  $("#told").hidden = !presents;
}

when("#again", "click", () => {
  began = performance.now();
  tick();
});

// showBlock opens the block that it is time for, once: what the speaker opens meanwhile stays open.
function showBlock(minute) {
  const now = [...document.querySelectorAll("#plan details")].findLast((each) => each.dataset.begins <= minute);
  if (now !== block) {
    if (block) say(block.querySelector(".left"), "");
    now.open = true;
    block = now;
  }
  say(now.querySelector(".left"), `${Math.max(0, Math.ceil(now.dataset.ends - minute))} minutes left`);
}

function tick() {
  say($("#elapsed"), clockText((performance.now() - began) * 1e6));
  showBlock((performance.now() - began) / 60e3);
  showWhether();
}

setInterval(tick, 500);
