package viz

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestEveryExportIsImported: what a script exports, another one imports, or a test of the scripts asks for.
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
				"%s exports %s, which no script imports",
				file, name[1])
		}
	}
	assert.True(t, n > 100, "found only %d exports", n)
}
