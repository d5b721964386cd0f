package policy

import (
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
)

var (
	// docTarget is the destination of a Markdown link without a title.
	docTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// docMethod is a method the way a debugger names it: cacher.(*Cacher).dispatchEvent.
	docMethod = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.\(\*([A-Za-z]\w*)\)\.([A-Za-z]\w*)`)
)

// checkDocs looks at docs/ and the README at the top: files that they link to exist, and so do methods that they name
// for a debugger.
func checkDocs(repo *Repo) []Fault {
	names, err := fs.Glob(repo.FS, "docs/*.md")
	if err != nil {
		return []Fault{fault("docs", 0, "%v", err)}
	}
	var faults []Fault
	for _, name := range append(names, "README.md") {
		text, err := fs.ReadFile(repo.FS, name)
		if err != nil {
			faults = append(faults, fault(name, 0, "%v", err))
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, what := range docFaults(repo, name, line) {
				faults = append(faults, fault(name, i+1, "%s", what))
			}
		}
	}
	return faults
}

// docFaults returns what is wrong with one line of a document.
func docFaults(repo *Repo, name, line string) []string {
	var faults []string
	for _, match := range docTarget.FindAllStringSubmatch(line, -1) {
		target, err := url.Parse(match[1])
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		if target.Scheme != "" || target.Path == "" {
			continue
		}
		if _, err := fs.Stat(repo.FS, path.Join(path.Dir(name), target.Path)); err != nil {
			faults = append(faults, match[1]+" does not exist")
		}
	}
	for _, match := range docMethod.FindAllStringSubmatch(line, -1) {
		found, known := false, false
		for _, pkg := range repo.Tree.Packages {
			if pkg.Name == match[1] {
				known = true
				found = found || declared(pkg, match[2]+"."+match[3])
			}
		}
		if known && !found {
			faults = append(faults, match[0]+" does not exist")
		}
	}
	return faults
}
