// Package recipes runs the debugger's recipes of docs/debugger with a real delve, and the commands of all documents.
package recipes
