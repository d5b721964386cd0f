// Package policy holds the rules of the house that a reader relies on, as data and as checks, so that they are kept
// without anyone having to remember them. docs/STYLE.md says why each is there.
//
// A [Rule] reads the repository as text with structure and returns [Fault] values; it neither builds nor runs anything.
// The tests apply every rule to this repository, and every rule to a small seeded fault, because a rule that cannot
// fail holds nothing.
//
// When a rule is in the way, the code is usually wrong. When it is not, change the rule here, in the open, with the
// reason; do not work around it.
//
//   - rules_test.go: [Repo], [Rule], and the table of rules.
//   - floors_rule_test.go: who may import whom.
//   - names_rule_test.go, docs_rule_test.go: Upstream lines, excerpts and what docs/ points at resolve; every reader's
//     shell understands what a page says to type.
//   - moments_rule_test.go: a probe point is one source line.
//   - goroutines_rule_test.go: goroutines of chapters have names, and tests look for those that are left.
//
// What a general linter can hold is in .golangci.yml: modules, the wall clock, skipped tests, open ends.
//
// There is no goroutine and no lock in this package.
package policy
