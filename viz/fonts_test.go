package viz

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestEveryCharacterHasAFace checks that the shipped faces have every character that the page and the book may show;
// the width of any other character would depend on the machine.
func TestEveryCharacterHasAFace(t *testing.T) {
	style := string(require.Value(rooms.ReadFile("fonts/fonts.css"))(t))
	has, size := map[rune]bool{'\n': true, '\t': true, '\r': true}, 0
	for _, each := range regexp.MustCompile(`U\+([0-9A-F]+)(?:-([0-9A-F]+))?`).FindAllStringSubmatch(style, -1) {
		from := require.Value(strconv.ParseInt(each[1], 16, 32))(t)
		to := from
		if each[2] != "" {
			to = require.Value(strconv.ParseInt(each[2], 16, 32))(t)
		}
		for char := from; char <= to; char++ {
			has[rune(char)] = true
		}
	}
	ranges := map[string]string{}
	for _, each := range regexp.MustCompile(`(?s)family: (.+?);.+?url\("(.+?)"\).+?range: (.+?);`).
		FindAllStringSubmatch(style, -1) {
		size += len(require.Value(readAsset("fonts/" + each[2]))(t))
		// A browser does not look in a family's other faces for a missing character, so all need the same characters.
		assert.Equal(t, cmp.Or(ranges[each[1]], each[3]), each[3], "the characters of %s", each[2])
		ranges[each[1]] = each[3]
	}
	assert.True(t, 50_000 < size && size <= 150_000, "the faces have %d bytes", size)
	tree, kinds := os.DirFS(".."), []string{".go", ".templ", ".js", ".css", ".svg", ".md", ".yaml", ".txt", ".txtar"}
	files := 0
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := len(name) > 1 && strings.HasPrefix(path.Base(name), ".") || name == "bin" || name == "site"
		switch test := strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "chapters/"); {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || name == "internal/check"):
			return fs.SkipDir
		case entry.IsDir() || test || !slices.Contains(kinds, path.Ext(name)):
			return nil
		}
		files++
		for i, line := range strings.Split(string(require.Value(fs.ReadFile(tree, name))(t)), "\n") {
			lacking := strings.Map(func(char rune) rune {
				if has[char] {
					return -1
				}
				return char
			}, line)
			assert.True(t, lacking == "", "%s:%d: no face of viz/fonts has %q: write another character, or name it in "+
				"fonts.css and run viz/fonts/make.sh", name, i+1, lacking)
		}
		return nil
	}))
	assert.True(t, files > 500, "read %d files", files)
}
