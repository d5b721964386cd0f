// Package viz is the web page: the live stage at /, the book under /book/, the feed and the commands under /viz/, and
// the guard in front of the whole port.
//
// The page is an observer. It reads the probe log, and pulls Snapshots. It changes the cluster like any other client,
// by requests to the Kubernetes API on the same origin, and the running pipeline through the sandbox. It can also hold
// the world and move its clock; see package hold.
//
// Its own feed is a list-watch: /viz/snapshot is the list, /viz/events the watch, with bookmarks, and with `gone` when
// the log no longer has the next record. If a page reads too slowly, or the records come too fast, the feed sends the
// newest state in one message instead; the page can still fetch the records by range.
//
// Each part of the screen has a room, a folder with its templates, scripts and styles. A room mounts its own routes, or
// none if its dependency is missing ([frame.Page]). docs/ARCHITECTURE.md has a table of the rooms: what each owns, what
// changes with it, and which tests check it.
//
// # Goroutines and locks
//
// [UI.Run] is one goroutine that folds the log every 33 ms; each open feed runs in the goroutine of its request, which
// a slow page blocks. No station waits for either. Pictures.mu guards the state; its holder takes only the log's own
// lock, and releases mu after each batch of records, so that no other goroutine waits for a long log to be folded.
package viz
