// Package rules checks the promises that the whole machinery rests on, while it runs or afterwards.
//
// There are ten of them ([All]). Each is checked on the log of moments alone, so the same checkers serve a test, a run
// with faults, a recording, and the page. A [Checker] is fed records in the order of the log, as a fold is, and answers
// with each [Breach] it finds: the rule, the record that broke it, and what is wrong.
//
//	checker := rules.New()
//	breaches := checker.Apply(records)
//
// A [Monitor] does that on a log which grows, for as long as it does.
//
// What a log cannot show is whether a watcher has seen everything that it should, because the log does not say what
// a selector would have matched. For that a test that writes keeps a history, and compares it with what a watcher saw
// (internal/observe/rules/history).
//
// Of many watchers most are quiet: their routine moments are counted, not written down. Rules 2, 5 and 6 compare each
// moment of a watcher with those before it, and follow only watchers that were never quiet ([Rule] Loud). The others
// hold of any part of what a watcher reports, so they follow all.
//
// A checker accuses only when it is sure. Two goroutines that meet at a channel may write their records down in either
// order; where a rule compares what two of them say, it pairs the k-th send with the k-th receive. After a gap in the
// log it knows nothing and begins again.
//
// # Concurrency
//
// A [Monitor] may be used from any goroutine; nothing else may, and nothing starts goroutines. What a checker remembers
// is bounded: by the watchers that are there now, and by [maxRemembered] objects or versions of each.
package rules
