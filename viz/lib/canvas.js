// What is drawn on canvases: their colours, their size, and letters, which are short texts that are drawn once and
// stamped from then on. A canvas of the document that writes or measures a text has the browser style and lay out the
// whole page before it does; a sheet outside of it has not. There is one sheet, since each keeps the texts it has shaped.

import { squeeze } from "./dom.js";

const most = 60; // things made that are kept twice over: more than are drawn at once
const margin = 3;
const sheet = new OffscreenCanvas(1, 1);
const pen = sheet.getContext("2d");

// inks returns the theme's colours of these names.
export function inks(...names) {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// fit gives a canvas as many pixels as it has on the screen.
export function fit(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [width, height].map((side) => Math.round(side * scale));
}

// widthOf measures a text.
export function widthOf(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}

// fitted returns a name, squeezed if it is wider than so many units.
export const fitted = (name, font, room) => fits.of(`${name} ${font} ${room}`, name, font, room);
const fits = newCache((name, font, room) => {
  let [n, words] = [name.length, name];
  while (n > 2 && widthOf(words, font) > room) words = squeeze(name, --n);
  return words;
});

// paper returns a picture of w by h units, each of so many pixels, which paint has drawn.
export function paper(w, h, scale, paint) {
  [sheet.width, sheet.height] = [w, h].map((units) => Math.ceil(units * scale));
  pen.scale(scale, scale);
  paint(pen);
  return sheet.transferToImageBitmap();
}

// newCache keeps what make returns for each id. Names come and go: when there are too many new ones, those that were
// not asked for since the last time go.
export function newCache(make) {
  let [known, before] = [new Map(), new Map()];

  function of(id, ...what) {
    if (!known.has(id)) {
      const made = before.get(id) ?? make(...what);
      if (known.size >= most) [known, before] = [new Map(), known];
      known.set(id, made);
    }
    return known.get(id);
  }

  return { of, forget: () => [known, before].forEach((each) => each.clear()) };
}

// newLetters returns a kind of lettering: look() says its {font, height, ink, halo, scale}, asked again after forget().
// Without a halo there is no outline.
export function newLetters(look) {
  const images = newCache(imageOf);
  let made = null; // the look

  function imageOf(text) {
    const { font, height: h, ink, halo, scale } = (made ??= look());
    const w = widthOf(text, font);
    const image = paper(w + 2 * margin, h, scale, (ctx) => {
      Object.assign(ctx, { font, textBaseline: "middle", lineWidth: 4, lineJoin: "round", fillStyle: ink });
      if (halo) ctx.strokeStyle = halo;
      if (halo) ctx.strokeText(text, margin, h / 2);
      ctx.fillText(text, margin, h / 2);
    });
    const draw = (on, x, middle) => on.drawImage(image, x - margin, middle - h / 2, image.width / scale, h);
    return { w, draw };
  }

  return { of: (text) => images.of(text, text), forget: () => (images.forget(), (made = null)) };
}
