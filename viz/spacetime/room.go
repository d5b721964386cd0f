// Package spacetime is the room of the second view of the same records, drawn over the stage: a line for each
// goroutine, an arrow for what they hand over.
package spacetime

import "embed"

// Files are the scripts and styles of the room.
//
//go:embed *.js *.css
var Files embed.FS
