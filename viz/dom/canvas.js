// What is drawn on canvases, and in which colours. A canvas of the document that writes or measures a text has the
// browser style and lay out the whole page before it does; a sheet outside of it has not. So a drawing is made on a
// sheet, and put on its canvas when it is whole.

import { squeeze } from "../lib/texts.js";

const pen = context(new OffscreenCanvas(1, 1)); // it only measures

// context is what draws on a canvas.
/**
 * @overload @param {HTMLCanvasElement} canvas @returns {CanvasRenderingContext2D}
 * @overload @param {OffscreenCanvas} canvas @returns {OffscreenCanvasRenderingContext2D}
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 */
function context(canvas) {
  const ctx = canvas.getContext("2d");
  if (!ctx) throw new Error("this browser draws nothing");
  return /** @type {CanvasRenderingContext2D} */ (ctx);
}

// inks returns the theme's colours of these names.
/** @param {string[]} names @returns {{ [name: string]: string }} */
export function inks(...names) {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// newSheet returns the sheet of a canvas: the context ctx; fit, which gives both as many pixels as the canvas has on
// the screen; and show, after which the sheet is empty.
/** @param {HTMLCanvasElement} canvas */
export function newSheet(canvas) {
  const [shown, ctx] = [context(canvas), context(new OffscreenCanvas(1, 1))];

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
/** @param {string} text @param {string} font */
export function widthOf(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}

// fitted returns a name, squeezed if it is wider than so many units.
/** @param {string} name @param {string} font @param {number} room */
export function fitted(name, font, room) {
  let [n, words] = [name.length, name];
  while (n > 2 && widthOf(words, font) > room) words = squeeze(name, --n);
  return words;
}
