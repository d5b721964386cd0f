// The brush: tokens as images, drawn once for a theme and a size, and stamped where they are.

import { newLetters } from "../lib/letters.js";
import { outline, sign } from "./tokens.js";

const apart = 90; // units from one name to the next on the same line

export function newBrush(canvas, ctx, scene) {
  const sprites = new Map();
  const written = []; // where names stand in this frame: none is written over another
  const fine = () => Math.max(1, canvas.width / scene.width) * 2;
  const letters = newLetters(() => ({ font: "600 14px system-ui, sans-serif", height: 22, ink: brush.colours.ink, halo: brush.colours.halo, scale: fine() }));
  const brush = { colours: {}, letters, restyle, stamp, forget, clean: () => (written.length = 0), get labels() { return written; } };

  function forget() {
    sprites.clear();
    letters.forget();
  }

  function restyle() {
    forget();
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    brush.colours = {
      moving: of("--moving"), delivered: of("--delivered"), anomaly: of("--anomaly"), stored: of("--stored"),
      paper: of("--on-token"), ink: of("--ink"), halo: of("--panel"), followed: of("--followed"),
    };
  }

  function stamp(h, [x, y]) {
    const half = 11;
    ctx.drawImage(spriteOf(h.shape, h.colour), x - half, y - half, 2 * half, 2 * half);
    if (h.followed) {
      ctx.strokeStyle = brush.colours.followed;
      ctx.lineWidth = 2;
      for (const r of [12, 16]) {
        ctx.beginPath();
        ctx.arc(x, y, r, 0, 2 * Math.PI);
        ctx.stroke();
      }
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
    const known = sprites.get(name);
    if (known) return known;
    const scale = fine();
    const sprite = document.createElement("canvas");
    sprite.width = sprite.height = Math.ceil(22 * scale);
    const c = sprite.getContext("2d");
    c.setTransform(scale, 0, 0, scale, sprite.width / 2, sprite.height / 2);
    outline(c, shape);
    c.lineWidth = 2.5;
    c.strokeStyle = brush.colours.halo;
    c.stroke();
    c.fillStyle = shape === "synthetic" ? brush.colours.halo : brush.colours[colour];
    c.fill();
    if (shape === "synthetic") {
      c.setLineDash([3.2, 2.6]);
      c.lineWidth = 2.4;
      c.strokeStyle = brush.colours[colour];
      c.stroke();
    } else {
      sign(c, shape);
      c.lineWidth = 2.2;
      c.lineCap = "round";
      c.strokeStyle = brush.colours.paper;
      c.stroke();
    }
    sprites.set(name, sprite);
    return sprite;
  }

  return brush;
}
