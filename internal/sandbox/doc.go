// Package sandbox is everything that is done to the running machine, so that something can be seen: knobs, faults of
// connections, traffic, watchers that only look, reset, and what stories do.
//
//   - sandbox.go: [Sandbox], the one owner of all commands.
//   - knobs.go: [Knob], what can be turned, and how everything stands.
//   - story.go: [Story], a long command that puts back what it has changed.
//   - reset.go: everything to where it was; the deletion of pods.
//   - connections.go: [Connections], the client half's end of the wire: dropped, cut, stalled.
//   - handlers.go: [Handlers], named handlers on the shared informer, each as slow as it is told to be.
//   - watchers.go, socket.go: [Watchers], watches that are opened only to look, some of them over a websocket.
//   - traffic.go, demo.go: [Traffic], as many changes a second as asked for; [Demo], a gentle one.
//   - tour.go: the demo's rest while a page gives its tour.
//
// # Who owns a command
//
// One goroutine, [Sandbox.Run], takes commands from a queue, one after the other. What takes no time it does itself. What
// takes time (a restart of etcd, deletions, opening a watch) it checks, and gives to a goroutine of its own. The caller
// only waits for the answer. A command that was taken is done to its end, or undone, also when its request has
// gone; it ends early only with the session. So nothing is left half done, and no lock is needed between commands.
//
// The owner waits for nothing and meets no gate: KnobTurned passes, and whatever reports other moments runs elsewhere. In
// a held world a command is therefore taken at once, its effects wait at their points, and the request is answered
// when it has waited a quarter of a second for them.
//
// # Locks
//
// Those of [Connections], [Handlers] (before the one of each handler), [Watchers] and [Traffic]; all are innermost, and
// guard what is read by other goroutines than the owner.
package sandbox
