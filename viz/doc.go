// Package viz is the web page: the live stage at /, the feed and the commands under /viz/, and the guard in front of
// everything the one port serves.
//
// The page is an observer. It reads the probe log, and pulls Snapshots. It acts only as any other client could, by
// requests to the Kubernetes API on the same origin, and through the sandbox for what is done to the running machine;
// and it can hold the world and move its clock, see package hold.
//
// Its own feed is a list-watch: /viz/snapshot is the list, with its sequence number; /viz/events is the
// watch from there, with bookmarks while nothing happens, and `gone` when the log no longer holds what was asked for,
// upon which the page lists again. A page that reads too slowly is not sent everything: /viz/events then skips to the
// newest state in one message, and what was skipped can still be had by range.
//
// Each part of the screen has a room, a folder with its templates, scripts and styles. A room with something to ask
// for mounts its own routes, and says what it needs for that. What it lacks is not mounted. [frame.Page] lists the
// rooms:
//
//   - stage: the drawing of the path of an event, with the picture at the cursor in it. book: the chapters.
//   - timeline: where we are in the log and how to move in it, the table of records, the held world.
//   - spacetime: the same records once more, a line for each goroutine, an arrow for what they hand over.
//   - inspector: what can be looked into. lens: the clients of a server that is not ours. stories: what is told,
//     turned and promised. console: requests typed by hand. export: all of this as files.
//   - frame: the page around them. reply: how all of them answer. dom, lib and log are scripts only: what all rooms
//     use, with api.js, where every request and stream of the page begins; and the feed, recordings, and the fold that
//     makes a picture of both.
//
// Here is what they stand on, from the ground up; a file uses what those above it in this list declare:
//
//   - guard.go: who may talk to us at all. assets.go: the rooms' files, at /viz/assets/ROOM/NAME.
//   - pictures.go: the folded state, kept current, with keyframes of its past.
//   - feed.go: the events, and their sums.
//   - viz.go: [UI], all of that with a page, on one port.
//
// # Goroutines and locks
//
// [UI.Run] is one goroutine that folds the log every 33 ms; each open feed is the goroutine of its request. Both wait
// on a clock and on nothing else: no reader of the page can slow a station. Pictures.mu guards the state; inside it
// only the log's own lock is taken. It is released after each batch of records, so that nothing waits for a long log to
// be folded.
package viz
