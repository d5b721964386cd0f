package policy

import (
	"path"
	"slices"
	"strings"

	"listwatch/internal/source"
)

// chapterModules are the modules that chapters may use, each with what it is for. Not among them, on purpose: client-go
// and apiserver, which are what the chapters are.
var chapterModules = map[string]string{
	"go.etcd.io/etcd":                     "storage",
	"google.golang.org/grpc":              "the transport to etcd",
	"go.uber.org/zap":                     "etcd's logger, to silence it",
	"k8s.io/apimachinery":                 "vocabulary: objects, selectors, status errors, events",
	"k8s.io/api":                          "vocabulary: core/v1",
	"k8s.io/utils":                        "clocks",
	"k8s.io/kube-openapi":                 "the OpenAPI document",
	"github.com/go-chi/chi":               "routes",
	"github.com/google/btree":             "the ordered store of the watch cache",
	"github.com/google/uuid":              "uids",
	"github.com/gorilla/websocket":        "watches over websocket",
	"golang.org/x/time":                   "the client's rate limit",
	"golang.org/x/net":                    "websocket",
	"gopkg.in/evanphx/json-patch.v4":      "patches",
	"github.com/prometheus/client_golang": "metrics",
	"sigs.k8s.io/json":                    "strict decoding",
	"sigs.k8s.io/yaml":                    "YAML bodies",
	"sigs.k8s.io/structured-merge-diff":   "server-side apply",
}

// testModules may be used by tests in addition.
var testModules = map[string]string{
	"go.uber.org/goleak":                "leaks",
	"pgregory.net/rapid":                "properties",
	"github.com/google/go-cmp":          "differences",
	"github.com/anishathalye/porcupine": "linearizability",
}

// originals must not be imported by the product: it is compared with them in internal/compat, a module of its own.
var originals = []string{"k8s.io/client-go", "k8s.io/apiserver", "k8s.io/kubernetes", "sigs.k8s.io/controller-runtime"}

// checkChapterImports holds reading order = folder order = import order. Tests keep it too: who reads chapter 3 has not
// read chapter 6.
func checkChapterImports(repo *Repo) []Fault {
	var faults []Fault
	eachImport(repo, func(pkg *source.Package, file *source.File, line int, imported string) {
		number := chapterNumber(pkg.Dir)
		if number == 0 {
			return
		}
		if reason := refuse(repo, number, file.Test, imported); reason != "" {
			faults = append(faults, fault(file.Path, line, "imports %s: %s", imported, reason))
		}
	})
	return faults
}

// refuse says why a file of a chapter may not import a package, "" if it may.
func refuse(repo *Repo, number int, test bool, imported string) string {
	ours, isOurs := strings.CutPrefix(imported, Module+"/")
	switch {
	case !isOurs && inModule(chapterModules, imported), !isOurs && test && inModule(testModules, imported):
		return ""
	case !isOurs && standard(imported):
		return ""
	case !isOurs:
		return "the module is not on the list of what chapters may use"
	}
	other := chapterNumber(ours)
	switch {
	case other > 0 && (other < number || other == number && test):
		return ""
	case other > 0:
		return "a chapter imports only chapters with lower numbers"
	case strings.HasPrefix(ours, "internal/") && (test || leaf(repo, ours)):
		return ""
	case strings.HasPrefix(ours, "internal/"):
		return "it is no leaf: it imports chapters itself"
	}
	return "chapters know nothing of what is built on them"
}

// leaf reports whether a package of ours imports no chapter, directly or through other packages of ours.
func leaf(repo *Repo, dir string) bool {
	pkg := repo.Tree.In(dir)
	if pkg == nil {
		return false
	}
	for _, file := range pkg.Files {
		if file.Test {
			continue
		}
		for _, imported := range file.Imports() {
			ours, isOurs := strings.CutPrefix(imported, Module+"/")
			if isOurs && (strings.HasPrefix(ours, "chapters") || !leaf(repo, ours)) {
				return false
			}
		}
	}
	return true
}

// checkLayers holds what is above chapters: viz reads the log and Snapshots and knows no station; nobody but cmd
// imports viz; the originals stay outside.
func checkLayers(repo *Repo) []Fault {
	var faults []Fault
	eachImport(repo, func(pkg *source.Package, file *source.File, line int, imported string) {
		ours := strings.TrimPrefix(imported, Module+"/")
		switch {
		case slices.ContainsFunc(originals, func(original string) bool { return within(original, imported) }):
			faults = append(faults, fault(file.Path, line, "imports %s: the original is compared with only in internal/compat", imported))
		case pkg.Dir == "viz" && !file.Test && chapterNumber(ours) > 0:
			faults = append(faults, fault(file.Path, line, "imports %s: the page reads the log and Snapshots, nothing else", imported))
		case strings.HasPrefix(pkg.Dir, "internal/") && (ours == "viz" || strings.HasPrefix(ours, "cmd/")):
			faults = append(faults, fault(file.Path, line, "imports %s: nothing below knows the page", imported))
		}
	})
	return faults
}

// checkPackageNames refuses names that say nothing.
func checkPackageNames(repo *Repo) []Fault {
	empty := []string{"util", "utils", "common", "types", "helpers", "helper", "misc", "shared", "base"}
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		if slices.Contains(empty, strings.TrimSuffix(pkg.Name, "_test")) || slices.Contains(empty, path.Base(pkg.Dir)) {
			faults = append(faults, fault(pkg.Dir, 0, "package %s: the name does not say what it holds", pkg.Name))
		}
	}
	return faults
}

func eachImport(repo *Repo, visit func(pkg *source.Package, file *source.File, line int, imported string)) {
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			for _, spec := range file.AST.Imports {
				visit(pkg, file, repo.Tree.Line(spec.Pos()), strings.Trim(spec.Path.Value, `"`))
			}
		}
	}
}

func inModule(modules map[string]string, imported string) bool {
	for module := range modules {
		if within(module, imported) {
			return true
		}
	}
	return false
}

// within reports whether an import path lies in a module or folder.
func within(folder, imported string) bool {
	return imported == folder || strings.HasPrefix(imported, folder+"/")
}

// standard reports whether an import path is one of the standard library: its first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}
