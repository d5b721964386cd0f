// Package recipes runs the debugger's recipes of docs/recipes with a real delve.
package recipes
