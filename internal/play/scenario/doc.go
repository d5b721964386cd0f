// Package scenario plays stories on a running pipeline: incidents that people meet at work. A [Story] is data: one file
// in stories/, with its symptom and its beats. A [Beat] has a text, the steps that play it (send, change, turn, watch,
// await, …; see verbs.go) and the record at which it rests.
//
// A beat ends when its record is in the log. A pattern selects this record, in a live run and in the recording in
// internal/observe/takes. If the record does not come, the story ends with [Missing].
//
// A story writes only its own objects. Unless it needs a world of its own, it runs as a command of the
// [sandbox.Sandbox], which undoes the story's changes in every case.
//
//	env := &scenario.Env{Pipeline: p, Sandbox: box, Log: log, Probe: probe, Clock: clk}
//	seen, err := env.Play(ctx, "slow-watcher")
//
// # Concurrency
//
// The sandbox plays one story at a time, on a goroutine of its own. A story starts goroutines only for its streams,
// informers and reflectors, and for concurrent requests, and waits for them at its end.
package scenario
