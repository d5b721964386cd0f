// Package stage is the room of the drawing of the path of an event, with the picture at the cursor in it: stations,
// queues, the ring, what moves between them, and the sentence below.
package stage

import "embed"

// Files are the scripts and styles of the room.
//
//go:embed *.js *.css
var Files embed.FS
