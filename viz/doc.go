// Package viz is the web page: the live stage at /, the feed and the commands under /viz/, and the guard in front of
// the whole port.
//
// The page is an observer. It reads the probe log, and pulls Snapshots. It changes the cluster like any other client,
// by requests to the Kubernetes API on the same origin, and the running pipeline through the sandbox. It can also hold
// the world and move its clock; see package hold.
//
// Its own feed is a list-watch: /viz/snapshot is the list, with its sequence number; /viz/events is the watch from
// there, with bookmarks while nothing happens, and with `gone` when the log no longer has the next record, upon which
// the page lists again. For a page that reads too slowly, /viz/events skips to the newest state in one message; the
// page can still fetch the skipped records by range.
//
// Each part of the screen has a room, a folder with its templates, scripts and styles. A room mounts its own routes and
// declares their dependencies; without those, it mounts none. [frame.Page] lists the rooms:
//
//   - stage: the drawing of the path of an event, with the state at the cursor. book: the chapters.
//   - timeline: the cursor and the buttons that move it, the table of records, the held world.
//   - spacetime: the same records again, a line for each goroutine, an arrow for each hand-over.
//   - inspector: the parts of the stage in detail. lens: the clients of a foreign server. stories: stories, knobs and
//     promises. console: requests typed by hand. export: all of this as files.
//   - frame: the page around them. reply: the form of all answers. dom, lib and log are scripts only: helpers for all
//     rooms, among them api.js, which makes every request of the page; and the feed, recordings, and the fold, which
//     makes pictures from both.
//
// # Goroutines and locks
//
// [UI.Run] is one goroutine that folds the log every 33 ms; each open feed runs in the goroutine of its request. Both
// wait only for a clock: no reader of the page can slow a station. Pictures.mu guards the state; its holder takes only
// the log's own lock. The holder releases it after each batch of records, so that no other goroutine waits for a long
// log to be folded.
package viz
