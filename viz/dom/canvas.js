// @ts-nocheck
// What is drawn on canvases, and in which colours. A canvas of the document that writes or measures a text has the
// browser style and lay out the whole page before it does; a sheet outside of it has not. So a drawing is made on a
// sheet, and put on its canvas when it is whole.

import { squeeze } from "../lib/texts.js";

const pen = new OffscreenCanvas(1, 1).getContext("2d"); // it only measures

// inks returns the theme's colours of these names.
export function inks(...names) {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// newSheet returns the sheet of a canvas: the context ctx; fit, which gives both as many pixels as the canvas has on
// the screen; and show, after which the sheet is empty.
export function newSheet(canvas) {
  const [shown, ctx] = [canvas, new OffscreenCanvas(1, 1)].map((each) => each.getContext("2d"));

  function fit() {
    const { width, height } = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    for (const { canvas: each } of [shown, ctx]) {
      [each.width, each.height] = [width, height].map((side) => Math.max(1, Math.round(side * scale)));
    }
  }

  function show() {
    shown.globalCompositeOperation = "copy"; // nothing of the drawing before stays
    shown.drawImage(ctx.canvas, 0, 0);
    ctx.reset();
  }

  return { ctx, fit, show };
}

// widthOf measures a text.
export function widthOf(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}

// fitted returns a name, squeezed if it is wider than so many units.
export function fitted(name, font, room) {
  let [n, words] = [name.length, name];
  while (n > 2 && widthOf(words, font) > room) words = squeeze(name, --n);
  return words;
}
