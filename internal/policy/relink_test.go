package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLinksToSymbolsAreFresh(t *testing.T) {
	repo, err := open()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		now := strings.ReplaceAll(string(text), "\r\n", "\n")
		name := "docs/" + filepath.Base(file)
		want, faults := relink(repo, name, now)
		for _, each := range faults {
			t.Error(each)
		}
		if now == want {
			continue
		}
		if !*update {
			t.Errorf("%s links to a symbol where it was declared before: run make generate and commit the result", name)
			continue
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALinkFollowsItsSymbol(t *testing.T) {
	repo := seeded(t, nil)
	got, faults := relink(repo, "docs/WHERE.md", "Who? [Store](../chapters/01-storage/old.go), [Gone](../chapters/01-storage/store.go)\n")
	if want := "Who? [Store](../chapters/01-storage/store.go), [Gone](../chapters/01-storage/store.go)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(faults) != 1 || !strings.Contains(faults[0].String(), "Gone is not declared") {
		t.Errorf("faults: got %v, want one, of Gone", faults)
	}
}
