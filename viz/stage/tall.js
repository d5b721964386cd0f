// The tall stage: where the window is narrow, the stations are stacked, and the path winds downwards, row by row. Each station is
// drawn as it is on the wide stage, and moved; only the ways between stations are others. Everything else goes on in the
// coordinates of the wide stage, and place says where those are.

import { put, svg } from "../lib/dom.js";

const narrow = "(max-width: 700px)";
const width = 446;
const height = 1490;
const wireX = 438; // the wire runs down here
const loopX = 8; // and what a handler writes goes up here
const wireY = 786; // of the wire's words, between the halves

// corners are where the boxes of the stations stand.
const corners = {
  http: [18, 72], etcd: [132, 72], etcd3: [232, 72],
  store: [18, 296], ring: [214, 296],
  incoming: [22, 564], dispatch: [110, 564], watcher: [210, 564],
  fifo: [134, 896], reflector: [288, 896],
  workqueue: [16, 1104], indexer: [200, 1104], processor: [342, 1104],
  handler: [16, 1310], listener: [124, 1310],
};
const ways = [
  `M16 1186H14Q${loopX} 1186 ${loopX} 1174V152Q${loopX} 140 14 140H18`,
  "M114 140H132", "M214 140C226 140 222 112 240 112", "M330 112C380 112 380 163 316 163C240 163 212 214 240 214",
  "M330 214C352 214 352 250 352 316", "M228 390H148", "M83 480C83 530 98 510 98 564", "M98 632H128",
  `M${wireX} 572V962Q${wireX} 978 424 978`, "M288 978H270", "M186 1060L208 1104", "M324 1186H342", "M96 1310V1268",
];
const arrows = [
  [123, 140, 0], [223, 126, -35], [352, 270, 90], [188, 390, 180], [92, 524, 80], [113, 632, 0], [wireX, 720, 90], [wireX, 880, 90],
  [279, 978, 180], [197, 1082, 60], [333, 1186, 0], [96, 1289, -90], [loopX, 1000, -90], [loopX, 420, -90],
];
// words are what stands outside of the boxes, and within the wire, which lies here: where each text begins, or ends.
const words = [
  [".side", 22, 24], [".about.ours", 22, 44], [".theirs .about", 22, 44], ["[data-text=behind]", 424, 24], ["#ring-note", 644, 271], [".client ~ .side ~ .side", 22, 886],
  ["[data-station=wire] .title", 40, wireY + 5], ["[data-text='wire.proto']", 104, wireY + 5], ["[data-text='wire.bytes']", 210, wireY + 5],
  ["[data-text='wire.n']", 296, wireY + 6], ["[data-text='wire.streams']", 366, wireY + 5],
];
const aside = { store: 148, indexer: -140, processor: -90 }; // the gate of a station that is entered from its other side

