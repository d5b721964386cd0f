package source

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// The versions we shadow. go.mod pins the modules; the forge knows them by these tags.
const (
	KubernetesVersion = "v1.37.2" // k8s.io/apiserver and its siblings at v0.37.2
	EtcdVersion       = "v3.7.3"
	UtilsVersion      = "cf1189d6abe3" // k8s.io/utils has no tags
)

// Upstream is one "Upstream:" line taken apart: where in the real source our declaration has its counterpart.
//
//	Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).dispatchEvents
//	Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: Interface
//	Upstream: k8s.io/client-go/tools/cache
type Upstream struct {
	Path   string // import path of a package, or of a file in one
	Symbol string // "" if the line names the file or package as a whole
}

var (
	upstreamPath = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)+(/[A-Za-z0-9_.-]+)+$`)
	// upstreamSymbol: "Name", "(*Type).Method", "(Type).Method" or "Interface.Method".
	upstreamSymbol = regexp.MustCompile(`^(?:\(\*?[A-Za-z_]\w*\)\.|[A-Za-z_]\w*\.)?[A-Za-z_]\w*$`)
)

// ParseUpstream takes apart what follows "Upstream: ". It checks the form only; whether the file and the symbol exist
// is checked against the real modules in internal/check/compat.
func ParseUpstream(text string) (Upstream, error) {
	where, symbol, named := strings.Cut(text, ": ")
	if !upstreamPath.MatchString(where) {
		return Upstream{}, fmt.Errorf("upstream %q: %q is not the import path of a package or file", text, where)
	}
	if named && !upstreamSymbol.MatchString(symbol) {
		return Upstream{}, fmt.Errorf("upstream %q: %q is not Symbol, Type.Method or (*Type).Method", text, symbol)
	}
	return Upstream{where, symbol}, nil
}

// URL returns where the pinned source can be read on the forge, "" if we do not know its repository. Nothing in the
// program fetches it; it is for a reader to follow.
func (u Upstream) URL() string {
	view := "tree" // a folder
	if path.Ext(u.Path) == ".go" {
		view = "blob"
	}
	for _, forge := range forges {
		if rest, ok := strings.CutPrefix(u.Path, forge.prefix); ok {
			tree := "https://github.com/" + forge.repository + "/" + view + "/" + forge.version + "/"
			return tree + forge.folder + rest
		}
	}
	return ""
}

// forges say where the modules are developed. The first prefix that fits counts.
var forges = []struct{ prefix, repository, version, folder string }{
	{"k8s.io/kubernetes/", "kubernetes/kubernetes", KubernetesVersion, ""},
	{"k8s.io/utils/", "kubernetes/utils", UtilsVersion, ""},
	{"k8s.io/", "kubernetes/kubernetes", KubernetesVersion, "staging/src/k8s.io/"},
	{"go.etcd.io/etcd/server/v3/", "etcd-io/etcd", EtcdVersion, "server/"},
	{"go.etcd.io/etcd/api/v3/", "etcd-io/etcd", EtcdVersion, "api/"},
	{"go.etcd.io/etcd/pkg/v3/", "etcd-io/etcd", EtcdVersion, "pkg/"},
	{"go.etcd.io/etcd/", "etcd-io/etcd", EtcdVersion, ""}, // the client keeps its version in its folder
}
