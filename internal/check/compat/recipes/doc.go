// Package recipes runs docs/debugger's recipes and launch.json with a real delve, and the commands in all documents.
package recipes
