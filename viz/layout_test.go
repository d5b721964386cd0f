package viz

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// placed are the forms in which a template or a script would say by itself where something is: a place, a pair, a
// path, an attribute.
var placed = regexp.MustCompile(`\b(?:At|Rect|moved)\(-?\d+(?:\.\d+)?, -?\d+(?:\.\d+)?|\[-?\d+, -?\d+[\],]|` +
	`["` + "`" + `][Mm]-?\d+ -?\d+[^"` + "`" + `]*|(?:c?[xy][12]?|d)="M?-?\d+[^"]*"|translate\(-?\d+ -?\d+`)

// TestPlacesAreInTheLayout: a number of 40 and more in one of those forms is a place on the stage; smaller ones are
// shapes about a point.
func TestPlacesAreInTheLayout(t *testing.T) {
	number := regexp.MustCompile(`\d+`)
	literals := func(text string) (found []string) {
		for _, each := range placed.FindAllString(text, -1) {
			if slices.ContainsFunc(number.FindAllString(each, -1), func(n string) bool {
				value, _ := strconv.Atoi(n) // digits
				return value >= 40
			}) {
				found = append(found, each)
			}
		}
		return found
	}
	for _, wrong := range []string{"{ At(100, 96)... }", "place([209, 208])", `put(path, "d", "M970 236H1280")`,
		`<path d="M168 84 V224">`, `<circle cx="209">`, "translate(961 266)"} {
		assert.Equal(t, 1, len(literals(wrong)), "found in %s", wrong)
	}
	for _, pattern := range []string{"stage/*.templ", "stage/*.js", "spacetime/*.templ", "spacetime/*.js"} {
		for _, name := range require.Value(filepath.Glob(pattern))(t) {
			text := require.Value(os.ReadFile(name))(t)
			assert.EqualSlices(t, nil, literals(string(text)), "%s has places of its own: stage/layout.go has them",
				name)
		}
	}
}
