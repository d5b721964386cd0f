package lab

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
)

// tinyCopy is a working copy with one package, which has one test with the given body.
func tinyCopy(t *testing.T, body string) (string, Lab) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module tiny\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "chapters", "01-storage", "x_test.go"),
		"package storage\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {\n"+body+"\n}\n")
	return dir, Lab{ID: "tiny", Kind: Find, Chapter: "01-storage", Promise: "X holds.", Tests: []string{"TestX"}}
}

// TestACheckSaysWhatItFound: a check that has not finished is neither a failure nor a success.
func TestACheckSaysWhatItFound(t *testing.T) {
	for name, each := range map[string]struct {
		body   string
		solved bool
		want   []string
	}{
		"the promise holds": {"", true, []string{"passed: go test ./chapters/01-storage -run 'TestX'"}},
		"it does not": {`t.Error("got 1, want 2")`, false, []string{"Not yet. The promise that does not " +
			"hold: X holds.", "TestX says:", "got 1, want 2"}},
		"it panics": {`panic("send on closed channel")`, false, []string{"Not yet.",
			"send on closed channel"}},
		"it panics elsewhere": {`go func() { panic("send on closed channel") }(); select {}`, false,
			[]string{"Not yet.", "send on closed channel"}},
		"only a part of it": {`t.Run("b", func(t *testing.T) { t.Error("no b") })`, false, []string{"TestX/b says:",
			"no b"}},
		"it does not compile": {`undefined()`, false, []string{"It does not compile yet.", "undefined: undefined"}},
		"it has not finished": {`<-make(chan int)`, false,
			[]string{"The check has not finished: TestX still runs after 1s.", "run it again"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, lab := tinyCopy(t, each.body)
			var progress strings.Builder
			verdict, err := checking{limit: time.Second, progress: &progress}.check(t.Context(), dir, lab)
			says := strings.Join(verdict.Says, "\n")
			assert.True(t, err == nil && verdict.Solved == each.solved,
				"solved %v, %v; want %v", verdict.Solved, err, each.solved)
			for _, want := range each.want {
				assert.True(t, strings.Contains(says, want), "it does not say %q:\n%s", want, says)
			}
			assert.True(t, !strings.Contains(says, "goroutine ") && len(verdict.Says) <= maxLines+5,
				"want a few lines and no stacks:\n%s", says)
			got := progress.String()
			assert.Equal(t, got, "building the tests of chapters/01-storage …\n", "it says %q while it works", got)
		})
	}
}
