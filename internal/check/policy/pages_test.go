package policy

import (
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"listwatch/internal/text/source"
)

var (
	// docTarget is the destination of a Markdown link without a title.
	docTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// docMethod is a method the way a debugger names it: cacher.(*Cacher).dispatchEvent.
	docMethod = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.\(\*([A-Za-z]\w*)\)\.([A-Za-z]\w*)`)
	// docSymbol is a link to a symbol of a chapter: [Cacher.dispatchEvent](../chapters/06-cacher/dispatch.go).
	docSymbol = regexp.MustCompile(`\[([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)\]\(([^)\s]*chapters/[^)\s]+/\w+\.go)\)`)
)

// checkPages looks at what there is to read: files that it links to exist, and declare the symbols that the links name;
// methods that it names for a debugger exist. The other links of chapters are internal/text/book's.
func (r *repo) checkPages() {
	for _, pattern := range []string{"README.md", "docs/*.md", "chapters/*/README.md"} {
		names, _ := fs.Glob(r, pattern) // the patterns are well formed
		for _, name := range names {
			text, _ := fs.ReadFile(r, name) // it was listed a moment ago
			for i, line := range strings.Split(string(text), "\n") {
				complain := func(format string, args ...any) { r.fault(name, i+1, format, args...) }
				r.checkNames(path.Dir(name), line, complain)
			}
		}
	}
}

// checkNames looks at what a line of a page in the folder dir names.
func (r *repo) checkNames(dir, line string, complain func(string, ...any)) {
	for _, match := range docTarget.FindAllStringSubmatch(line, -1) {
		target, err := url.Parse(match[1])
		if err != nil {
			complain("%v", err)
		} else if target.Scheme == "" && target.Path != "" && !path.IsAbs(target.Path) {
			if _, err := fs.Stat(r, path.Join(dir, target.Path)); err != nil {
				complain("%s does not exist", match[1])
			}
		}
	}
	for _, match := range docSymbol.FindAllStringSubmatch(line, -1) {
		pkg := r.Holding(path.Join(dir, match[2])) // nil: there is no such file
		if pkg == nil || strings.HasSuffix(match[1], ".go") {
			continue // the link's text is the name of a file
		}
		if _, err := pkg.Find(match[1], path.Base(match[2])); err != nil {
			complain("%v", err)
		}
	}
	for _, match := range docMethod.FindAllStringSubmatch(line, -1) {
		named := func(pkg *source.Package) bool { return pkg.Name == match[1] }
		declares := func(pkg *source.Package) bool { return named(pkg) && declared(pkg, match[2], match[3]) }
		if slices.ContainsFunc(r.Packages, named) && !slices.ContainsFunc(r.Packages, declares) {
			complain("%s does not exist", match[0])
		}
	}
}

// declared reports whether a type of a package has a member, of its own or by embedding.
func declared(pkg *source.Package, owner, member string) bool {
	_, err := pkg.Find(owner+"."+member, "")
	return err == nil || slices.ContainsFunc(pkg.Decls, func(decl *source.Decl) bool {
		embedded, ok := strings.CutPrefix(decl.Symbol, owner+".")
		return ok && embedded != owner && embedded != member && declared(pkg, embedded, member)
	})
}
