// Package recipes runs the debugger's recipes of docs/debugger with a real delve.
//
// Change: it checks pages, so what it reads (README.md, docs, chapters, docs/debugger, testdata/*.patch for the guides
// of docs/CONTRIBUTING.md) changes with them, not with it.
package recipes
