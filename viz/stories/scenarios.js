// Stories: a gallery by symptom; one click plays one on the running pipeline, and says what was seen, with its own numbers.

import { mark, put, say } from "../frame/dom.js";

export const scenarios = {
  name: "scenarios",
  needs: ["below", "player"],
  join: newScenarios,
};

function newScenarios(stage) {
  const $ = (selector) => document.querySelector(selector);
  const dialog = $("#stories-dialog");
  const panel = $("#story");
  if ($("#open-stories").hidden) return {};
  let told = null; // the button of the story on the panel
  let seen = null; // what it came to
  let playing = false;
  let began = 0;

  async function play(button) {
    if (playing) return;
    [told, seen, playing, began] = [button, null, true, performance.now()];
    const story = button.dataset;
    dialog.close();
    stage.below(panel);
    if (stage.player.mode !== "live") stage.player.live();
    say($("#story-title"), story.title);
    say($("#story-symptom"), story.symptom);
    say($("#story-watch"), story.watch);
    put($("#story-chapter"), "href", `/book/${encodeURIComponent(story.chapter)}`);
    mark(panel, "playing", true);
    mark($("#story-state"), "refused", false);
    $("#story-moment").hidden = $("#story-saw").hidden = true;
    $("#story-steps").replaceChildren();
    try {
      const response = await fetch(`/viz/scenario/${encodeURIComponent(story.play)}`, { method: "POST" });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.message ?? `the server answers ${response.status}`);
      show(answer);
    } catch (problem) {
      mark($("#story-state"), "refused", true);
      say($("#story-state"), problem.message);
    } finally {
      playing = false;
      mark(panel, "playing", false);
    }
  }

  function show(answer) {
    seen = answer;
    say($("#story-state"), `played in ${((performance.now() - began) / 1000).toFixed(1)} s, records ${answer.from + 1} to ${answer.to}`);
    say($("#story-saw span"), answer.saw);
    $("#story-saw").hidden = false;
    $("#story-moment").hidden = !answer.key;
    $("#story-steps").replaceChildren(...answer.steps.map(stepButton));
  }

  function stepButton(step, i) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.seq = step.seq;
    button.title = `To record ${step.seq}`;
    button.textContent = `${i + 1}. ${step.text}`;
    item.append(button);
    return item;
  }

  $("#open-stories").addEventListener("click", () => dialog.showModal());
  $("#stories-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    const button = event.target.closest("[data-play]");
    if (button) play(button);
  });
  $("#story-again").addEventListener("click", () => told && play(told));
  $("#story-live").addEventListener("click", () => stage.player.live());
  $("#story-close").addEventListener("click", () => stage.below(null));
  $("#story-moment").addEventListener("click", () => seen && stage.player.seek(seen.key));
  $("#story-steps").addEventListener("click", (event) => {
    const seq = event.target.closest("[data-seq]")?.dataset.seq;
    if (seq) stage.player.seek(Number(seq));
  });

  return {
    draw(now) {
      $("#story-live").hidden = stage.player.mode === "live";
      if (playing) say($("#story-state"), `playing, ${((now - began) / 1000).toFixed(0)} s`);
    },
    keys: [[["y"], "stories: what has happened to you?", () => dialog.showModal()]],
  };
}
