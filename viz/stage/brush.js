// The brush: tokens as images, drawn once for a theme and a size, and stamped where they are.

import { inks, newLetters, paper, widthOf } from "../lib/canvas.js";
import { pathOf, signOf } from "./tokens.js";

const apart = 90; // units from one name to the next on the same line
const pillFont = "600 15px system-ui, sans-serif";

export function newBrush(canvas, ctx, scene) {
  const sprites = new Map();
  const written = []; // where names stand in this frame: none is written over another
  const fine = () => Math.max(1, canvas.width / scene.width) * 2;
  const font = "600 14px system-ui, sans-serif";
  const letters = newLetters(
    () => ({ font, height: 22, ink: brush.colours.ink, halo: brush.colours.panel, scale: fine() })
  );
  const brush = {
    colours: {}, letters, restyle, stamp, pill, beside, pile, forget,
    clean: () => (written.length = 0), get labels() { return written; },
  };

  function forget() {
    sprites.clear();
    letters.forget();
  }

  function restyle() {
    forget();
    brush.colours = inks("moving", "delivered", "anomaly", "stored", "on-token", "ink", "panel", "followed");
  }

  function stamp(h, [x, y]) {
    const half = 11;
    ctx.drawImage(spriteOf(h.shape, h.colour), x - half, y - half, 2 * half, 2 * half);
    ctx.strokeStyle = brush.colours.followed;
    ctx.lineWidth = 2;
    for (const r of h.followed ? [12, 16] : []) {
      ctx.beginPath();
      ctx.arc(x, y, r, 0, 2 * Math.PI);
      ctx.stroke();
    }
    if (!h.label) return;
    const base = h.below ? y + 25 : y - 14; // where nothing is written on the stage
    if (written.some(([ox, oy]) => Math.abs(ox - x) < apart && Math.abs(oy - base) < 16)) return;
    const text = letters.of(h.label);
    const left = x > scene.width - 90 ? x - text.w : x - text.w / 2;
    written.push([x, base, h.label, left, text.w]);
    text.draw(ctx, left, base - 5);
  }

  // pill draws a token with its name: what the eye follows.
  function pill(t, [x, y]) {
    if (!t.label) return stamp({ ...t, label: "" }, [x, y]);
    const name = `${t.label}\n${t.shape}\n${t.colour}`;
    if (!sprites.has(name)) sprites.set(name, pillOf(t));
    const { canvas: image, w } = sprites.get(name);
    const left = Math.min(Math.max(x - w / 2, scene.view.x + 2), scene.view.x + scene.view.w - w - 2);
    ctx.drawImage(image, left, y - 14, w, 28);
    if (t.followed) outline(left - 3, y - 17, w + 6, 34);
    written.push([x, y + 5, t.label, left + 24, w - 32]);
  }

  function pillOf({ label, shape, colour }) {
    const { panel, "on-token": white, [colour]: body } = brush.colours;
    const room = shape ? 25 : 12; // for the sign
    const w = widthOf(label, pillFont) + room + 11;
    const canvas = paper(w, 28, fine(), (c) => {
      for (const [style, inset] of [[panel, 0], [body, 2]]) {
        c.fillStyle = style;
        c.beginPath();
        c.roundRect(inset, inset, w - 2 * inset, 28 - 2 * inset, 14 - inset);
        c.fill();
      }
      Object.assign(c, { font: pillFont, fillStyle: white, textBaseline: "middle" });
      c.fillText(label, room, 14.5);
      if (!shape) return;
      c.translate(14, 14);
      stroke(c, signOf(shape) || pathOf(shape), 2.2, white);
    });
    return { canvas, w };
  }

  function stroke(c, path, lineWidth, strokeStyle, lineCap = "round") {
    Object.assign(c, { lineWidth, strokeStyle, lineCap });
    c.stroke(new Path2D(path));
  }

  function outline(x, y, w, h) {
    ctx.strokeStyle = brush.colours.followed;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, h / 2);
    ctx.stroke();
  }

  // beside writes the name of a token that a pipe draws, on the side where the queue is empty.
  function beside({ label, x, y, left }) {
    const text = letters.of(label);
    const from = left ? x + 12 : x - 12 - text.w;
    if (written.some(([, oy, , ox, w]) => Math.abs(oy - 5 - y) < 16 && ox < from + text.w && from < ox + w)) return;
    written.push([x, y + 5, label, from, text.w]);
    text.draw(ctx, from, y);
  }

  // pile writes how many changes wait to be shown.
  function pile(n, [x, y]) {
    pill({ label: `+${n}`, shape: "", colour: "moving" }, [x, y]);
  }

  // spriteOf returns a token as an image, drawn once for a theme and a size.
  function spriteOf(shape, colour) {
    const name = `${shape} ${colour}`;
    if (!sprites.has(name)) sprites.set(name, paper(22, 22, fine(), (c) => drawToken(c, shape, brush.colours[colour])));
    return sprites.get(name);
  }

  function drawToken(c, shape, body) {
    const { panel, "on-token": white } = brush.colours;
    const hollow = shape === "synthetic";
    c.translate(11, 11);
    stroke(c, pathOf(shape), 2.5, panel);
    c.fillStyle = hollow ? panel : body;
    c.fill(new Path2D(pathOf(shape)));
    if (!hollow) return stroke(c, signOf(shape), 2.2, white);
    c.setLineDash([3.2, 2.6]);
    stroke(c, pathOf(shape), 2.4, body, "butt");
  }

  return brush;
}
