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
)

const (
	realCacher    = "k8s.io/apiserver/pkg/storage/cacher"
	realEtcd3     = "k8s.io/apiserver/pkg/storage/etcd3"
	realReflector = "k8s.io/client-go/tools/cache"

	ourEtcd3      = "../../../chapters/02-etcd3"
	ourReflector  = "../../../chapters/03-reflector"
	ourWatchCache = "../../../chapters/04-watchcache"
	ourWatcher    = "../../../chapters/05-cachewatcher"
	ourCacher     = "../../../chapters/06-cacher"
	ourHandlers   = "../../../chapters/08-handlers"
	ourListWatch  = "../../../chapters/09-listwatch"

	realServer = "k8s.io/apiserver/pkg/server"
)

// numbers are the numbers on the way of an event through the server half: ours, upstream's, and what both should be.
// Where upstream has no name for a number, its line is quoted instead.
var numbers = []struct {
	ourDir, our     string
	realPkg, real   string
	file, realPiece string // in place of real
	want            string
}{
	{ourDir: "../../../chapters/01-storage", our: "ResourceVersionTooHighRetrySeconds", realPkg: realCacher,
		real: "resourceVersionTooHighRetrySeconds", want: "1"},
	{ourDir: ourEtcd3, our: "maxLimit", realPkg: realEtcd3, real: "maxLimit", want: "10000"},
	{ourDir: ourEtcd3, our: "incomingBufSize", realPkg: realEtcd3, real: "incomingBufSize", want: "100"},
	{ourDir: ourEtcd3, our: "outgoingBufSize", realPkg: realEtcd3, real: "outgoingBufSize", want: "100"},
	{ourDir: ourEtcd3, our: "processEventConcurrency", realPkg: realEtcd3, real: "processEventConcurrency", want: "10"},
	{ourDir: ourEtcd3, our: "compactRevKey", realPkg: realEtcd3, real: "compactRevKey", want: `"compact_rev_key"`},
	{ourDir: ourEtcd3, our: "DefaultCompactInterval", realPkg: "k8s.io/apiserver/pkg/storage/storagebackend",
		real: "DefaultCompactInterval", want: "5m0s"},

	{ourDir: ourReflector, our: "defaultMinWatchTimeout", realPkg: realReflector, real: "defaultMinWatchTimeout",
		want: "5m0s"},
	{ourDir: ourReflector, our: "defaultMaxWatchTimeout", realPkg: realReflector, real: "defaultMaxWatchTimeout",
		want: "10m0s"},
	{ourDir: ourReflector, our: "backoffInit", realPkg: realReflector, real: "defaultBackoffInit", want: "800ms"},
	{ourDir: ourReflector, our: "backoffMax", realPkg: realReflector, real: "defaultBackoffMax", want: "30s"},
	{ourDir: ourReflector, our: "backoffReset", realPkg: realReflector, real: "defaultBackoffReset", want: "2m0s"},
	{ourDir: ourReflector, our: "backoffFactor", realPkg: realReflector, real: "defaultBackoffFactor", want: "2"},
	{ourDir: ourReflector, our: "defaultPageSize", realPkg: "k8s.io/client-go/tools/pager", real: "defaultPageSize",
		want: "500"},
	{ourDir: ourReflector, our: "internalErrorReset", realPkg: realReflector, file: "reflector.go",
		realPiece: "NewRetryWithDeadline(r.MaxInternalErrorRetryDuration, time.Minute, apierrors.IsInternalError",
		want:      "1m0s"},
	{ourDir: ourReflector, our: "veryShortWatch", realPkg: realReflector, file: "reflector.go",
		realPiece: "watchDuration < 1*time.Second && eventCount == 0", want: "1s"},

	{ourDir: ourWatchCache, our: "blockTimeout", realPkg: realCacher, real: "blockTimeout", want: "3s"},
	{ourDir: ourWatchCache, our: "BookmarkFrequency", realPkg: realCacher, real: "defaultBookmarkFrequency",
		want: "1m0s"},
	{ourDir: ourWatchCache, our: "EventFreshDuration", realPkg: realCacher, real: "DefaultEventFreshDuration",
		want: "1m15s"},
	{ourDir: ourWatchCache, our: "lowerBoundCapacity", realPkg: realCacher, real: "defaultLowerBoundCapacity",
		want: "100"},
	{ourDir: ourWatchCache, our: "upperBoundCapacity", realPkg: realCacher, real: "defaultUpperBoundCapacity",
		want: "102400"},
	{ourDir: ourWatchCache, our: "minWatchChanSize", realPkg: realCacher, real: "minWatchChanSize", want: "10"},
	{ourDir: ourWatchCache, our: "maxWatchChanSizeWithIndexAndTrigger", realPkg: realCacher,
		real: "maxWatchChanSizeWithIndexAndTrigger", want: "10"},
	{ourDir: ourWatchCache, our: "maxWatchChanSizeWithIndexWithoutTrigger", realPkg: realCacher,
		real: "maxWatchChanSizeWithIndexWithoutTrigger", want: "1000"},
	{ourDir: ourWatchCache, our: "maxWatchChanSizeWithoutIndex", realPkg: realCacher,
		real: "maxWatchChanSizeWithoutIndex", want: "100"},
	{ourDir: ourWatchCache, our: "intervalBufferSize", realPkg: realCacher, real: "bufferSize", want: "100"},
	{ourDir: ourWatchCache, our: "progressRequestPeriod", realPkg: realCacher + "/progress",
		real: "progressRequestPeriod", want: "100ms"},

	{ourDir: ourWatcher, our: "preDeadline", realPkg: realCacher, file: "cache_watcher.go",
		realPiece: "c.deadline.Add(-2 * time.Second)", want: "2s"},

	{ourDir: ourCacher, our: "incomingSize", realPkg: realCacher, file: "cacher.go", realPiece: "make(chan " +
		"watchCacheEvent, 100)", want: "100"},
	{ourDir: ourCacher, our: "storageWatchListPageSize", realPkg: realCacher, real: "storageWatchListPageSize",
		want: "10000"},
	{ourDir: ourCacher, our: "maxInternalErrorRetryDuration", realPkg: realCacher, file: "cacher.go",
		realPiece: "MaxInternalErrorRetryDuration = time.Second * 30", want: "30s"},
	{ourDir: ourCacher, our: "startCachingPeriod", realPkg: realCacher, file: "cacher.go",
		realPiece: "}, time.Second, stopCh,", want: "1s"},
	{ourDir: ourCacher, our: "compactorPollPeriod", realPkg: realCacher, real: "compactorPollPeriod", want: "15s"},
	{ourDir: ourCacher, our: "refreshPerSecond", realPkg: realCacher, real: "refreshPerSecond", want: "50ms"},
	{ourDir: ourCacher, our: "maxBudget", realPkg: realCacher, real: "maxBudget", want: "100ms"},
	{ourDir: ourCacher, our: "bookmarkTickMin", realPkg: realCacher, file: "cacher.go",
		realPiece: "wait.Jitter(time.Second, 0.25)", want: "1s"},
	{ourDir: ourCacher, our: "bookmarkTickSpread", realPkg: realCacher, file: "cacher.go",
		realPiece: "wait.Jitter(time.Second, 0.25)", want: "250ms"},
	{ourDir: ourCacher, our: "retryAfterFactor", realPkg: realCacher, file: "util.go", realPiece: "factor := 0.06",
		want: "0.06"},
	{ourDir: ourHandlers, our: "DefaultMinRequestTimeout", realPkg: realServer, file: "config.go",
		realPiece: "MinRequestTimeout:              1800,", want: "30m0s"},
	{ourDir: ourHandlers, our: "RequestTimeout", realPkg: realServer, file: "config.go", realPiece: "RequestTimeout: " +
		"                time.Duration(60) * time.Second", want: "1m0s"},
	{ourDir: "../../kube/negotiation", our: "MaxRequestBodyBytes", realPkg: realServer, file: "config.go",
		realPiece: "MaxRequestBodyBytes: int64(3 * 1024 * 1024)", want: "3145728"},
	{ourDir: "../../kube/negotiation", our: "gzipThreshold",
		realPkg: "k8s.io/apiserver/pkg/endpoints/handlers/responsewriters", real: "defaultGzipThresholdBytes",
		want: "131072"},

	{ourDir: ourListWatch, our: "defaultQPS", realPkg: "k8s.io/client-go/rest", file: "config.go",
		realPiece: "DefaultQPS   float32 = 5.0", want: "5"},
	{ourDir: ourListWatch, our: "defaultBurst", realPkg: "k8s.io/client-go/rest", file: "config.go",
		realPiece: "DefaultBurst int     = 10", want: "10"},

	{ourDir: ourCacher, our: "maxRetryAfter", realPkg: realCacher, file: "util.go", realPiece: "math.Min(30, " +
		"math.Max(1, result))", want: "30"},
}

