package compat

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/text/source"
)

// numbers lists constants on an event's path. A heading is our folder and upstream's package. A line below it is our
// name, the value and, if it differs, upstream's name; if upstream has no name, the line ends with a file and its code.
const numbers = `
chapters/01-storage as k8s.io/apiserver/pkg/storage/cacher
  ResourceVersionTooHighRetrySeconds 1 resourceVersionTooHighRetrySeconds
chapters/02-etcd3 as k8s.io/apiserver/pkg/storage/etcd3
  maxLimit 10000
  incomingBufSize 100
  outgoingBufSize 100
  processEventConcurrency 10
  compactRevKey "compact_rev_key"
chapters/02-etcd3 as k8s.io/apiserver/pkg/storage/storagebackend
  DefaultCompactInterval 5m0s
chapters/03-reflector as k8s.io/client-go/tools/cache
  defaultMinWatchTimeout 5m0s
  defaultMaxWatchTimeout 10m0s
  backoffInit 800ms defaultBackoffInit
  backoffMax 30s defaultBackoffMax
  backoffReset 2m0s defaultBackoffReset
  backoffFactor 2 defaultBackoffFactor
  internalErrorReset 1m0s reflector.go: r.MaxInternalErrorRetryDuration, time.Minute, apierrors.IsInternalError
  veryShortWatch 1s reflector.go: watchDuration < 1*time.Second && eventCount == 0
chapters/03-reflector as k8s.io/client-go/tools/pager
  defaultPageSize 500
chapters/04-watchcache as k8s.io/apiserver/pkg/storage/cacher
  blockTimeout 3s
  BookmarkFrequency 1m0s defaultBookmarkFrequency
  EventFreshDuration 1m15s DefaultEventFreshDuration
  lowerBoundCapacity 100 defaultLowerBoundCapacity
  upperBoundCapacity 102400 defaultUpperBoundCapacity
  minWatchChanSize 10
  maxWatchChanSizeWithIndexAndTrigger 10
  maxWatchChanSizeWithIndexWithoutTrigger 1000
  maxWatchChanSizeWithoutIndex 100
  intervalBufferSize 100 bufferSize
chapters/04-watchcache as k8s.io/apiserver/pkg/storage/cacher/progress
  progressRequestPeriod 100ms
chapters/05-cachewatcher as k8s.io/apiserver/pkg/storage/cacher
  preDeadline 2s cache_watcher.go: c.deadline.Add(-2 * time.Second)
chapters/06-cacher as k8s.io/apiserver/pkg/storage/cacher
  incomingSize 100 cacher.go: make(chan watchCacheEvent, 100)
  storageWatchListPageSize 10000
  maxInternalErrorRetryDuration 30s cacher.go: MaxInternalErrorRetryDuration = time.Second * 30
  startCachingPeriod 1s cacher.go: }, time.Second, stopCh,
  compactorPollPeriod 15s
  refreshPerSecond 50ms
  maxBudget 100ms
  bookmarkTickMin 1s cacher.go: wait.Jitter(time.Second, 0.25)
  bookmarkTickSpread 250ms cacher.go: wait.Jitter(time.Second, 0.25)
  retryAfterFactor 0.06 util.go: factor := 0.06
  maxRetryAfter 30 util.go: math.Min(30, math.Max(1, result))
chapters/08-handlers as k8s.io/apiserver/pkg/server
  minRequestTimeout 30m0s config.go: MinRequestTimeout: 1800,
  RequestTimeout 1m0s config.go: RequestTimeout: time.Duration(60) * time.Second
internal/kube/negotiation as k8s.io/apiserver/pkg/server
  MaxRequestBodyBytes 3145728 config.go: MaxRequestBodyBytes: int64(3 * 1024 * 1024)
internal/kube/negotiation as k8s.io/apiserver/pkg/endpoints/handlers/responsewriters
  gzipThreshold 131072 defaultGzipThresholdBytes
chapters/09-listwatch as k8s.io/client-go/rest
  defaultQPS 5 config.go: DefaultQPS float32 = 5.0
  defaultBurst 10 config.go: DefaultBurst int = 10
`

func TestEveryNumberIsUpstreams(t *testing.T) {
	real := realSources(t)
	var ours, theirs string // folders
	for line := range strings.Lines(strings.TrimSpace(numbers)) {
		words := strings.Fields(line)
		if words[1] == "as" {
			dir := require.Value(real.locate(words[2]))(t)
			ours, theirs = filepath.Join("../../..", words[0]), dir
			continue
		}
		name, want, quoted := words[0], words[1], words[2:]
		assert.Equal(t, want, real.valueOf(t, ours, name), name)
		if len(quoted) < 2 {
			counterpart := real.valueOf(t, theirs, append(quoted, name)[0])
			assert.Equal(t, want, counterpart, "upstream's counterpart of %s", name)
			continue
		}
		text := require.Value(os.ReadFile(filepath.Join(theirs, strings.TrimSuffix(quoted[0], ":"))))(t)
		assert.True(t, strings.Contains(strings.Join(strings.Fields(string(text)), " "), strings.Join(quoted[1:], " ")),
			"upstream no longer contains %q", quoted)
	}
}

// valueOf computes a package-level constant, or an initialized variable, from the source in dir. It writes a
// time.Duration in the form of 1m0s.
func (s *sources) valueOf(t *testing.T, dir, name string) string {
	t.Helper()
	tree := require.Value(s.in(dir))(t)
	declared := declaredValues(tree)
	var program strings.Builder
	program.WriteString("package p\nimport \"time\"\nconst _ = time.Second\n")
	written := map[string]bool{}
	var write func(name string)
	write = func(name string) {
		expr, ok := declared[name]
		if !ok || written[name] {
			return
		}
		written[name] = true
		ast.Inspect(expr, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				write(id.Name)
			}
			return true
		})
		fmt.Fprintf(&program, "const %s = %s\n", name, types.ExprString(expr))
	}
	write(name)
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", program.String(), 0)
	require.NoError(t, err, name)
	config := types.Config{Importer: timeImporter}
	pkg, err := config.Check("p", files, []*ast.File{file}, nil)
	require.NoError(t, err, "%s in %s", name, dir)
	value, ok := pkg.Scope().Lookup(name).(*types.Const)
	require.True(t, ok, "%s is not declared in %s", name, dir)
	if n, exact := constant.Int64Val(constant.ToInt(value.Val())); exact && value.Type().String() == "time.Duration" {
		return time.Duration(n).String()
	}
	return value.Val().String()
}

// timeImporter reads the package time from its source, because a test has no compiled form of it.
var timeImporter = importer.ForCompiler(token.NewFileSet(), "source", nil)

// declaredValues returns the expressions of a folder's package-level names.
func declaredValues(tree *source.Tree) map[string]ast.Expr {
	declared := map[string]ast.Expr{}
	for _, pkg := range tree.Packages {
		for _, file := range pkg.Files {
			for _, decl := range file.AST.Decls {
				general, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range general.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok {
						for i := range value.Values {
							declared[value.Names[i].Name] = value.Values[i]
						}
					}
				}
			}
		}
	}
	return declared
}
