// Package compat checks our claims with the real client-go and apiserver, the real kubectl, and a real browser. It is a
// module of its own, so that `go run ./cmd/viz` fetches and builds none of them.
//
//   - cmd/kubectl: the real kubectl, built from its own module; oldkubectl: one of 1.26, with a go.mod of its own.
//   - kubernetes: the go.mod of the real control plane's programs, which only full tests build.
//   - upstream_test.go: every "Upstream:" line leads to an existing declaration; constants_test.go: our numbers are
//     upstream's.
//   - sidebyside: our server half and client half compared with the real ones, in tests and benchmarks; the program
//     compared with the real client-go.
//   - kubectl: whole sessions, output by output, with both kubectls.
//   - program: starts programs for tests; clients: runs programs by other authors against ours and the real server.
//   - recipes: the debugger's recipes and VS Code's configurations in a real delve, and the commands of all documents.
//   - storm: the program under faults: watchers must lose no event, and reads and writes must be linearizable.
//   - e2e: the program as its users meet it; mutations: breaks the program in one place at a time; a test must fail.
//   - loops: draws the pictures of the stories' pages; snippets: the code of docs/SNIPPETS.md.
package compat
