// The brush paints tokens and sentences.

import { inks, sans, widthOf } from "../dom/canvas.js";
import { $ } from "../dom/dom.js";
import { cut } from "../lib/texts.js";
import { byTurn } from "./tokens.js";

/**
 * @typedef {import("./ground.js").Spot} Spot
 * @typedef {import("./scene.js").Scene} Scene
 * @typedef {[left: number, top: number, right: number, bottom: number]} Box in units of the stage
 * @typedef {{ box: Box, paint: () => void }} Painting a function that paints a thing, and the box around the thing
 * @typedef {{ label: string, shape: string, colour: string, followed?: boolean, named?: boolean, pale?: boolean }}
 *   Token
 * @typedef {[x: number, y: number, text: string, left: number, width: number]} Written
 * @typedef {(box: Box, wells?: boolean) => boolean} Free
 * @typedef {{ lines: string[], box: Box }} Caption a sentence and its place
 */

const pillFont = `600 15px ${sans}`;
const high = 24; // units; the height of a pill. Lanes are 42 apart
const font = `600 14px ${sans}`;

/** @param {Box} a @param {Box} b */
export const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

export class Brush {
  /** @param {OffscreenCanvasRenderingContext2D | CanvasRenderingContext2D} ctx @param {Scene} scene */
  constructor(ctx, scene) {
    this.ctx = ctx;
    this.scene = scene;
    /** @type {{ [name: string]: string }} */
    this.colours = {};
    /** @type {Written[]} */
    this.labels = []; // the texts drawn in this frame, so that no name covers another text
  }

  restyle() {
    this.colours = inks("moving", "delivered", "anomaly", "stored", "on-token", "ink", "panel", "followed");
  }

  /** @param {Token} token @param {Spot} at @returns {Painting} */
  pill(token, [x, y]) {
    const { label, shape } = token;
    const { view } = this.scene;
    const w = label ? widthOf(label, pillFont) + roomOf(shape) + 10 : high;
    const [from, to] = [view.x, view.x + view.w];
    const beyond = x - Math.min(Math.max(x, from), to); // a token at an edge stays whole; one beyond it is invisible
    const left = Math.min(Math.max(x - w / 2, from + 2), to - w - 2) + 2 * beyond;
    if (label) this.labels.push([x, y + 5, label, left + 24, w - 32]);
    return {
      box: [left - 5, y - high / 2 - 5, left + w + 5, y + high / 2 + 5],
      paint: () => this.paintPill(token, left, y - high / 2, w),
    };
  }

  /** @param {Token} token @param {number} left @param {number} top @param {number} wide */
  paintPill({ label, shape, colour, followed, named, pale }, left, top, wide) {
    const { ctx, colours: { panel, "on-token": white, [colour]: ink } } = this;
    // body traces the outline of the pill, inset by some units.
    const body = (/** @type {number} */ inset) => {
      ctx.beginPath();
      ctx.roundRect(inset, inset, wide - 2 * inset, high - 2 * inset, high / 2 - inset);
    };
    ctx.save();
    ctx.globalAlpha = pale ? 0.35 : 1;
    ctx.translate(left, top);
    for (const { style, inset } of [{ style: panel, inset: 0 }, { style: ink, inset: 2 }]) {
      ctx.fillStyle = style;
      body(inset);
      ctx.fill();
    }
    Object.assign(ctx, { font: pillFont, fillStyle: white, textBaseline: "middle", lineWidth: 2 });
    const [name, turn] = this.scene.story ? byTurn(label) : [label, ""];
    ctx.fillText(name, roomOf(shape), high / 2 + 0.5);
    ctx.font = font.replace("14", "12");
    ctx.fillText(turn, roomOf(shape) + widthOf(name, pillFont) + 1, high / 2 + 2);
    if (followed || named) {
      ctx.strokeStyle = this.colours[followed ? "followed" : "ink"];
      body(-3);
      ctx.stroke();
    }
    ctx.translate(high / 2, high / 2);
    Object.assign(ctx, { lineWidth: 2.2, strokeStyle: white, lineCap: "round" });
    if (shape) ctx.stroke(new Path2D($(`#sign-${shape}`).getAttribute("d") ?? ""));
    ctx.restore();
  }

  // write draws text that starts at x, with an outline so that it stays legible over the picture.
  /** @param {string} text @param {number} x @param {number} middle */
  write(text, x, middle) {
    const { ctx, colours: { ink, panel } } = this;
    Object.assign(ctx, { font, textBaseline: "middle", lineWidth: 4, lineJoin: "round" });
    Object.assign(ctx, { strokeStyle: panel, fillStyle: ink });
    ctx.strokeText(text, x, middle);
    ctx.fillText(text, x, middle);
  }

