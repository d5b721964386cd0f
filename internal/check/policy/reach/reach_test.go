package reach

import (
	"os/exec"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// excused are what no program calls, by file and function ("" for all of a file), each with its reason.
var excused = map[string]string{
	"chapters/12-processor/handler.go FilteringResourceEventHandler": "a form of handler that controllers use, and " +
		"the chapter shows",
	"chapters/13-informer/handlers.go ShutDownEventHandler": "how a handler is removed for good, as the " +
		"chapter shows",
}

func TestEveryFunctionIsReachedByAProgram(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "tool", "-modfile=internal/check/tools/go.mod", "deadcode",
		"./cmd/...")
	command.Dir = "../../../.."
	out, err := command.CombinedOutput()
	require.True(t, err == nil, "%v\n%s", err, out)
	used := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		place, function, ok := strings.Cut(strings.TrimSpace(line), ": unreachable func: ")
		if !ok {
			continue // what go says while it fetches
		}
		file, _, _ := strings.Cut(place, ":")
		if reason := excuseOf(file+" "+function, used); reason == "" {
			t.Errorf("%s: no program calls %s: wire it or delete it", place, function)
		}
	}
	for excuse := range excused {
		assert.True(t, used[excuse], "%s is called: it needs no excuse", excuse)
	}
}

// excuseOf returns why a function may be unreachable, "" if it may not, and notes the excuse.
func excuseOf(function string, used map[string]bool) string {
	for excuse, reason := range excused {
		if strings.HasPrefix(function, excuse) {
			used[excuse] = true
			return reason
		}
	}
	return ""
}
