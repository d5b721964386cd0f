// Package lens is the room of what is seen through the lens: clients of a server that is not ours, their requests, and
// the findings.
package lens

import "embed"

// Files are the script and the styles of the room.
//
//go:embed *.js *.css
var Files embed.FS
