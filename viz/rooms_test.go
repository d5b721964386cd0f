package viz

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// floors are the rooms of the page's scripts from the ground up. A script imports from its own room and from rooms
// below it.
var floors = []string{"lib", "log", "dom", "stage", "timeline", "inspector", "spacetime", "lens", "console", "book",
	"stories", "tour", "frame"}

var (
	imports  = regexp.MustCompile(`(?m)^import \{[^}]*\} from "([^"]+)";`)
	comments = regexp.MustCompile(`(?m)//.*$`)
	reaching = regexp.MustCompile(`\b(?:fetch|EventSource|XMLHttpRequest|WebSocket|sendBeacon|importScripts)\(`)
)

// assets returns the names of the page's scripts, styles and pictures.
func assets() []string {
	all := []string{"stage/tall.css"}
	for _, pattern := range []string{"*/*.js", "*/*.css", "*/*.svg"} {
		found, _ := fs.Glob(rooms, pattern) // it is well formed
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasPrefix(name, "export/") })
}

// scripts returns the page's scripts by "ROOM/NAME", without their comments.
func scripts() map[string]string {
	all := map[string]string{}
	for _, name := range assets() {
		if path.Ext(name) == ".js" {
			body, _ := readAsset(name) // it is there
			all[name] = comments.ReplaceAllString(string(body), "")
		}
	}
	return all
}

func TestScriptsImportFromRoomsBelowTheirOwn(t *testing.T) {
	n := 0
	for name, source := range scripts() {
		room := slices.Index(floors, path.Dir(name))
		assert.True(t, room >= 0, "%s: its room has no floor", name)
		for _, match := range imports.FindAllStringSubmatch(source, -1) {
			n++
			target := path.Join(path.Dir(name), match[1])
			below := slices.Index(floors, path.Dir(target))
			assert.True(t, below >= 0 && below <= room, "%s imports %s, which is on a floor above", name, target)
		}
	}
	assert.True(t, n >= 100, "found only %d imports", n)
}

// TestOneModuleReachesTheProgram: where the program is not behind a port, one module changes. What stands in for the
// program in an export is no room, and asks through that module, too.
func TestOneModuleReachesTheProgram(t *testing.T) {
	all, err := filepath.Glob("*/*.js")
	require.True(t, err == nil && len(all) >= len(scripts()), "%d files: %v", len(all), err)
	for _, name := range all {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		code := comments.ReplaceAllString(string(source), "")
		if found := reaching.FindString(code); found != "" && filepath.ToSlash(name) != "lib/api.js" {
			t.Errorf("%s calls %s: only lib/api.js asks the program", name, strings.TrimSuffix(found, "("))
		}
	}
}