func TestEveryNumberIsUpstreams(t *testing.T) {
	real := realSources(t)
	for _, n := range numbers {
		t.Run(n.our, func(t *testing.T) {
			got := valueOf(t, n.ourDir, n.our)
			assert.Equal(t, got, n.want, "ours is %s, want %s", got, n.want)
			dir, err := real.locate(n.realPkg)
			require.NoError(t, err)
			if n.real != "" {
				got := valueOf(t, dir, n.real)
				assert.Equal(t, got, n.want, "upstream's %s is %s, want %s", n.real, got, n.want)
				return
			}
			text, err := os.ReadFile(filepath.Join(dir, n.file))
			require.NoError(t, err)
			assert.True(t, strings.Contains(string(text), n.realPiece),
				"upstream's %s says %q no more", n.file, n.realPiece)
		})
	}
}

// valueOf computes a package-level constant, or a variable that is set where it is declared, from the source in dir.
// Numbers of the package time are written as durations.
func valueOf(t *testing.T, dir, name string) string {
	t.Helper()
	declared := declaredValues(t, dir)
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

// timeImporter reads the package time from its source: a test has no compiled form of it at hand.
var timeImporter = importer.ForCompiler(token.NewFileSet(), "source", nil)

// declaredValues returns what the package-level names of a folder are declared to be.
func declaredValues(t *testing.T, dir string) map[string]ast.Expr {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.True(t, err == nil && len(names) != 0, "no Go files in %s: %v", dir, err)
	declared := map[string]ast.Expr{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && len(value.Names) == len(value.Values) {
					for i := range value.Names {
						declared[value.Names[i].Name] = value.Values[i]
					}
				}
			}
		}
	}
	return declared
}
