package source

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const cacherSource = `// Package cacher hands events out.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher
package cacher

import "listwatch/internal/observe/probe"

// bufferSize is how much incoming holds.
const bufferSize = 100

// Modes.
const (
	TwoPhase Mode = iota // first
	Sequential
)

// Mode is a way of handing out.
type Mode int

// Cacher stands between. See [Cacher.dispatchEvents] and [*Ring], but not events[i] or "[Quoted]".
//
//	[NotALink] in a drawing
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: Cacher
// Differs: one resource only,
// and no metrics.
//
// It goes on.
type Cacher struct {
	probe *probe.Probe
	mu    sync.Mutex // guards ready
	// ready says so.
	ready bool
}

type (
	// Ring is a ring.
	Ring[T any] struct{ items []T }

	// Source is asked for events.
	Source interface {
		// Next blocks.
		//
		// Upstream: k8s.io/apimachinery/pkg/watch/watch.go: Interface.ResultChan
		Next() int
	}
)

// dispatchEvents runs until done.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).dispatchEvents
func (c *Cacher) dispatchEvents() {
	c.probe.At(probe.IncomingReceived, "", 0, 1, 2)
} // the end

func (r *Ring[T]) add(item T) { r.items = append(r.items, item) }
`

func tree(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, src := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(src)}
	}
	return require.Value(Parse(fsys))(t)
}

func TestADeclarationIsFoundBySymbolWithItsRealLines(t *testing.T) {
	pkg := tree(t, map[string]string{"06-cacher/cacher.go": cacherSource}).In("06-cacher")
	tests := []struct {
		symbol      string
		from, to    int
		first, last string
	}{
		{"bufferSize", 8, 9, "// bufferSize is how much incoming holds.", "const bufferSize = 100"},
		{"Sequential", 11, 15, "// Modes.", ")"},
		{"Mode", 17, 18, "// Mode is a way of handing out.", "type Mode int"},
		{"Ring", 37, 38, "\t// Ring is a ring.", "\tRing[T any] struct{ items []T }"},
		{"Cacher.ready", 32, 33, "\t// ready says so.", "\tready bool"},
		{"Source.Next", 42, 45, "\t\t// Next blocks.", "\t\tNext() int"},
		{"Cacher.dispatchEvents", 49, 54, "// dispatchEvents runs until done.", "} // the end"},
		{"Ring.add", 56, 56, "func (r *Ring[T]) add(item T) { r.items = append(r.items, item) }", ""},
	}
	for _, test := range tests {
		t.Run(test.symbol, func(t *testing.T) {
			decl := require.Value(pkg.Find(test.symbol, "cacher.go"))(t)
			lines := strings.Split(decl.Src, "\n")
			assert.True(t, decl.From == test.from && decl.To == test.to && len(lines) == test.to-test.from+1,
				"got lines %d to %d (%d), want %d to %d", decl.From, decl.To, len(lines), test.from, test.to)
			assert.True(t, lines[0] == test.first, "got first line %q, want %q", lines[0], test.first)
			last := lines[len(lines)-1]
			assert.True(t, test.last == "" || last == test.last, "got last line %q, want %q", last, test.last)
		})
	}
}

func TestASymbolThatIsNotThereIsAnError(t *testing.T) {
	pkg := tree(t, map[string]string{
		"06-cacher/cacher.go": cacherSource,
		"06-cacher/ready.go":  "package cacher\n\nfunc wait() {}\n",
	}).In("06-cacher")
	for symbol, want := range map[string]string{
		"Cacher.gone": "Cacher.gone is not declared in 06-cacher",
		"wait":        "wait is declared in 06-cacher/ready.go, not in 06-cacher/cacher.go",
	} {
		_, err := pkg.Find(symbol, "cacher.go")
		assert.True(t, err != nil && err.Error() == want, "%s: got error %v, want %s", symbol, err, want)
	}
}

