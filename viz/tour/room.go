// Package tour is the room of the tour: one change is followed from kubectl to a controller, station by station, on the
// running program or on a recording.
package tour

import "embed"

// Files are the scripts and styles of the room.
//
//go:embed *.js *.css
var Files embed.FS

// Take is the recording on which the tour can be given without a program.
const Take = "tour"
