// The brush: what is painted of tokens. A thing to be painted is {box, paint}: the box around it is [left, top, right,
// bottom] in units of the stage.

import { inks, newCache, newLetters, paper, widthOf } from "../lib/canvas.js";
import { signOf } from "./tokens.js";

const pillFont = "600 15px system-ui, sans-serif";
const high = 24; // units of a pill: between two lanes there are 37
const font = "600 14px system-ui, sans-serif";

export function newBrush(canvas, ctx, scene) {
  const pills = newCache(pillOf); // for a theme and a size
  const fine = () => Math.max(1, canvas.width / scene.width) * 2;
  const letters = newLetters(
    () => ({ font, height: 22, ink: brush.colours.ink, halo: brush.colours.panel, scale: fine() })
  );
  let written = []; // where names stand in this frame: none is written over another
  const brush = {
    colours: {}, large: 1, letters, restyle, pill, stand, beside, forget,
    clean: () => (written = []), get labels() { return written; },
  };

  function forget() {
    pills.forget();
    letters.forget();
  }

  function restyle() {
    forget();
    brush.large = document.documentElement.dataset.presenter === "on" ? 1.2 : 1;
    brush.colours = inks("moving", "delivered", "anomaly", "stored", "on-token", "ink", "panel", "followed");
  }

  // pill is a token with its name: what the eye follows.
  function pill({ label, shape, colour, followed, named }, [x, y]) {
    const { image, wide } = pills.of(`${label}\n${shape}\n${colour}`, label, shape, colour);
    const [w, h] = [wide, high].map((side) => side * brush.large * scene.large);
    const [from, to] = [scene.view.x, scene.view.x + scene.view.w];
    const beyond = x - Math.min(Math.max(x, from), to); // at an edge it stays whole; what is beyond is not to be seen
    const left = Math.min(Math.max(x - w / 2, from + 2), to - w - 2) + 2 * beyond;
    if (label) written.push([x, y + 5, label, left + 24, w - 32]);
    return {
      box: [left - 5, y - h / 2 - 5, left + w + 5, y + h / 2 + 5],
      paint() {
        ctx.drawImage(image, left, y - h / 2, w, h);
        if (!followed && !named) return;
        Object.assign(ctx, { strokeStyle: brush.colours[followed ? "followed" : "ink"], lineWidth: 2 });
        ctx.beginPath();
        ctx.roundRect(left - 3, y - h / 2 - 3, w + 6, h + 6, h / 2 + 3);
        ctx.stroke();
      },
    };
  }

  function pillOf(label, shape, colour) {
    const { panel, "on-token": white, [colour]: body } = brush.colours;
    const room = shape ? 22 : 11; // for the sign
    const wide = label ? widthOf(label, pillFont) + room + 10 : high;
    const image = paper(wide, high, fine(), (c) => {
      for (const [style, inset] of [[panel, 0], [body, 2]]) {
        c.fillStyle = style;
        c.beginPath();
        c.roundRect(inset, inset, wide - 2 * inset, high - 2 * inset, high / 2 - inset);
        c.fill();
      }
      Object.assign(c, { font: pillFont, fillStyle: white, textBaseline: "middle" });
      c.fillText(label, room, high / 2 + 0.5);
      if (!shape) return;
      c.translate(high / 2, high / 2);
      Object.assign(c, { lineWidth: 2.2, strokeStyle: white, lineCap: "round" });
      c.stroke(new Path2D(signOf(shape)));
    });
    return { image, wide };
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
    const text = letters.of(label);
    const from = left ? x + 12 : x - 12 - text.w;
    // a pill begins before its name
    const on = ([, oy, , ox, w]) => Math.abs(oy - 5 - y) < 16 && ox - 26 < from + text.w && from < ox + w + 8;
    if (written.some(on) || !free([from, y - 6, from + text.w, y + 6], false)) return null;
    written.push([x, y + 5, label, from, text.w]);
    return { box: [from - 4, y - 12, from + text.w + 4, y + 12], paint: () => text.draw(ctx, from, y) };
  }

  return brush;
}
