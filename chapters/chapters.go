// Package chapters is the course: fifteen folders whose reading order, folder order and import order are one and the
// same. This file carries their prose and their sources into the program, so that the book shows the very code that is
// running, and lists them in order.
//
// There is no goroutine and no lock in this package.
package chapters

import (
	"embed"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
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
	Title   string // "Cacher": the first heading of README.md without its number; the package name if there is none
	Package string // "cacher"; "" if the folder holds no Go file
}

// folderName tells a chapter's folder from any other.
var folderName = regexp.MustCompile(`^([0-9]{2})-[a-z0-9]+$`)

// List returns the chapters found at the top of fsys, in reading order.
func List(fsys fs.FS) ([]Chapter, error) {
	entries, err := fs.ReadDir(fsys, ".") // sorted by name, hence by number
	if err != nil {
		return nil, fmt.Errorf("list chapters: %w", err)
	}
	var list []Chapter
	for _, entry := range entries {
		match := folderName.FindStringSubmatch(entry.Name())
		if match == nil || !entry.IsDir() {
			continue
		}
		chapter := Chapter{Folder: entry.Name()}
		chapter.Number, _ = strconv.Atoi(match[1]) // two digits
		chapter.Package, err = packageName(fsys, chapter.Folder)
		if err != nil {
			return nil, err
		}
		chapter.Title = title(fsys, chapter.Folder)
		if chapter.Title == "" {
			chapter.Title = chapter.Package
		}
		list = append(list, chapter)
	}
	return list, nil
}

// packageName reads the package clause of the first Go file in folder that is not a test.
func packageName(fsys fs.FS, folder string) (string, error) {
	names, err := fs.Glob(fsys, path.Join(folder, "*.go"))
	if err != nil {
		return "", fmt.Errorf("list %s: %w", folder, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly)
		if err != nil {
			return "", fmt.Errorf("parse %s: %w", name, err)
		}
		return file.Name.Name, nil
	}
	return "", nil
}

// title returns the first heading of the folder's README.md, "# 06 · Cacher", without "06 · "; "" if there is none.
func title(fsys fs.FS, folder string) string {
	readme, err := fs.ReadFile(fsys, path.Join(folder, "README.md"))
	if err != nil {
		return "" // a chapter without prose is still listed; the policy tests complain about it
	}
	for line := range strings.Lines(string(readme)) {
		heading, ok := strings.CutPrefix(line, "# ")
		if !ok {
			continue
		}
		if _, words, numbered := strings.Cut(heading, "·"); numbered {
			heading = words
		}
		return strings.TrimSpace(heading)
	}
	return ""
}