func TestNotesKnowWhomTheyAreAbout(t *testing.T) {
	pkg := tree(t, map[string]string{"06-cacher/cacher.go": cacherSource}).In("06-cacher")
	var got []string
	for _, note := range pkg.Notes() {
		text := note.Differs
		if text == "" {
			text = fmt.Sprint(note.Upstream)
		}
		got = append(got, note.Symbol+" | "+text)
	}
	want := []string{
		" | {k8s.io/apiserver/pkg/storage/cacher }",
		"Cacher | {k8s.io/apiserver/pkg/storage/cacher/cacher.go Cacher}",
		"Cacher | one resource only, and no metrics.",
		"Source.Next | {k8s.io/apimachinery/pkg/watch/watch.go Interface.ResultChan}",
		"Cacher.dispatchEvents | {k8s.io/apiserver/pkg/storage/cacher/cacher.go (*Cacher).dispatchEvents}",
	}
	assert.NoDiff(t, want, got, "notes")
}

func TestUpstreamLinesHaveOneForm(t *testing.T) {
	tests := []struct {
		text string
		want Upstream
		ok   bool
	}{
		{"k8s.io/client-go/tools/cache", Upstream{Path: "k8s.io/client-go/tools/cache"}, true},
		{"k8s.io/client-go/tools/cache/store.go: Store", Upstream{Path: "k8s.io/client-go/tools/cache/store.go",
			Symbol: "Store"}, true},
		{"k8s.io/a/b.go: (*T).m", Upstream{Path: "k8s.io/a/b.go", Symbol: "(*T).m"}, true},
		{"k8s.io/a/b.go: (T).m", Upstream{Path: "k8s.io/a/b.go", Symbol: "(T).m"}, true},
		{"k8s.io/a/b.go: T.m", Upstream{Path: "k8s.io/a/b.go", Symbol: "T.m"}, true},
		{"cacher.go: Cacher", Upstream{}, false},
		{"k8s.io/a/b.go: T, U", Upstream{}, false},
		{"k8s.io/a/b.go: T.m()", Upstream{}, false},
		{"k8s.io/a/b.go:T", Upstream{}, false},
		{"k8s.io/a/b.go (T)", Upstream{}, false},
		{"", Upstream{}, false},
	}
	for _, test := range tests {
		got, err := ParseUpstream(test.text)
		assert.True(t, got == test.want && (err == nil) == test.ok,
			"%q: got %+v, %v; want %+v, ok %v", test.text, got, err, test.want, test.ok)
	}
}

func TestUpstreamLinksLeadToThePinnedSource(t *testing.T) {
	for path, want := range map[string]string{
		"k8s.io/apiserver/pkg/storage/cacher/cacher.go": "https://github.com/kubernetes/kubernetes/blob/v1.37.2/" +
			"staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go",
		"k8s.io/client-go/tools/cache": "https://github.com/kubernetes/kubernetes/tree/v1.37.2/" +
			"staging/src/k8s.io/client-go/tools/cache",
		"k8s.io/kubernetes/pkg/registry/core/pod/strategy.go": "https://github.com/kubernetes/kubernetes/blob/v1.37.2/" +
			"pkg/registry/core/pod/strategy.go",
		"k8s.io/utils/buffer/ring_growing.go": "https://github.com/kubernetes/utils/blob/cf1189d6abe3/" +
			"buffer/ring_growing.go",
		"go.etcd.io/etcd/client/v3/watch.go":      "https://github.com/etcd-io/etcd/blob/v3.7.3/client/v3/watch.go",
		"go.etcd.io/etcd/server/v3/embed/etcd.go": "https://github.com/etcd-io/etcd/blob/v3.7.3/server/embed/etcd.go",
		"example.com/x/y":                         "",
	} {
		assert.Equal(t, want, (Upstream{Path: path}).URL(), path)
	}
}

const momentsSource = `package station

import probing "listwatch/internal/observe/probe"

func (s *Station) addLocked() {
	s.probe.At(probing.Appended, key, rv, 1, 2)
}

func (s *Station) Close() {
	s.report(probing.Passed)
	s.probe.At(probing.NotAPoint, key, rv)
}
`

func TestMentionsAreFound(t *testing.T) {
	tree := tree(t, map[string]string{
		"s/station.go":      momentsSource,
		"s/station_test.go": momentsSource,
		"o/other.go":        "package other\n\nvar x = probe.Appended\n",
	})
	got := ""
	for _, m := range tree.Mentions(func(name string) bool { return name != "NotAPoint" && name != "Probe" }) {
		got += fmt.Sprintf("%s by %q in %s, line %d; ", m.Point, m.Method, m.Function, m.Line)
	}
	assert.Equal(t, `Appended by "At" in Station.addLocked, line 6; Passed by "" in Station.Close, line 10; `, got)
}
