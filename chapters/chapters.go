// Package chapters is the course: fifteen folders whose reading order, folder order and import order are one and the
// same. This file carries their prose and their sources into the program, so that the book shows the very code that is
// running, and lists them in order.
//
// There is no goroutine and no lock in this package.
package chapters

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
)

//go:embed */*.go */*.svg */README.md */labs/*.txtar
var files embed.FS

// FS returns the README.md with its drawings, the labs and the .go files of all chapters, tests included, by paths such
// as "06-cacher/dispatch.go".
func FS() fs.FS { return files }

// Chapter names one folder of the course.
type Chapter struct {
	Number  int    // 6
	Folder  string // "06-cacher"
	Package string // "cacher"
}

// folderName tells a chapter's folder from any other.
var folderName = regexp.MustCompile(`^([0-9]{2})-([a-z0-9]+)$`)

// List returns the chapters found at the top of fsys, in reading order.
func List(fsys fs.FS) ([]Chapter, error) {
	entries, err := fs.ReadDir(fsys, ".") // sorted by name, hence by number
	if err != nil {
		return nil, fmt.Errorf("list chapters: %w", err)
	}
	var list []Chapter
	for _, entry := range entries {
		if match := folderName.FindStringSubmatch(entry.Name()); match != nil && entry.IsDir() {
			number, _ := strconv.Atoi(match[1]) // two digits
			list = append(list, Chapter{Number: number, Folder: match[0], Package: match[2]})
		}
	}
	return list, nil
}
