// Properties that the page adds to elements, and globals of a page whose program has no port, or that has no program.

interface Element extends HTMLOrSVGElement { // every element here is HTML or SVG
  lane?: import("../stage/places.js").Lane;
  pipes?: HTMLElement[]; // the pipes of a lane
  drawn?: boolean; // whether a pipe is drawn
  tokens?: import("../stage/pipe.js").Held[]; // the drawn tokens of a pipe
  object?: fold.Token | null; // the object of a row or of a token
}

declare var listwatchFile: (name: string, text: string) => void;
declare var listwatchReady: Promise<void> | undefined;
declare var listwatch: { stage: { banner: { notice(text: string): void } } } | undefined;
declare var listwatchRun: (how: { // cmd/tab
  root: string; bytes(name: string): Promise<Uint8Array>; size: number; parts: number;
  say(loaded: number, text?: string): void; tell(text: string): void;
}) => Promise<string>;

// The parts of the page, and the types that they share.
declare namespace page {
  type Player = import("../timeline/player.js").Player;
  type Scene = import("../stage/scene.js").Scene;
  type Planner = import("../stage/plan.js").Planner;
  type Motion = import("../stage/motion.js").Motion;
  type Zoom = import("../stage/zoom.js").Zoom;
  type Follow = import("../timeline/follow.js").Follow;
  type Infos = import("../log/fold.js").Infos;
  type Keys = { [key: string]: () => unknown }; // the actions of keys (frame/keys.js)
  type Guide = { [key: string]: (() => unknown) | undefined };
  type Switches = { [name: string]: string } | undefined; // { fifo: "real" }

  // Part is a part of the page, which implements the hooks that it needs (frame/page.js). A now is in ms, as in
  // requestAnimationFrame.
  interface Part {
    begin?(answer: import("../log/feed.js").Snapshot): void; // the page has taken its list
    switches?(now: Switches): void; // the picture on stage was made with these switches
    arrived?(list: probe.Record[]): void; // records came from the feed, whatever moment is on stage
    applied?(list: probe.Record[], now: number): void; // records were folded; after a sum, those to show singly
    jumped?(now: number): void; // another moment is on stage
    landed?(r: probe.Record, now: number): void; // the viewer froze, stepped, or scrubbed: r is at the cursor
    shown?(res: fold.Resource | undefined, state: fold.State): void; // the scene was drawn
    draw?(now: number, ms: number): void; // once in each frame; ms of time pass
    resource?(name: string): void; // another resource is on stage
    world?(status: hold.Status): void; // the state of the world, at first and after each change
    followed?(): void; // another object or revision is followed, or none
    restyle?(): void; // the colours changed
    escape?(): boolean | void; // Escape was pressed: close whatever is open, and return true if anything was
    guide?(): Guide | null; // the keys while the part guides the viewer, otherwise null
    keys?: Keys;
  }
}
