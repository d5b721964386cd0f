// A part of the page is what one of the functions newHold, newZoom, … returns. page.js makes all parts, gives each the
// stage, and calls the hooks below on all of them. A part defines the hooks that it needs; here are their meanings, and
// the defaults, which do nothing. Times called now are in ms, as requestAnimationFrame has them.

const nothing = {
  begin(answer) {}, // the page has taken its list: the state, and the name of its log
  switches(now) {}, // what is on stage was made with these switches, as { fifo: "real" }
  arrived(list) {}, // records came from the feed, whatever moment is on stage
  applied(list, now) {}, // records were folded; of a sum, list are those that matter
  jumped(now) {}, // another moment is on stage
  landed(r, now) {}, // the viewer froze the stage, stepped, or scrubbed: r is at the cursor
  skipped(ns) {}, // a replay left out a time without records
  shown(res, state) {}, // the scene was drawn; without res nothing is known of the resource
  draw(now) {}, // once a frame
  resource(name) {}, // another resource is on stage
  world(status) {}, // how the running world is: at first, and when it is held or resumed, or its clock moves
  connected() {}, // the connection to the program changed
  followed() {}, // another object or revision is followed, or none
  restyle() {}, // the colours changed
  escape() {}, // Escape was pressed: close what is open, and return true if something was
  keys: [], // rows of [keys, words, act]: KeyboardEvent.key values (keys.js), what they do, and the function that does it
  guided: [], // what a guide does with keys while it speaks, as [keys, words]; only listed
};

// partOf completes a part by the hooks that it does not define.
export const partOf = (own) => Object.setPrototypeOf(own, nothing);
