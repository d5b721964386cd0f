// The brush: what is painted of tokens.

import { inks, widthOf } from "../dom/canvas.js";
import { signOf } from "./tokens.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {[left: number, top: number, right: number, bottom: number]} Box in units of the stage
 * @typedef {{ box: Box, paint: () => void }} Painting a thing to be painted, and the box around it
 * @typedef {{ label: string, shape: string, colour: string, followed?: boolean, named?: boolean }} Token
 * @typedef {[x: number, y: number, text: string, left: number, width: number]} Written
 * @typedef {(box: Box, wells?: boolean) => boolean} Free
 */

const pillFont = "600 15px system-ui, sans-serif";
const high = 24; // units of a pill: between two lanes there are 37
const font = "600 14px system-ui, sans-serif";

/** @param {Box} a @param {Box} b */
export const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

export class Brush {
  /** @param {OffscreenCanvasRenderingContext2D | CanvasRenderingContext2D} ctx @param {Scene} scene */
  constructor(ctx, scene) {
    this.ctx = ctx;
    this.scene = scene;
    /** @type {{ [name: string]: string }} */
    this.colours = {};
    this.large = 1;
    /** @type {Written[]} */
    this.labels = []; // where names stand in this frame: none is written over another
  }

  clean() { this.labels = []; }

  restyle() {
    this.large = document.documentElement.dataset.presenter === "on" ? 1.2 : 1;
    this.colours = inks("moving", "delivered", "anomaly", "stored", "on-token", "ink", "panel", "followed");
  }

  // pill is a token with its name: what the eye follows.
  /** @param {Token} token @param {Spot} at @returns {Painting} */
  pill(token, [x, y]) {
    const { label, shape } = token;
    const { view, large } = this.scene;
    const wide = label ? widthOf(label, pillFont) + roomOf(shape) + 10 : high;
    const scale = this.large * large;
    const [w, h] = [wide * scale, high * scale];
    const [from, to] = [view.x, view.x + view.w];
    const beyond = x - Math.min(Math.max(x, from), to); // at an edge it stays whole; what is beyond is not to be seen
    const left = Math.min(Math.max(x - w / 2, from + 2), to - w - 2) + 2 * beyond;
    if (label) this.labels.push([x, y + 5, label, left + 24, w - 32]);
    return {
      box: [left - 5, y - h / 2 - 5, left + w + 5, y + h / 2 + 5],
      paint: () => this.paintPill(token, left, y - h / 2, scale, wide),
    };
  }

  /** @param {Token} token @param {number} left @param {number} top @param {number} scale @param {number} wide */
  paintPill({ label, shape, colour, followed, named }, left, top, scale, wide) {
    const { ctx, colours: { panel, "on-token": white, [colour]: ink } } = this;
    // body is the outline of the pill, or one within it.
    const body = (/** @type {number} */ inset) => {
      ctx.beginPath();
      ctx.roundRect(inset, inset, wide - 2 * inset, high - 2 * inset, high / 2 - inset);
    };
    ctx.save();
    ctx.translate(left, top);
    ctx.scale(scale, scale);
    for (const { style, inset } of [{ style: panel, inset: 0 }, { style: ink, inset: 2 }]) {
      ctx.fillStyle = style;
      body(inset);
      ctx.fill();
    }
    Object.assign(ctx, { font: pillFont, fillStyle: white, textBaseline: "middle", lineWidth: 2 });
    ctx.fillText(label, roomOf(shape), high / 2 + 0.5);
    if (followed || named) {
      ctx.strokeStyle = this.colours[followed ? "followed" : "ink"];
      body(-3);
      ctx.stroke();
    }
    ctx.translate(high / 2, high / 2);
    Object.assign(ctx, { lineWidth: 2.2, strokeStyle: white, lineCap: "round" });
    if (shape) ctx.stroke(new Path2D(signOf(shape)));
    ctx.restore();
  }

  // write writes a text from x on, with an outline, since it stands on what is drawn.
  /** @param {string} text @param {number} x @param {number} middle */
  write(text, x, middle) {
    const { ctx, colours: { ink, panel } } = this;
    Object.assign(ctx, { font, textBaseline: "middle", lineWidth: 4, lineJoin: "round" });
    Object.assign(ctx, { strokeStyle: panel, fillStyle: ink });
    ctx.strokeText(text, x, middle);
    ctx.fillText(text, x, middle);
  }

  // stand is a token for those who read, as long as free(box) says so with its name in it; else its name is beside it.
  /** @param {Token} token @param {Spot} at @param {Free} free */
  stand(token, [x, y], free) {
    const whole = this.pill(token, [x, y]);
    const [left, top, right, bottom] = whole.box;
    if (!token.label || free([left + 5, top + 8, right - 5, bottom - 8])) return [whole];
    this.labels.pop();
    const { Y, H } = this.scene.boxOf("wire");
    const behind = y > Y + H / 2; // what goes on leftward has it on its right
    const on = (/** @type {boolean} */ left) => this.beside({ ...token, x, y, left }, free);
    const name = on(behind) ?? on(!behind);
    const bare = this.pill({ ...token, label: "" }, [x, y]); // between others none has room
    return name ? [bare, name] : [bare];
  }

  // beside is the name of a token that a pipe draws, on the side where the queue is empty; null where one stands.
  /**
   * @param {{ label: string, x: number, y: number, left: boolean }} token @param {Free} [free]
   * @returns {Painting | null}
   */
  beside({ label, x, y, left }, free = () => true) {
    const wide = widthOf(label, font);
    const from = left ? x + 12 : x - 12 - wide;
    // a pill begins before its name
    const on = (/** @type {Written} */ [, oy, , ox, w]) => Math.abs(oy - 5 - y) < 16 && ox - 26 < from + wide
      && from < ox + w + 8;
    if (this.labels.some(on) || !free([from, y - 6, from + wide, y + 6], false)) return null;
    this.labels.push([x, y + 5, label, from, wide]);
    return { box: [from - 4, y - 12, from + wide + 4, y + 12], paint: () => this.write(label, from, y) };
  }
}

/** @param {string} shape */
const roomOf = (shape) => (shape ? 22 : 11); // for the sign
