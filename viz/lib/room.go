// Package lib is the ground floor of the page's scripts: what all rooms use, and nothing that knows one of them. Every
// request and every stream of the page begins in api.js.
package lib

import "embed"

// Files are the scripts of the room.
//
//go:embed *.js
var Files embed.FS
