package book

import (
	"strings"
	"testing"

	"listwatch/internal/text/source"
)

func TestSymbolsStandBesideUpstreams(t *testing.T) {
	tree, err := source.Parse(course())
	if err != nil {
		t.Fatal(err)
	}
	const want = `
## [04-ring](../chapters/04-ring/README.md)

[k8s.io/apiserver/pkg/storage/cacher/watch_cache.go](https://github.com/kubernetes/kubernetes/blob/v1.37.2/staging/src/k8s.io/apiserver/pkg/storage/cacher/watch_cache.go)

| ours | upstream |
|---|---|
| [~Ring.add~](../chapters/04-ring/ring.go) | ~(*watchCache).updateCache~ |
`
	if got := strings.ReplaceAll(string(symbolsPage(tree)), "`", "~"); !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant at its end %s", got, want)
	}
}
