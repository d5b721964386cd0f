package lab

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/text/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAStepForEachChapter checks that the path has a step for each chapter from 02 to 14, and one for the reader's own
// controller. Each step has a script that compares something.
func TestAStepForEachChapter(t *testing.T) {
	steps := Steps()
	require.True(t, len(steps) == 14, "%d steps", len(steps))
	for i, l := range steps {
		compares := slices.ContainsFunc(l.Script, func(a Action) bool { return a.What != "" })
		chapter := fmt.Sprintf("%02d-", min(i+2, 14))
		assert.True(t, l.Step == i+1 && strings.HasPrefix(l.Chapter, chapter) && l.Kind == Build && l.Station != "" &&
			compares, "step %d is %s of %s", l.Step, l.ID, l.Chapter)
	}
}

// TestTheWorkingCopyHoldsTheStatesOfItsSteps checks the state of each step, the reader's and our version of it, and the
// list of stations that the reader has built.
func TestTheWorkingCopyHoldsTheStatesOfItsSteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "path")
	require.NoError(t, StartPath(root, dir))
	assert.True(t, IsPath(dir) && !IsPath(root), "which of them is a working copy")
	again := StartPath(root, dir)
	assert.True(t, again != nil && strings.Contains(again.Error(), "not empty"), "a second start: %v", again)
	table, ring := Steps()[3], Steps()[2]
	theirs, ours, err := table.Both(dir)
	require.NoError(t, err)
	first := func(decl *source.Decl) bool { return strings.Contains(decl.Src, "the first try") }
	assert.True(t, first(theirs) && !first(ours), "the reader's %s\nours %s", theirs.Src, ours.Src)
	for _, each := range []struct {
		state        func() error
		says, marked string
	}{
		{func() error { return nil }, "open open", ""},
		{func() error { return table.setState(dir, Yours) }, "open yours", "watcher\n"},
		{func() error { return ring.setState(dir, Yours) }, "yours yours", "ring\nwatcher\n"},
		{func() error { return table.Pass(dir) }, "yours passed", "ring\n"},
	} {
		require.NoError(t, each.state())
		assert.Equal(t, each.says, ring.State(dir)+" "+table.State(dir))
		assert.Equal(t, each.marked, string(require.Value(os.ReadFile(filepath.Join(dir, yoursFile)))(t)))
	}
	theirs, ours, err = table.Both(dir)
	assert.True(t, err == nil && theirs.Src == ours.Src, "after pass: %v", err)
	text := string(require.Value(os.ReadFile(filepath.Join(dir, ring.dir(), "labs", ring.ID+".txtar")))(t))
	assert.True(t, strings.HasSuffix(text, "-- body: history.appendLocked --\n"), "the copy has the answer: %s", text)
}

// TestARequestIsPrintedAsItIsSent compares the printed request with the sent one: readers copy printed requests.
func TestARequestIsPrintedAsItIsSent(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent = r.Method + " " + r.URL.Path + " " + string(require.Value(io.ReadAll(r.Body))(t))
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var out strings.Builder
	do := "POST /api/v1/pods " + strings.Repeat("x", 200)
	assert.Equal(t, "", (&player{url: server.URL, progress: &out}).play(t.Context(), []Action{{Do: do}}))
	assert.Equal(t, "  "+sent+"\n", out.String())
	assert.Equal(t, do, sent)
}
