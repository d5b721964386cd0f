// The brush: tokens as images, drawn once for a theme and a size, and stamped where they are.

import { newLetters } from "../lib/letters.js";
import { pathOf, signOf } from "./tokens.js";

const apart = 90; // units from one name to the next on the same line
const pillFont = "600 15px system-ui, sans-serif";
const names = {
  moving: "--moving", delivered: "--delivered", anomaly: "--anomaly", stored: "--stored", paper: "--on-token",
  ink: "--ink",
  halo: "--panel", followed: "--followed",
};

export function newBrush(canvas, ctx, scene) {
  const sprites = new Map();
  const written = []; // where names stand in this frame: none is written over another
  const fine = () => Math.max(1, canvas.width / scene.width) * 2;
  const font = "600 14px system-ui, sans-serif";
  const letters = newLetters(
    () => ({ font, height: 22, ink: brush.colours.ink, halo: brush.colours.halo, scale: fine() })
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
    const style = getComputedStyle(document.documentElement);
    for (const [name, variable] of Object.entries(names)) brush.colours[name] = style.getPropertyValue(variable).trim();
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
    const { colours } = brush;
    const scale = fine();
    const image = document.createElement("canvas");
    const c = image.getContext("2d");
    c.font = pillFont;
    const room = shape ? 25 : 12; // for the sign
    const w = c.measureText(label).width + room + 11;
    image.width = Math.ceil(w * scale);
    image.height = Math.ceil(28 * scale);
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.font = pillFont;
    c.fillStyle = colours.halo;
    c.beginPath();
    c.roundRect(0, 0, w, 28, 14);
    c.fill();
    c.fillStyle = colours[colour];
    c.beginPath();
    c.roundRect(2, 2, w - 4, 24, 12);
    c.fill();
    c.fillStyle = colours.paper;
    c.textBaseline = "middle";
    c.fillText(label, room, 14.5);
    if (!shape) return { canvas: image, w };
    c.translate(14, 14);
    c.strokeStyle = colours.paper;
    [c.lineWidth, c.lineCap] = [2.2, "round"];
    c.stroke(new Path2D(signOf(shape) || pathOf(shape)));
    return { canvas: image, w };
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
    if (sprites.has(name)) return sprites.get(name);
    const { colours } = brush;
    const scale = fine();
    const sprite = document.createElement("canvas");
    sprite.width = sprite.height = Math.ceil(22 * scale);
    const c = sprite.getContext("2d");
    const stroke = (path, width, style) => {
      [c.lineWidth, c.strokeStyle] = [width, style];
      c.stroke(path);
    };
    c.setTransform(scale, 0, 0, scale, sprite.width / 2, sprite.height / 2);
    const path = new Path2D(pathOf(shape));
    const hollow = shape === "synthetic";
    stroke(path, 2.5, colours.halo);
    c.fillStyle = hollow ? colours.halo : colours[colour];
    c.fill(path);
    if (hollow) c.setLineDash([3.2, 2.6]);
    else c.lineCap = "round";
    if (hollow) stroke(path, 2.4, colours[colour]);
    else stroke(new Path2D(signOf(shape)), 2.2, colours.paper);
    sprites.set(name, sprite);
    return sprite;
  }

  return brush;
}
