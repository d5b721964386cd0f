// Package sandbox lets viewers change the running machine and see the effects. It has knobs, connection faults,
// traffic, watchers, a reset, and stories, which it undoes. [Sandbox] owns all commands; each knob is a row of a table.
//
// # Who owns a command
//
// A command is a function. One goroutine, [Sandbox.Run], takes commands from a queue, one after the other, and starts
// each on a goroutine of its own. A command has the machine to itself until it calls begun, and does not wait before
// that. Slow work (a restart of etcd, deletions, opening a watch) comes afterwards. Commands therefore need no locks
// against each other, and a debugger that steps into one stays in it.
//
// The request only waits for the result. A command runs to its end even after its client has gone; only a story is then
// cancelled, and undone. The end of the session may end any command early, except an undo.
//
// The gate never holds the owner, or a command that has the machine to itself: it lets their points pass. In a held
// world a command therefore begins at once, and its effects wait at their points. After a quarter of a second the
// request (but not a story's) gets a [Receipt] with UnderWay. CommandEnded later records the end and any error.
//
// # Locks
//
// The locks of [Connections], the handlers and the watchers are innermost: their holders take no other lock.
package sandbox
