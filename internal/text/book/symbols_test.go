package book

import (
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/text/source"
)

func TestSymbolsStandBesideUpstreams(t *testing.T) {
	tree, err := source.Parse(course())
	require.NoError(t, err)
	const want = `
## [04-ring](../chapters/04-ring/README.md)

[k8s.io/apiserver/pkg/storage/cacher/watch_cache.go](https://github.com/kubernetes/kubernetes/blob/v1.37.2/staging/src/k8s.io/apiserver/pkg/storage/cacher/watch_cache.go)

| ours | upstream |
|---|---|
| [~Ring.add~](../chapters/04-ring/ring.go) | ~(*watchCache).updateCache~ |
`
	got := strings.ReplaceAll(string(symbolsPage(tree)), "`", "~")
	assert.True(t, strings.HasSuffix(got, want), "got %s\nwant at its end %s", got, want)
}
