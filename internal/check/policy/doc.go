// Package policy holds the rules of the house that a reader relies on. docs/CONTRIBUTING.md says why each is there.
//
// A rule reads the repository as text with structure; it neither builds nor runs anything. The tests apply all rules
// to this repository, and to small seeded faults, because a rule that cannot fail holds nothing. When a rule is in the
// way, the code is usually wrong. When it is not, change the rule here, in the open, with the reason.
//
//   - rules_test.go: who may import whom, the form of Upstream and Differs lines, goroutines, contexts in bubbles.
//   - pages_test.go: what docs/ points at exists.
//   - points_test.go: a probe point is one source line.
//   - editors_test.go: the configurations of editors follow from the debugger's recipes.
//
// What a general linter can hold is in .golangci.yml. What is wrong inside the book, internal/text/book finds, and what
// a page says to type, internal/check/compat/recipes.
package policy
