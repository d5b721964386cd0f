package policy

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/book"
)

var update = flag.Bool("update", false, "write docs/MAP.md and docs/DIFFERENCES.md instead of comparing them")

func TestAppendicesAreFresh(t *testing.T) {
	repo, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{
		"MAP.md":         book.Map(repo.Tree),
		"DIFFERENCES.md": book.Differences(repo.Tree),
	} {
		file := filepath.Join(root, "docs", name)
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// A checkout on Windows may have changed the ends of lines.
		if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want) {
			t.Errorf("docs/%s is stale: run make generate and commit the result", name)
		}
	}
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
	if got, want := string(book.Map(repo.Tree)), `
## [01-storage](../chapters/01-storage)

[k8s.io/apiserver/pkg/storage/interfaces.go](https://github.com/kubernetes/kubernetes/blob/v1.37.2/staging/src/k8s.io/apiserver/pkg/storage/interfaces.go)

| ours | upstream |
|---|---|
| [~Store~](../chapters/01-storage/store.go) | ~Interface~ |

[k8s.io/apiserver/pkg/storage/cacher/watch_cache.go](https://github.com/kubernetes/kubernetes/blob/v1.37.2/staging/src/k8s.io/apiserver/pkg/storage/cacher/watch_cache.go)

| ours | upstream |
|---|---|
| [~Ring~](../chapters/01-storage/x.go) | ~(*watchCache).Add~ |
`; !strings.HasSuffix(strings.ReplaceAll(got, "`", "~"), want) {
		t.Errorf("got %s\nwant at its end %s", got, want)
	}
	if got, want := string(book.Differences(repo.Tree)), "- [`Ring`](../chapters/01-storage/x.go): no \\*lock\\* for `Ring.mu`, nor for a\\_b &lt;c>.\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant at its end %s", got, want)
	}
}
