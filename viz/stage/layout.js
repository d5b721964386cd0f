// @ts-nocheck
// The layout of the stage: wide, or tall where the window is narrow. Go lays out both (layout.go, tall.go), and a style
// sheet moves the stations. What is drawn by scripts has its coordinates on the wide stage; place says where a point is
// on the one that is shown.

import { $, when } from "../dom/dom.js";

const narrow = "(max-width: 700px)";

// newLayout gives the scene tall, width, height, edges, place and boxOf, and keeps them up to date. It returns a
// function that takes what is to be called when the layout has changed.
export function newLayout(scene) {
  const g = scene.geometry;
  const t = g.tall;
  const asked = matchMedia(narrow);
  const aside = g.boxes.watcher.X - t.boxes.watcher.X;
  const wide = {
    tall: false, width: g.width, height: g.height, edges: { wireX: g.wireX, right: g.width, end: g.width + 50 },
    place: (at) => at,
    boxOf: (name) => g.boxes[name],
  };
  const tall = {
    tall: true, width: t.width, height: t.height, place,
    edges: { wireX: t.wireX + aside, right: t.width + aside, end: t.width + aside + 50 },
    boxOf: (name) => t.boxes[name],
  };
  const first = { ...wide, place: straight }; // the first view
  const down = (name) => t.boxes[name].Y - g.boxes[name].Y;

  // straight moves a point of the wide stage onto the way of the first view, on which the stations that have no name
  // are not drawn: through watchChan it leads straight on, and by the store, too.
  function straight([x, y]) {
    if (y > 260) return [x, Math.min(y, g.clientAxis)];
    if (x > 620 && x < 780) return [x, Math.min(y, g.ring.y)];
    if (x < 240 || x > 440) return [x, y];
    if (y === g.serverAxis) return [x, y];
    const along = y < 128 ? 125 + x / 2 : y < 180 ? 340 : 364 + (x - 276) * 0.46;
    return [along, g.serverAxis + (y - 102) / 4];
  }

  // place moves a point of the wide stage with the station that is nearest to it.
  function place([x, y]) {
    const above = y < 266;
    if (x >= 1270) return [t.width + x - g.width, y + down("watcher")];
    if (x > 1200) return [t.wireX, y > 255 && y < 277 ? t.wireY : y + down(above ? "watcher" : "reflector")];
    if (x < 40) return [x - g.loopX + t.loopX, y + down(above ? "http" : "workqueue")];
    if (above && x > 430 && x < 450) return [352, 300]; // the way into the ring comes from above
    const off = (name) => Math.max(g.boxes[name].X - x, x - g.boxes[name].X - g.boxes[name].W);
    const there = Object.keys(g.boxes).filter((name) => name !== "wire" && g.boxes[name].Y < 266 === above);
    const nearest = there.reduce((best, name) => (off(name) < off(best) ? name : best));
    return [x + t.boxes[nearest].X - g.boxes[nearest].X, y + down(nearest)];
  }

  // placed is place for a point of a way (way.js), with what leads there.
  scene.placed = (point) => {
    const curve = point.length === 6;
    const pairs = curve ? [0, 2, 4].flatMap((i) => scene.place(point.slice(i, i + 2))) : scene.place(point);
    return point.length === 3 ? [...pairs, point[2]] : pairs;
  };

  function lay() {
    const plain = Boolean(document.documentElement.dataset.first);
    const small = plain || document.body.classList.contains("figure"); // drawn whole
    const now = asked.matches && !small ? tall : plain ? first : wide;
    const was = scene.tall;
    Object.assign(scene, now, { plain, large: plain && asked.matches ? 2.4 : 1 }); // times the size of a token
    if (was === now.tall) return false;
    $("#stage").classList.toggle("tall", now.tall);
    return true;
  }

  lay();
  scene.lay = () => asked.dispatchEvent(new Event("change")); // what decides about the layout has changed
  return (changed) => when(asked, "change", () => lay() && changed());
}
