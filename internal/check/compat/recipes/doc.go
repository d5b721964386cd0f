// Package recipes runs the debugger's recipes of docs/debugger with a real delve.
package recipes
