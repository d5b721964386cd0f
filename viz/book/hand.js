// Drawings that answer the reader's hand. A test has drawn such a drawing once for each value of a quantity; without
// scripts, and on a forge, it stays as it is.

import { make, part, parts, put, say, when } from "../dom/dom.js";

// newHands puts a slider below each of these drawings. The last text of a pose says what it shows.
export function newHands() {
  for (const drawn of parts(document, ".drawn:has([data-value])")) {
    const poses = parts(drawn, "[data-value]");
    const [{ quantity = "", value: min }] = poses.map(({ dataset }) => dataset);
    const { value } = part(drawn, "[data-value]:not([display])").dataset;
    const slider = make("input", { type: "range", min, max: poses.length - 1 + Number(min), value });
    const number = make("b");
    const choose = () => {
      for (const pose of poses) put(pose, "display", pose.dataset.value === slider.value ? null : "none");
      say(number, slider.value);
      const says = parts(drawn, "[data-value]:not([display]) > text").at(-1)?.textContent ?? "";
      slider.ariaValueText = `${slider.value}. ${says}`;
    };
    when(slider, "input", choose);
    choose();
    drawn.after(make("label", { className: "hand" }, quantity, slider, number));
  }
}
