// Package policy checks the house rules on which a reader relies. docs/CONTRIBUTING.md gives the reason for each.
//
// A rule reads the repository as text with structure; it neither builds nor runs anything. The tests apply all rules
// to this repository, and to small seeded faults, because a rule that cannot fail is worthless. When a rule is in the
// way, the code is usually wrong. When it is right, change the rule here, in the open, with the reason.
//
// The rules of general linters are in .golangci.yml. internal/text/book checks the book, and
// internal/check/compat/recipes the commands on its pages.
package policy
