package policy

import (
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"listwatch/chapters"
	"listwatch/internal/source"
)

// sections are the headings that every chapter's README.md has, in this order. Others may come between them. Behind the last one
// comes nothing but the side roads.
var sections = []string{
	"The question",
	"The picture",
	"Watch it happen",
	"The data structure",
	"The walk",
	"Locks and goroutines",
	"What upstream does more",
	"What changed since the older descriptions",
	"Try it",
	"Questions",
	"You can now explain",
}

// appendix is where a chapter has its side roads, if it has any.
const appendix = "Appendix"

// checkChapters looks for what every chapter must have: prose with all sections, a doc.go, tests.
func checkChapters(repo *Repo) []Fault {
	sub, err := fs.Sub(repo.FS, "chapters")
	if err != nil {
		return []Fault{fault("chapters", 0, "%v", err)}
	}
	list, err := chapters.List(sub)
	if err != nil {
		return []Fault{fault("chapters", 0, "%v", err)}
	}
	var faults []Fault
	for i, chapter := range list {
		dir := path.Join("chapters", chapter.Folder)
		if chapter.Number != i+1 {
			faults = append(faults, fault(dir, 0, "comes after %d chapters: numbers have no gaps", i))
		}
		faults = append(faults, checkProse(repo, dir)...)
		faults = append(faults, checkPackage(repo, dir)...)
	}
	return faults
}

func checkProse(repo *Repo, dir string) []Fault {
	name := path.Join(dir, "README.md")
	text, err := fs.ReadFile(repo.FS, name)
	if err != nil {
		return []Fault{fault(name, 0, "the chapter has no prose")}
	}
	var headings []string
	fenced := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if heading, ok := strings.CutPrefix(line, "## "); ok && !fenced {
			headings = append(headings, strings.TrimSpace(heading))
		}
	}
	var faults []Fault
	if number := path.Base(dir)[:2]; !strings.HasPrefix(string(text), "# "+number+" · ") {
		faults = append(faults, fault(name, 1, "begins with %q", "# "+number+" · Title"))
	}
	at := 0
	for _, section := range sections {
		i := slices.Index(headings, section)
		switch {
		case i < 0:
			faults = append(faults, fault(name, 0, "the section %q is missing", section))
		case i < at:
			faults = append(faults, fault(name, 0, "the section %q is out of order", section))
		default:
			at = i
		}
	}
	for _, heading := range headings[at:] {
		if heading != headings[at] && heading != appendix {
			faults = append(faults, fault(name, 0, "the section %q comes after %q", heading, headings[at]))
		}
	}
	return faults
}

func checkPackage(repo *Repo, dir string) []Fault {
	pkg := repo.Tree.In(dir)
	if pkg == nil {
		return []Fault{fault(dir, 0, "the chapter has no code")}
	}
	var faults []Fault
	doc := slices.IndexFunc(pkg.Files, func(file *source.File) bool { return path.Base(file.Path) == "doc.go" })
	if doc < 0 || pkg.Files[doc].AST.Doc == nil {
		faults = append(faults, fault(path.Join(dir, "doc.go"), 0, "the package's contract is missing"))
	}
	if !hasTests(repo, dir) {
		faults = append(faults, fault(dir, 0, "the chapter has no tests"))
	}
	return faults
}

// hasTests reports whether a folder has a function TestX.
func hasTests(repo *Repo, dir string) bool {
	for _, pkg := range repo.Tree.Packages {
		if pkg.Dir != dir {
			continue
		}
		for _, decl := range pkg.Decls() {
			if decl.File.Test && strings.HasPrefix(decl.Symbol, "Test") && ast.IsExported(decl.Symbol) && decl.Symbol != "TestMain" {
				return true
			}
		}
	}
	return false
}

// whole are the packages whose doc.go lists every file, and not only those to begin with: what the list leaves out would make
// the sentences above it false.
var whole = []string{"chapters/01-storage", "chapters/15-pipeline", "internal/sandbox"}

var (
	listItem = regexp.MustCompile(`(?m)^ *- ([^:\n]*\.go):`)
	fileName = regexp.MustCompile(`\w+\.go\b`)
)

// checkFileLists holds the list of files in a doc.go against the files.
func checkFileLists(repo *Repo) []Fault {
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		doc := slices.IndexFunc(pkg.Files, func(file *source.File) bool { return path.Base(file.Path) == "doc.go" })
		if doc < 0 {
			continue
		}
		listed := map[string]bool{"doc.go": true}
		for _, item := range listItem.FindAllStringSubmatch(pkg.Files[doc].AST.Doc.Text(), -1) {
			for _, name := range fileName.FindAllString(item[1], -1) {
				listed[name] = true
				if _, err := fs.Stat(repo.FS, path.Join(pkg.Dir, name)); err != nil {
					faults = append(faults, fault(pkg.Files[doc].Path, 0, "lists %s, which does not exist", name))
				}
			}
		}
		for _, file := range pkg.Files {
			if name := path.Base(file.Path); slices.Contains(whole, pkg.Dir) && !file.Test && !listed[name] {
				faults = append(faults, fault(pkg.Files[doc].Path, 0, "does not list %s", name))
			}
		}
	}
	return faults
}

// top is what belongs at the top of the repository, besides names that begin with a dot.
var top = []string{"chapters", "internal", "viz", "cmd", "docs", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE"}

// checkTop keeps the top a table of contents. What .gitignore lists with a leading slash is not part of it.
func checkTop(repo *Repo) []Fault {
	entries, err := fs.ReadDir(repo.FS, ".")
	if err != nil {
		return []Fault{fault(".", 0, "%v", err)}
	}
	ignore, _ := fs.ReadFile(repo.FS, ".gitignore") // without one nothing is ignored
	ignored := strings.Fields(string(ignore))
	var faults []Fault
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || slices.Contains(top, name) || slices.Contains(ignored, "/"+name) || slices.Contains(ignored, "/"+name+"/") {
			continue
		}
		faults = append(faults, fault(name, 0, "does not belong at the top; there may be %s", strings.Join(top, ", ")))
	}
	return faults
}
