// Canvases and their colours. Before a canvas in the document draws or measures text, the browser styles and lays out
// the whole page. To avoid that, the page draws on a sheet outside the document and copies the sheet to the canvas.

import { squeeze } from "../lib/texts.js";

// sans is the text face, the same as in fonts.css.
export const sans = 'Inter, "JetBrains Mono", system-ui, sans-serif';

const precise = "geometricPrecision"; // the same as in fonts.css
/** @param {HTMLCanvasElement | OffscreenCanvas} canvas */
const context = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
const pen = context(new OffscreenCanvas(1, 1)); // only for measuring
pen.textRendering = precise;

/** @param {string[]} names @returns {{ [name: string]: string }} */
export function inks(...names) {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// newSheet returns the sheet of a canvas. fit adopts the canvas's size on screen. show copies the sheet, and clears it.
/** @param {HTMLCanvasElement} canvas */
export function newSheet(canvas) {
  const [shown, ctx] = [context(canvas), context(new OffscreenCanvas(1, 1))];

  function fit() {
    const { width, height } = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    for (const { canvas: each } of [shown, ctx]) {
      [each.width, each.height] = [width, height].map((side) => Math.max(1, Math.round(side * scale)));
    }
    ctx.textRendering = precise; // a new size resets it
  }

  function show() {
    shown.globalCompositeOperation = "copy"; // replaces the previous drawing
    shown.drawImage(ctx.canvas, 0, 0);
    ctx.reset();
    ctx.textRendering = precise;
  }

  return { ctx, fit, show };
}

/** @param {string} text @param {string} font */
export function widthOf(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}

/** @param {string} name @param {string} font @param {number} room */
export function fitted(name, font, room) {
  let [n, words] = [name.length, name];
  while (n > 2 && widthOf(words, font) > room) words = squeeze(name, --n);
  return words;
}
