// Package timeline is the room of where we are in the log and how to move in it: the timeline, the table of records,
// the biography of what is followed, and the held world.
package timeline

import "embed"

// Files are the scripts and styles of the room.
//
//go:embed *.js *.css
var Files embed.FS
