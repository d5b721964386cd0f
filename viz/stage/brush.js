// The brush: tokens as images, drawn once for a theme and a size, and stamped where they are.

import { newLetters } from "../lib/letters.js";
import { pathOf, signOf } from "./tokens.js";

const apart = 90; // units from one name to the next on the same line
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
    colours: {}, letters, restyle, stamp, forget, clean: () => (written.length = 0), get labels() { return written; },
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
