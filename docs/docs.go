// Package docs embeds the documents of this folder, as package chapters embeds the chapters: the book shows both.
package docs

import (
	"embed"
	"io/fs"
)

//go:embed *.md
var files embed.FS

// Preview is a PNG of the light stage, for link previews.
//
//go:embed stage-light.png
var Preview []byte

// Film is an animated PNG of 17 seconds on the light stage, for visitors who do not start the program.
//
//go:embed film-light.png
var Film []byte

// FS returns the documents, without their pictures, by name, such as "WHERE.md".
func FS() fs.FS { return files }