  // settle finds the place near a way where a sentence covers the least of the way, tokens (stand), and texts (taken).
  /** @param {string} words @param {Spot[]} way @param {Spot[]} stand @param {Box[]} taken @returns {Caption} */
  settle(words, way, stand, taken) {
    const { view } = this.scene;
    const lines = wrapped(words);
    const [w, h] = [Math.max(...lines.map((line) => widthOf(line, font))) + 20, lines.length * row + 10];
    const within = (/** @type {number} */ from, /** @type {number} */ room, /** @type {number} */ at) =>
      Math.min(Math.max(at, from + 4), from + room - 4);
    const passes = [...way, ...stand].map(([x, y]) => /** @type {Box} */ ([x - 40, y - 18, x + 40, y + 18]));
    /** @type {{ lines: string[], box: Box, cost: number }} */
    let best = { lines, box: [0, 0, 0, 0], cost: Infinity };
    const sides = (/** @type {Spot} */ [x, y], /** @type {number} */ far) => [[x - w / 2, y - far - h],
      [x - w / 2, y + far], [x + far + 22, y - h / 2], [x - far - 22 - w, y - h / 2]];
    for (let far = 24; far <= 100; far += 38) {
      const places = [way[way.length - 1], way[way.length >> 1], way[0]].flatMap((spot) => sides(spot, far));
      for (const [l, t] of places) {
        const [left, top] = [within(view.x, view.w - w, l), within(view.y, view.h - h, t)];
        /** @type {Box} */
        const box = [left, top, left + w, top + h];
        const meets = (/** @type {Box} */ each) => meet(each, box);
        const cost = 4 * passes.filter(meets).length + taken.filter(meets).length + far / 120;
        if (cost < best.cost) best = { lines, box, cost };
      }
    }
    return best;
  }

  // speech returns the painting of a sentence at its place, with a line to the token (at) while the token moves.
  /** @param {Caption} caption @param {Spot} [at] @returns {Painting} */
  speech({ lines, box }, at) {
    const { ctx, colours } = this;
    const [left, top, right, bottom] = box;
    const [x, y] = at ?? [left + 10, top];
    const middle = (/** @type {number} */ i) => top + 5 + row * (i + 0.5);
    lines.forEach((line, i) => this.labels.push([left + 10, middle(i) + 5, line, left + 10, widthOf(line, font)]));
    return { box, paint: () => {
      ctx.save();
      Object.assign(ctx, { fillStyle: colours.panel, strokeStyle: colours.moving, lineWidth: 1.5 });
      ctx.beginPath();
      ctx.moveTo(Math.min(Math.max(x, left), right), Math.min(Math.max(y, top), bottom));
      ctx.lineTo(x, y);
      ctx.stroke();
      ctx.beginPath();
      ctx.roundRect(left, top, right - left, bottom - top, 7);
      ctx.fill();
      ctx.stroke();
      Object.assign(ctx, { font, fillStyle: colours.ink, textBaseline: "middle" });
      lines.forEach((line, i) => ctx.fillText(line, left + 10, middle(i)));
      ctx.restore();
    } };
  }

  // stand paints a token while time is stopped. If free reports no room inside, its name is beside it, or left out.
  /** @param {Token} token @param {Spot} at @param {Free} free */
  stand(token, [x, y], free) {
    const whole = this.pill(token, [x, y]);
    const [left, top, right, bottom] = whole.box;
    if (!token.label || free([left + 5, top + 8, right - 5, bottom - 8])) return [whole];
    this.labels.pop();
    const { Y, H } = this.scene.boxOf("wire");
    const behind = y > Y + H / 2; // a token that continues leftward has its name on the right
    const on = (/** @type {boolean} */ left) => this.beside({ ...token, x, y, left }, free);
    const name = on(behind) ?? on(!behind);
    const bare = this.pill({ ...token, label: "" }, [x, y]); // among many tokens the name may have no room
    return name ? [bare, name] : [bare];
  }

  // beside returns the painting of a name to the left or the right of its token, or null if there is no room.
  /**
   * @param {{ label: string, x: number, y: number, left: boolean }} token @param {Free} [free]
   * @returns {Painting | null}
   */
  beside({ label, x, y, left }, free = () => true) {
    const wide = widthOf(label, font);
    const from = left ? x + 12 : x - 12 - wide; // below, 26 units: a pill begins before its name
    const on = (/** @type {Written} */ [, oy, , ox, w]) => Math.abs(oy - 5 - y) < 16 && ox - 26 < from + wide
      && from < ox + w + 8;
    if (this.labels.some(on) || !free([from, y - 6, from + wide, y + 6], false)) return null;
    this.labels.push([x, y + 5, label, from, wide]);
    return { box: [from - 4, y - 12, from + wide + 4, y + 12], paint: () => this.write(label, from, y) };
  }
}

/** @param {string} shape */
const roomOf = (shape) => (shape ? 22 : 11); // units from the pill's left end to its name

const row = 18; // units; the line height of a sentence

/** @param {string} words */
function wrapped(words) {
  /** @type {string[]} */
  const lines = [];
  for (const word of words.split(" ")) {
    if (lines.length > 0 && `${lines.at(-1)} ${word}`.length <= 30) lines.push(`${lines.pop()} ${word}`);
    else lines.push(cut(word, 30));
  }
  return lines;
}
