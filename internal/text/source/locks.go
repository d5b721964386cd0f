package source

import (
	"go/ast"
	"go/token"
	"math"
	"regexp"
	"slices"
	"strings"
)

var (
	lockCall   = regexp.MustCompile(`\.(R?Lock|lock)\(\)$`)
	unlockCall = regexp.MustCompile(`^[\w.]+\.R?Unlock\(\)$`)
)

// holdsLock tells from the text of fn alone whether a lock is held at pos: fn's name ends in Locked, or the last line
// before pos that takes or gives back a lock takes one. Only lines count that are indented no deeper than those behind
// them: what stands deeper is in a branch that pos is not in. A deferred Unlock gives back nothing before the end, and
// what is around a function literal is not its own.
//
// This is reading, not proof. It is exact for code that keeps to the house rules, where a lock is held for a whole
// function or for a straight run of lines.
func (t *Tree) holdsLock(file *File, fn *ast.FuncDecl, pos token.Pos) bool {
	if strings.HasSuffix(fn.Name.Name, "Locked") {
		return true
	}
	before := strings.Split(string(file.Src[t.lineStart(file, fn.Pos()):t.lineEnd(file, pos)]), "\n")
	depth := math.MaxInt
	for _, line := range slices.Backward(before) {
		code := strings.TrimLeft(line, "\t")
		if code == "" || len(line)-len(code) > depth {
			continue
		}
		depth = len(line) - len(code)
		switch {
		case strings.HasSuffix(code, "{") && strings.Contains(code, "func("), unlockCall.MatchString(code):
			return false
		case lockCall.MatchString(code):
			return true
		}
	}
	return false
}
