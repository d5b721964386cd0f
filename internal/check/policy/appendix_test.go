package policy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/play/lab"
)

var update = flag.Bool("update", false, "write what is generated from the sources (docs/DIFFERENCES.md, "+
	"docs/LABS.md, docs/HANDOUT.md) instead of comparing it")

func TestAppendicesAreFresh(t *testing.T) {
	repo, err := open()
	require.NoError(t, err)
	handout, err := handout()
	require.NoError(t, err)
	for name, want := range map[string][]byte{
		"HANDOUT.md":     handout,
		"DIFFERENCES.md": differencesPage(repo.Tree),
		"LABS.md":        labsPage(),
	} {
		file := filepath.Join(root, "docs", name)
		if *update {
			require.NoError(t, os.WriteFile(file, want, 0o644))
			continue
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		// A checkout on Windows may have changed the ends of lines.
		assert.True(t, bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want),
			"docs/%s is stale: run make generate and commit the result", name)
	}
}

// labsPage is the list of the labs, as Markdown.
func labsPage() []byte {
	var page bytes.Buffer
	page.WriteString(`# Labs

<!-- Generated from chapters/*/labs: go test ./internal/check/policy -run Fresh -update -->

A lab is an exercise on a working copy of these sources, and needs no network. In *find it* something is broken: you get
the symptom, as a user would report it, and mend the cause. In *build it* the heart of a station is taken out: you write
it. In *predict it* you answer a question and look the answer up in a recording.

~~~console TestALabIsStartedCheckedHintedAndSolved
$ go run ./cmd/lab                     # lists the labs
$ go run ./cmd/lab start neighbours    # writes a working copy into .lab/neighbours, and says what is wrong in it
$ cd .lab/neighbours
$ go run ./cmd/viz                     # shows it on the stage with the lab and what the last check found
$ go run ./cmd/lab hint neighbours     # one hint more at each call
$ go run ./cmd/lab check neighbours    # is it solved? If not: which promise does not hold, and what the test says
$ go run ./cmd/lab solution neighbours # the difference to the present sources
~~~

Stars say how hard a lab is, minutes how long it takes at a first try. Every chapter's README is the reading for its
labs. On the page, the gallery of stories (Y) has the same list.
`)
	chapter := ""
	for _, each := range lab.All() {
		if each.Chapter != chapter {
			chapter = each.Chapter
			fmt.Fprintf(&page,
				"\n## %s\n\n[The chapter](../chapters/%s/README.md)\n\n| lab | | | symptom, or question "+
					"|\n|---|---|---|---|\n", chapter, chapter)
		}
		text := each.Symptom + each.Ask // one of the two
		fmt.Fprintf(&page, "| %s | %s %s | %d min | **%s.** %s Read *%s*. |\n", "`"+each.ID+"`", each.Kind,
			strings.Repeat("★", each.Stars), each.Minutes,
			strings.TrimRight(each.Title, ".?"), text, each.Section)
	}
	return bytes.ReplaceAll(page.Bytes(), []byte("~~~"), []byte("```"))
}

func TestAppendicesSayWhatTheSourcesSay(t *testing.T) {
	repo := seeded(t, map[string]string{"chapters/01-storage/x.go": `package storage

// Ring is round.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).Add
// Differs: no *lock* for [Ring.mu],
// nor for a_b <c>.
type Ring struct{}
`})
	if got, want := string(differencesPage(repo.Tree)), "- [`Ring`](../chapters/01-storage/x.go): no \\*lock\\* for "+
		"`Ring.mu`, nor for a\\_b &lt;c>.\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant at its end %s", got, want)
	}
}
