// Package docs carries the documents of the whole into the program, as package chapters does with the course: the book
// shows them beside the chapters.
package docs

import (
	"embed"
	"io/fs"
)

//go:embed *.md
var files embed.FS

// Preview is a picture of the stage, for those who are sent a link.
//
//go:embed stage-light.png
var Preview []byte

// Film is ten seconds of the stage, for those who only look.
//
//go:embed film-light.png
var Film []byte

// FS returns the documents by their names, such as "WHERE.md".
func FS() fs.FS { return files }
