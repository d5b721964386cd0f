// Package policy checks the house rules on which a reader relies. docs/CONTRIBUTING.md gives the reason for each.
//
// A rule reads the repository's text and syntax. It neither builds nor runs the code. The tests apply the rules in
// rules_test.go to this repository, and to small seeded faults, because a rule that cannot fail is worthless. When code
// breaks a rule, the code is usually wrong. If the code is right, change the rule here and write down the reason.
//
// The rules of general linters are in .golangci.yml. internal/text/book checks the book, and
// internal/check/compat/recipes the commands on its pages.
package policy
