package viz

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// floors are the rooms of the page's scripts from the ground up. A script imports from its own room and from rooms
// below it.
var floors = []string{"lib", "log", "dom", "stage", "timeline", "inspector", "spacetime", "lens", "console", "book",
	"stories", "frame"}

// reaching are the calls by which a script reaches what is beyond the page.
var reaching = []string{"fetch(", "EventSource(", "XMLHttpRequest(", "WebSocket(", "sendBeacon(", "importScripts("}

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
			all[name] = bare(string(body))
		}
	}
	return all
}

// bare is a script without its comments.
func bare(source string) string {
	return string(api.Transform(source, api.TransformOptions{MinifyWhitespace: true, Charset: api.CharsetUTF8}).Code)
}

func TestScriptsImportFromRoomsBelowTheirOwn(t *testing.T) {
	entries := slices.Sorted(maps.Keys(scripts()))
	built := api.Build(api.BuildOptions{EntryPoints: entries, Bundle: true, Metafile: true, Outdir: ".",
		Format: api.FormatESModule})
	require.True(t, len(built.Errors) == 0, "%v", built.Errors)
	var read struct {
		Inputs map[string]struct{ Imports []struct{ Path string } }
	}
	require.NoError(t, json.Unmarshal([]byte(built.Metafile), &read))
	n := 0
	for name, input := range read.Inputs {
		room := slices.Index(floors, path.Dir(name))
		assert.True(t, room >= 0, "%s: its room has no floor", name)
		for _, imported := range input.Imports {
			n++
			below := slices.Index(floors, path.Dir(imported.Path))
			assert.True(t, below >= 0 && below <= room, "%s imports %s, which is on a floor above", name, imported.Path)
		}
	}
	assert.True(t, n >= 100, "found only %d imports", n)
}

// TestOneModuleReachesTheProgram: where the program is not behind a port, one module changes. What stands in for
// the program in an export is no room, and asks through that module, too.
func TestOneModuleReachesTheProgram(t *testing.T) {
	all, err := filepath.Glob("*/*.js")
	require.True(t, err == nil && len(all) >= len(scripts()), "%d files: %v", len(all), err)
	for _, name := range all {
		source := require.Value(os.ReadFile(name))(t)
		code := bare(string(source))
		for _, call := range reaching {
			assert.True(t, !strings.Contains(code, call) || filepath.ToSlash(name) == "lib/api.js",
				"%s calls %s: only lib/api.js asks the program", name, strings.TrimSuffix(call, "("))
		}
	}
}
