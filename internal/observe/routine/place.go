package routine

import (
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Place names where a frame of a stack is: "cacher.(*Cacher).dispatchEvent" and "dispatch.go:42". Folders of chapters
// are numbered, packages are not.
func Place(frame runtime.Frame) (function, line string) {
	name := path.Base(strings.TrimSuffix(frame.Function, "-fm"))
	return strings.TrimLeft(name, "0123456789-"), filepath.Base(frame.File) + ":" + strconv.Itoa(frame.Line)
}
