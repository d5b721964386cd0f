package policy

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// texts returns the files that match, by name, and those that cannot be read.
func (r *Repo) texts(patterns ...string) (map[string]string, []Fault) {
	var faults []Fault
	texts := map[string]string{}
	for _, pattern := range patterns {
		names, _ := fs.Glob(r.FS, pattern) // the patterns are well formed
		for _, name := range names {
			text, err := fs.ReadFile(r.FS, name)
			if err != nil {
				faults = append(faults, fault(name, 0, "%v", err))
				continue
			}
			texts[name] = string(text)
		}
	}
	return texts, faults
}

// symbolLink is a link from a document to a symbol of a chapter:
// [Cacher.dispatchEvent](../chapters/06-cacher/dispatch.go).
var symbolLink = regexp.MustCompile(`\[([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)\]\(([^)\s]+)/(\w+\.go)\)`)

// relink returns the text of a document in docs/ with every link to a symbol pointing at the file in which the symbol
// is declared now, within the folder that the link names. Symbols that the folder does not declare are faults.
func relink(repo *Repo, name, text string) (string, []Fault) {
	var faults []Fault
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = symbolLink.ReplaceAllStringFunc(line, func(link string) string {
			match := symbolLink.FindStringSubmatch(link)
			symbol, folder := match[1], match[2]
			if strings.HasSuffix(symbol, ".go") || !strings.Contains(folder, "chapters/") {
				return link // the name of a file, or a word of a sentence
			}
			pkg := repo.Tree.In(path.Join(path.Dir(name), folder))
			if pkg == nil {
				return link // checkDocs says that there is no such file
			}
			decl, err := pkg.Find(symbol, "")
			if err != nil {
				faults = append(faults, fault(name, i+1, "%v", err))
				return link
			}
			return "[" + symbol + "](" + folder + "/" + path.Base(decl.File.Path) + ")"
		})
	}
	return strings.Join(lines, "\n"), faults
}

func TestLinksToSymbolsAreFresh(t *testing.T) {
	repo, err := open()
	require.NoError(t, err)
	texts, _ := repo.texts("docs/*.md")
	for name, text := range texts {
		now := strings.ReplaceAll(text, "\r\n", "\n")
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
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(want), 0o644))
	}
}

func TestALinkFollowsItsSymbol(t *testing.T) {
	repo := seeded(t, nil)
	got, faults := relink(repo, "docs/WHERE.md", "Who? [Store](../chapters/01-storage/old.go), "+
		"[Gone](../chapters/01-storage/store.go)\n")
	assert.Equal(t, got, "Who? [Store](../chapters/01-storage/store.go), [Gone](../chapters/01-storage/store.go)\n")
	assert.True(t, len(faults) == 1 && strings.Contains(faults[0].String(), "Gone is not declared"),
		"faults: got %v, want one, of Gone", faults)
}

var (
	ourMetric    = regexp.MustCompile("`((?:apiserver|watch_cache|rest_client|informer|workqueue)_[a-z_]+)")
	otherMetric  = regexp.MustCompile(`\*((?:apiserver|informer|workqueue)_[a-z_]+)`)
	metricsFiles = []string{"chapters/06-cacher/metrics.go", "chapters/09-listwatch/metrics.go",
		"internal/server/apiserver/metrics.go"}
)

// TestSymptomsNameMetricsThatExist: in SYMPTOMS a metric stands as code if this program has it, and in italics if only
// upstream does.
func TestSymptomsNameMetricsThatExist(t *testing.T) {
	var sources strings.Builder
	for _, file := range metricsFiles {
		sources.WriteString(read(t, filepath.Join(root, filepath.FromSlash(file))))
	}
	page := read(t, filepath.Join(root, "docs", "SYMPTOMS.md"))
	has := func(name string) bool { return strings.Contains(sources.String(), `"`+name+`"`) }
	named := ourMetric.FindAllStringSubmatch(page, -1)
	assert.True(t, len(named) >= 10, "only %d metrics are named", len(named))
	for _, each := range named {
		assert.True(t, has(each[1]), "%s is not at /metrics", each[1])
	}
	for _, each := range otherMetric.FindAllStringSubmatch(page, -1) {
		assert.False(t, has(each[1]), "%s is at /metrics: it stands as code", each[1])
	}
}
