// What the page keeps with its elements, and what a page without a port, or without a program, brings along.

interface Element extends HTMLOrSVGElement { // every element here is HTML or SVG
  lane?: import("../stage/places.js").Lane;
  pipes?: HTMLElement[]; // of a lane
  drawn?: boolean; // of a pipe
  tokens?: import("../stage/pipe.js").Held[]; // of a pipe, as they are drawn
  object?: fold.Token | null; // of a row, or of a token
  held?: probe.Waiting; // of a row of the world's panel
}

declare var listwatchFile: (name: string, text: string) => void;
declare var listwatchReady: Promise<void> | undefined;
declare var listwatch: { stage: { banner: { notice(text: string): void } } } | undefined;
declare var listwatchRun: (how: { // cmd/tab
  root: string; bytes(name: string): Promise<Uint8Array>; size: number; parts: number;
  say(loaded: number, text?: string): void; tell(text: string): void;
}) => Promise<string>;

// The parts of the page, and what they share.
declare namespace page {
  type Player = import("../timeline/player.js").Player;
  type Scene = import("../stage/scene.js").Scene;
  type Planner = import("../stage/plan.js").Planner;
  type Motion = import("../stage/motion.js").Motion;
  type Zoom = import("../stage/zoom.js").Zoom;
  type Follow = import("../timeline/follow.js").Follow;
  type Infos = import("../log/fold.js").Infos;
  type Keys = { [key: string]: () => unknown }; // what a key does (frame/keys.js)
  type Guide = { [key: string]: (() => unknown) | undefined };
  type Switches = { [name: string]: string } | undefined; // { fifo: "real" }

  // Part is a part of the page: it has those of these that it needs (frame/page.js).
  interface Part {
    begin?(answer: import("../log/feed.js").Snapshot): void;
    switches?(now: Switches): void;
    arrived?(list: probe.Record[]): void;
    applied?(list: probe.Record[], now: number): void;
    jumped?(now: number): void;
    landed?(r: probe.Record, now: number): void;
    skipped?(ns: number): void;
    shown?(res: fold.Resource | undefined, state: fold.State): void;
    draw?(now: number, ms: number): void;
    resource?(name: string): void;
    world?(status: hold.Status): void;
    followed?(): void;
    restyle?(): void;
    escape?(): boolean | void;
    guide?(): Guide | null;
    keys?: Keys;
  }
}
