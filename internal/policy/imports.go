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
	"github.com/go-chi/chi":               "routes",
	"github.com/google/uuid":              "uids",
	"github.com/gorilla/websocket":        "watches over websocket",
	"golang.org/x/time":                   "the client's rate limit",
	"golang.org/x/net":                    "websocket",
	"github.com/prometheus/client_golang": "metrics",
}

// testModules may be used by tests in addition.
var testModules = map[string]string{
	"go.uber.org/goleak":                "leaks",
	"pgregory.net/rapid":                "properties",
	"github.com/google/go-cmp":          "differences",
	"github.com/anishathalye/porcupine": "linearizability",
	"sigs.k8s.io/randfill":              "objects with every field set",
}

// originals must not be imported by the product: it is compared with them in internal/compat, a module of its own.
var originals = []string{"k8s.io/client-go", "k8s.io/apiserver", "k8s.io/kubernetes", "sigs.k8s.io/controller-runtime"}

// checkChapterImports holds reading order = folder order = import order. Tests keep it too: who reads chapter 3 has not
// read chapter 6.
func checkChapterImports(repo *Repo) []Fault {
	var faults []Fault
	for _, each := range importsOf(repo) {
		number := chapterNumber(each.pkg.Dir)
		if number == 0 {
			continue
		}
		if reason := refuse(repo, number, each.file.Test, each.path); reason != "" {
			faults = append(faults, each.fault(reason))
		}
	}
	return faults
}

// onHandlers is built on the types of the handlers' chapter: it is no leaf, and only the chapter that wires everything may
// import it.
const (
	onHandlers   = "internal/apiserver"
	chapterOfAll = 15
)

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
	case within(onHandlers, ours) && number < chapterOfAll:
		return "only the chapter that wires everything knows what is built on the handlers"
	case strings.HasPrefix(ours, "internal/") && (test || leaf(repo, ours) || within(onHandlers, ours)):
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

// actors are what acts on the machine: built on the chapters, and joined to the page by cmd.
var actors = []string{"internal/sandbox", "internal/scenario"}

// checkLayers holds what is above chapters: viz reads the log and Snapshots, and knows no station and nothing that acts on
// them; only cmd imports viz; the originals stay outside.
func checkLayers(repo *Repo) []Fault {
	var faults []Fault
	for _, each := range importsOf(repo) {
		ours := strings.TrimPrefix(each.path, Module+"/")
		switch {
		case slices.ContainsFunc(originals, func(original string) bool { return within(original, each.path) }):
			faults = append(faults, each.fault("the original is compared with only in internal/compat"))
		case within("viz", each.pkg.Dir) && !each.file.Test && (chapterNumber(ours) > 0 || slices.Contains(actors, ours)):
			faults = append(faults, each.fault("the page reads the log and Snapshots, nothing else"))
		case strings.HasPrefix(each.pkg.Dir, "internal/") && (within("viz", ours) || strings.HasPrefix(ours, "cmd/")):
			faults = append(faults, each.fault("nothing below knows the page"))
		}
	}
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

// importing is one import.
type importing struct {
	pkg  *source.Package
	file *source.File
	line int
	path string
}

func (i importing) fault(reason string) Fault {
	return fault(i.file.Path, i.line, "imports %s: %s", i.path, reason)
}

func importsOf(repo *Repo) []importing {
	var all []importing
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			for _, spec := range file.AST.Imports {
				all = append(all, importing{pkg, file, repo.Tree.Line(spec.Pos()), strings.Trim(spec.Path.Value, `"`)})
			}
		}
	}
	return all
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
