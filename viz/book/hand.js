// Drawings with a slider. A test has drawn each such drawing once for every value of a quantity, its poses. Without
// scripts, and on a forge, the drawing shows one pose.

import { make, part, parts, put, say, when } from "../dom/dom.js";

// newHands puts a slider below each such drawing. The last text of a pose describes it, for screen readers.
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
