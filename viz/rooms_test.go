package viz

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/evanw/esbuild/pkg/api"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// floors are the rooms with scripts, from the ground up. A script may import only from its own room and those below.
var floors = []string{"lib", "log", "dom", "stage", "timeline", "inspector", "spacetime", "lens", "console", "book",
	"stories", "frame"}

// reaching are the calls by which a script can send a request.
var reaching = []string{"fetch(", "EventSource(", "XMLHttpRequest(", "WebSocket(", "sendBeacon(", "importScripts("}

// assets returns the names of the page's scripts, styles, pictures and fonts.
func assets() []string {
	all := []string{"stage/tall.css"}
	for _, pattern := range []string{"*/*.js", "*/*.css", "*/*.svg", "*/*.woff2"} {
		found, _ := fs.Glob(rooms, pattern) // the pattern is valid
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasPrefix(name, "export/") })
}

// scripts returns the page's scripts by "ROOM/NAME", without their comments.
func scripts() map[string]string {
	all := map[string]string{}
	for _, name := range assets() {
		if path.Ext(name) == ".js" {
			body, _ := readAsset(name) // assets lists it, so it exists
			all[name] = bare(string(body))
		}
	}
	return all
}

// sources returns the source of all scripts by "ROOM/NAME", including those that replace the program.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range require.Value(filepath.Glob("*/*.js"))(t) {
		all[filepath.ToSlash(name)] = string(require.Value(os.ReadFile(name))(t))
	}
	require.True(t, len(all) > len(scripts()), "%d scripts", len(all))
	return all
}

// bare returns a script without its comments.
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

// TestTheTableOfRoomsIsWhole: docs/ARCHITECTURE.md lists each folder of the page, those with scripts in their order.
func TestTheTableOfRoomsIsWhole(t *testing.T) {
	text := string(require.Value(os.ReadFile("../docs/ARCHITECTURE.md"))(t))
	_, table, _ := strings.Cut(text, "\n## Rooms of the page\n")
	row := func(room string) int { return strings.Index(table, "["+room+"](../viz/"+room+")") }
	for i, room := range floors[1:] {
		assert.True(t, row(room) > row(floors[i]), "%s is not listed below %s", room, floors[i])
	}
	for _, entry := range require.Value(os.ReadDir("."))(t) {
		assert.True(t, !entry.IsDir() || row(entry.Name()) >= 0, "%s is not listed", entry.Name())
	}
}

// TestOneModuleReachesTheProgram allows only lib/api.js to send requests, so that a page whose program has no port
// needs only another wire. It also reads export/static.js, the wire of pages without a program.
func TestOneModuleReachesTheProgram(t *testing.T) {
	for name, source := range sources(t) {
		code := bare(source)
		for _, call := range reaching {
			assert.True(t, !strings.Contains(code, call) || name == "lib/api.js",
				"%s calls %s: only lib/api.js asks the program", name, strings.TrimSuffix(call, "("))
		}
	}
}

// TestEveryExportIsImported checks that another script, or a test of the scripts, uses each export.
func TestEveryExportIsImported(t *testing.T) {
	exported := regexp.MustCompile(`export (?:async )?(?:function\*?|const|class) (\w+)`)
	imported := regexp.MustCompile(`import ?\{([^}]*)\} ?from`)
	asked := ""
	for _, name := range require.Value(filepath.Glob("*_test.go"))(t) {
		asked += string(require.Value(os.ReadFile(name))(t))
	}
	all, known := scripts(), map[string]bool{}
	for _, text := range all {
		for _, names := range imported.FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(names[1], ",") {
				name, _, _ = strings.Cut(strings.TrimSpace(name), " as ")
				known[name] = true
			}
		}
	}
	n := 0
	for file, text := range all {
		for _, name := range exported.FindAllStringSubmatch(text, -1) {
			n++
			assert.True(t, known[name[1]] || strings.Contains(asked, "."+name[1]),
				"%s exports %s, which no script imports", file, name[1])
		}
	}
	assert.True(t, n > 100, "found only %d exports", n)
}

// placed matches literal coordinates in a template or a script: a place, a pair, a path, an attribute.
var placed = regexp.MustCompile(`\b(?:At|Rect|moved)\(-?\d+(?:\.\d+)?, -?\d+(?:\.\d+)?|\[-?\d+, -?\d+[\],]|` +
	`["` + "`" + `][Mm]-?\d+ -?\d+[^"` + "`" + `]*|(?:c?[xy][12]?|d)="M?-?\d+[^"]*"|translate\(-?\d+ -?\d+`)

// TestPlacesAreInTheLayout forbids numbers of 40 or more in such literals of scripts and templates: they are places on
// the stage. Smaller numbers are shapes around a point.
func TestPlacesAreInTheLayout(t *testing.T) {
	number := regexp.MustCompile(`\d+`)
	literals := func(text string) (found []string) {
		for _, each := range placed.FindAllString(text, -1) {
			if slices.ContainsFunc(number.FindAllString(each, -1), func(n string) bool {
				value, _ := strconv.Atoi(n) // cannot fail: only digits
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

// TestAFrameWithoutStorageIsAPage checks that the first script runs to its end in a frame whose storage throws.
func TestAFrameWithoutStorageIsAPage(t *testing.T) {
	source := string(require.Value(readAsset("frame/theme.js"))(t))
	vm := goja.New()
	script := `var window = globalThis, document = { documentElement: { dataset: { tours: "true" } } }, location = {},
		refuse = () => { throw new Error("SecurityError"); };
		var URLSearchParams = function () { this.has = () => false; this.get = () => null; };
		Object.defineProperty(window, "localStorage", { get: refuse, configurable: true });` + source + `;
		localStorage.setItem("theme", "dark");
		document.documentElement.dataset.first + " " + localStorage.getItem("theme")`
	assert.Equal(t, "asks null", require.Value(vm.RunString(script))(t).String())
}
