// Package e2e tests the program as its users meet it: cmd/viz as a process of its own, with the real kubectl, a real
// etcd, a real client-go informer and a real browser. The tests use the program's contracts only: flags, exit codes,
// the ready line, URLs, and the names in the page.
//
// The program and kubectl are built once and kept in bin/compat, so that a second run only links what changed.
// Without Chromium these tests fail; none of them is ever skipped.
package e2e
