// @ts-nocheck
// The brush: what is painted of tokens. A thing to be painted is {box, paint}: the box around it is [left, top, right,
// bottom] in units of the stage.

import { inks, widthOf } from "../dom/canvas.js";
import { signOf } from "./tokens.js";

const pillFont = "600 15px system-ui, sans-serif";
const high = 24; // units of a pill: between two lanes there are 37
const font = "600 14px system-ui, sans-serif";

export function newBrush(ctx, scene) {
  let written = []; // where names stand in this frame: none is written over another
  const brush = {
    colours: {}, large: 1, restyle, pill, stand, beside, write,
    clean: () => (written = []), get labels() { return written; },
  };

  function restyle() {
    brush.large = document.documentElement.dataset.presenter === "on" ? 1.2 : 1;
    brush.colours = inks("moving", "delivered", "anomaly", "stored", "on-token", "ink", "panel", "followed");
  }

  // pill is a token with its name: what the eye follows.
  function pill({ label, shape, colour, followed, named }, [x, y]) {
    const room = shape ? 22 : 11; // for the sign
    const wide = label ? widthOf(label, pillFont) + room + 10 : high;
    const scale = brush.large * scene.large;
    const [w, h] = [wide * scale, high * scale];
    const [from, to] = [scene.view.x, scene.view.x + scene.view.w];
    const beyond = x - Math.min(Math.max(x, from), to); // at an edge it stays whole; what is beyond is not to be seen
    const left = Math.min(Math.max(x - w / 2, from + 2), to - w - 2) + 2 * beyond;
    if (label) written.push([x, y + 5, label, left + 24, w - 32]);
    // body is the outline of the pill, or one within it.
    const body = (inset) => {
      ctx.beginPath();
      ctx.roundRect(inset, inset, wide - 2 * inset, high - 2 * inset, high / 2 - inset);
    };
    return {
      box: [left - 5, y - h / 2 - 5, left + w + 5, y + h / 2 + 5],
      paint() {
        const { panel, "on-token": white, [colour]: ink } = brush.colours;
        ctx.save();
        ctx.translate(left, y - h / 2);
        ctx.scale(scale, scale);
        for (const [style, inset] of [[panel, 0], [ink, 2]]) {
          ctx.fillStyle = style;
          body(inset);
          ctx.fill();
        }
        Object.assign(ctx, { font: pillFont, fillStyle: white, textBaseline: "middle", lineWidth: 2 });
        ctx.fillText(label, room, high / 2 + 0.5);
        if (followed || named) {
          ctx.strokeStyle = brush.colours[followed ? "followed" : "ink"];
          body(-3);
          ctx.stroke();
        }
        ctx.translate(high / 2, high / 2);
        Object.assign(ctx, { lineWidth: 2.2, strokeStyle: white, lineCap: "round" });
        if (shape) ctx.stroke(new Path2D(signOf(shape)));
        ctx.restore();
      },
    };
  }

  // write writes a text from x on, with an outline, since it stands on what is drawn.
  function write(text, x, middle) {
    const { ink, panel } = brush.colours;
    Object.assign(ctx, { font, textBaseline: "middle", lineWidth: 4, lineJoin: "round" });
    Object.assign(ctx, { strokeStyle: panel, fillStyle: ink });
    ctx.strokeText(text, x, middle);
    ctx.fillText(text, x, middle);
  }

  // stand is a token for those who read, as long as free(box) says so with its name in it; else its name is beside it.
  function stand(token, [x, y], free) {
    const whole = pill(token, [x, y]);
    const [left, top, right, bottom] = whole.box;
    if (!token.label || free([left + 5, top + 8, right - 5, bottom - 8])) return [whole];
    written.pop();
    const behind = y > scene.boxOf("wire").Y + scene.boxOf("wire").H / 2; // what goes on leftward has it on its right
    const name = beside({ ...token, x, y, left: behind }, free) ?? beside({ ...token, x, y, left: !behind }, free);
    return [pill({ ...token, label: "" }, [x, y]), name].filter(Boolean); // between others none has room
  }

  // beside is the name of a token that a pipe draws, on the side where the queue is empty; null where one stands.
  function beside({ label, x, y, left }, free = () => true) {
    const wide = widthOf(label, font);
    const from = left ? x + 12 : x - 12 - wide;
    // a pill begins before its name
    const on = ([, oy, , ox, w]) => Math.abs(oy - 5 - y) < 16 && ox - 26 < from + wide && from < ox + w + 8;
    if (written.some(on) || !free([from, y - 6, from + wide, y + 6], false)) return null;
    written.push([x, y + 5, label, from, wide]);
    return { box: [from - 4, y - 12, from + wide + 4, y + 12], paint: () => write(label, from, y) };
  }

  return brush;
}