// newTall lays the scene out, for the window there is, and again when that changes; changed() is called when it has.
export function newTall(scene) {
  const g = scene.geometry;
  const asked = matchMedia(narrow);
  const wide = { tall: false, width: g.width, height: g.height, edges: { wireX: g.wireX, right: g.width }, place: (at) => at, boxOf: (name) => g.boxes[name] };
  const tall = { tall: true, width, height, edges: { wireX: wireX + g.boxes.watcher.X - corners.watcher[0], right: width + g.boxes.watcher.X - corners.watcher[0] }, place, boxOf };
  const layer = svg("g", { class: "rails", "aria-hidden": "true" });
  layer.append(...ways.map((d) => svg("path", { d })), ...arrows.map(([x, y, turn]) => svg("path", { class: "chevron", d: "M-3 -5L3 0L-3 5", transform: `translate(${x} ${y}) rotate(${turn})` })));

  const shiftOf = (name) => (name === "wire" ? [wireX - g.wireX, wireY - 266] : [corners[name][0] - g.boxes[name].X, corners[name][1] - g.boxes[name].Y]);

  function boxOf(name) {
    if (name === "wire") return { X: 16, Y: wireY - 22, W: 408, H: 42 };
    return { ...g.boxes[name], X: corners[name][0], Y: corners[name][1] };
  }

  // place is where a point of the wide stage is drawn.
  function place([x, y]) {
    const above = y < 266;
    if (x >= 1270) return [width + x - g.width, y + shiftOf("watcher")[1]];
    if (x > 1200) return [wireX, y > 255 && y < 277 ? wireY : y + shiftOf(above ? "watcher" : "reflector")[1]];
    if (x < 40) return [x - g.loopX + loopX, y + shiftOf(above ? "http" : "workqueue")[1]];
    if (above && x > 430 && x < 450) return [352, 300]; // the way into the ring comes from above
    let [best, least] = ["", Infinity];
    for (const name of Object.keys(corners)) {
      const box = g.boxes[name];
      const off = Math.max(box.X - x, x - box.X - box.W);
      if (box.Y < 266 === above && off < least) [best, least] = [name, off];
    }
    const [dx, dy] = shiftOf(best);
    return [x + dx, y + dy];
  }

  const move = (el, [dx, dy]) => el?.setAttribute("transform", `translate(${dx} ${dy})`);

  // stack moves the stations, and what stands beside them.
  function stack() {
    for (const name of Object.keys(corners)) move(scene.stations.get(name), shiftOf(name));
    for (const el of scene.root.querySelectorAll("[data-theirs], [data-theirs] + .note")) {
      const name = Object.keys(corners).find((each) => g.boxes[each].Y < 266 && Math.abs(Number(el.getAttribute("x")) - g.boxes[each].X - g.boxes[each].W / 2) < 1);
      if (name) move(el, shiftOf(name));
    }
    move(scene.root.querySelector(":scope > .frame"), shiftOf("incoming"));
    for (const [selector, x, y] of words) {
      const el = scene.root.querySelector(selector);
      if (el) move(el, [x - Number(el.getAttribute("x")), y - Number(el.getAttribute("y"))]);
    }
    const hit = scene.stations.get("wire").querySelector(".hit");
    const box = boxOf("wire");
    for (const [name, value] of [["x", box.X], ["y", box.Y], ["width", box.W], ["height", box.H]]) hit.setAttribute(name, value);
    for (const gate of scene.root.querySelectorAll("[data-gate-at]")) {
      const [dx, dy] = shiftOf(gate.dataset.gateAt);
      gate.setAttribute("transform", `translate(${dx + (aside[gate.dataset.gateAt] ?? 0)} ${dy}) ${gate.getAttribute("transform")}`);
    }
    const halves = scene.root.querySelectorAll(".half");
    halves[0].setAttribute("d", `M22 4H430V758H22Q12 758 12 748V14Q12 4 22 4Z`);
    halves[1].setAttribute("d", `M22 852H430V${height - 6}H22Q12 ${height - 6} 12 ${height - 16}V862Q12 852 22 852Z`);
    scene.root.querySelector(".rails").replaceWith(layer);
  }

  const home = [...scene.root.querySelectorAll(".station, .station .hit, [data-theirs], [data-theirs] + .note, .frame, .half, .gate, .side, .about, #ring-note, [data-station=wire] text")]
    .map((el) => [el, ["transform", "d", "x", "y", "width", "height"].map((name) => [name, el.getAttribute(name)])]);
  const rails = scene.root.querySelector(".rails");

  function spread() {
    for (const [el, attributes] of home) for (const [name, value] of attributes) value === null ? el.removeAttribute(name) : el.setAttribute(name, value);
    layer.replaceWith(rails);
  }

  function lay() {
    const now = asked.matches && !document.body.classList.contains("figure") ? tall : wide;
    if (scene.tall === now.tall) return false;
    if (now.tall) stack();
    else if (scene.tall) spread();
    Object.assign(scene, now, { view: { x: 0, y: 0, w: now.width, h: now.height } });
    document.querySelector("#stage").classList.toggle("tall", now.tall);
    put(scene.root, "viewBox", `0 0 ${now.width} ${now.height}`);
    return true;
  }

  lay();
  return (changed) => asked.addEventListener("change", () => lay() && changed());
}
