// Package policy checks the house rules on which a reader relies. docs/CONTRIBUTING.md gives the reason for each.
//
// A rule reads the repository as text with structure; it neither builds nor runs anything. The tests apply all rules to
// this repository, and to small seeded faults, because a rule that cannot fail is worthless. When code breaks a rule,
// the code is usually wrong. If it is right, change the rule here, with the reason.
//
// The rules of general linters are in .golangci.yml. internal/text/book checks the book, and
// internal/check/compat/recipes the commands on its pages.
package policy
