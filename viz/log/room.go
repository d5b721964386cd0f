// Package log is what the page knows, without a place on the screen: the feed from the server, recordings from files,
// and the fold that makes a picture of both. fold.js is package fold once more.
package log

import "embed"

// Files are the scripts of the room.
//
//go:embed *.js
var Files embed.FS
