// Package sandbox is everything that is done to the running machine, so that something can be seen: knobs, faults of
// connections, traffic, watchers that only look, reset, and what stories do. [Sandbox] is the one owner of all
// commands; the table of knobs has one row each.
//
// # Who owns a command
//
// A command is a function. One goroutine, [Sandbox.Run], takes commands from a queue, one after the other, and
// starts each on a goroutine of its own. A command has the machine to itself until it says that others may begin; up to
// there it waits for nothing. What takes time (a restart of etcd, deletions, opening a watch) comes after that. So no
// lock is needed between commands, and a debugger that steps into one stays in it.
//
// The request only waits for the answer. A command that was taken is done to its end, or undone, also when its request
// has gone; it ends early only with the session.
//
// The owner meets no gate: KnobTurned passes, and other moments are reported elsewhere. In a held world a command is
// therefore taken at once, and its effects wait at their points. After a quarter of a second the request has its
// answer, a [Receipt] that says so. How such a command ends, or its error, is a record: CommandEnded.
//
// # Locks
//
// Those of [Connections], the handlers and the watchers are innermost: they guard what other goroutines read.
package sandbox
