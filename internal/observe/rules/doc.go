// Package rules checks ten promises of the whole machinery ([All]), during a run or afterwards.
//
// Checking them needs only the log, so the same checkers serve a test, a run with faults, a recording, and the page. A
// [Checker] takes records in the order of the log, as a fold does, and returns each [Breach]: the rule, the record that
// broke it, and a sentence about the fault.
//
//	checker := rules.New()
//	breaches := checker.Apply(records)
//
// A [Monitor] applies a checker to a log while the log grows.
//
// A log cannot show whether a watcher has received all the events that it should, because it does not record whether a
// selector would have matched. A test keeps a history of its own writes instead, and compares it with the watcher's
// events (chapters/06-cacher/history_test.go).
//
// Among many watchers most are quiet: the log leaves out their routine moments. Rules 2, 5 and 6 compare each moment of
// a watcher with those before it, and follow only watchers that were never quiet ([Rule] Loud). The other rules apply
// to any part of a watcher's records, so they follow all watchers.
//
// A checker reports only breaches that the log proves. Two goroutines that meet at a channel may report in any order,
// so a rule that compares their records pairs the k-th send with the k-th receive. After a gap a checker begins again.
//
// # Concurrency
//
// A [Monitor] is safe for concurrent use; a [Checker] belongs to one goroutine. Nothing here starts goroutines. A
// checker forgets a watcher soon after its end, and remembers at most [maxRemembered] objects or versions of each.
package rules
