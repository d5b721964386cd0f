package policy

import (
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// texts returns the files that match, by name.
func (r *Repo) texts(patterns ...string) map[string]string {
	texts := map[string]string{}
	for _, pattern := range patterns {
		names, _ := fs.Glob(r.FS, pattern) // the patterns are well formed
		for _, name := range names {
			text, err := fs.ReadFile(r.FS, name)
			if err != nil {
				panic(err) // it was listed a moment ago
			}
			texts[name] = string(text)
		}
	}
	return texts
}

var (
	// docTarget is the destination of a Markdown link without a title.
	docTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// docMethod is a method the way a debugger names it: cacher.(*Cacher).dispatchEvent.
	docMethod = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.\(\*([A-Za-z]\w*)\)\.([A-Za-z]\w*)`)
	// docSymbol is a link to a symbol of a chapter: [Cacher.dispatchEvent](../chapters/06-cacher/dispatch.go).
	docSymbol = regexp.MustCompile(`\[([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)\]\(([^)\s]*chapters/[^)\s]+/\w+\.go)\)`)
)

// checkDocs looks at docs/ and the README at the top: files that they link to exist, and declare the symbols that the
// links name; methods that they name for a debugger exist.
func checkDocs(repo *Repo) []Fault {
	var faults []Fault
	for name, text := range repo.texts("README.md", "docs/*.md") {
		for i, line := range strings.Split(text, "\n") {
			for _, what := range docFaults(repo, path.Dir(name), line) {
				faults = append(faults, fault(name, i+1, "%s", what))
			}
		}
	}
	return faults
}

// docFaults returns what is wrong with one line of a document in the folder dir.
func docFaults(repo *Repo, dir, line string) (faults []string) {
	for _, match := range docTarget.FindAllStringSubmatch(line, -1) {
		target, err := url.Parse(match[1])
		if err != nil {
			faults = append(faults, err.Error())
		} else if target.Scheme == "" && target.Path != "" {
			if _, err := fs.Stat(repo.FS, path.Join(dir, target.Path)); err != nil {
				faults = append(faults, match[1]+" does not exist")
			}
		}
	}
	for _, match := range docSymbol.FindAllStringSubmatch(line, -1) {
		file := path.Join(dir, match[2])
		pkg := repo.Tree.Holding(file)
		if pkg == nil || strings.HasSuffix(match[1], ".go") {
			continue // there is no such file, or the link's text is the name of a file
		}
		if _, err := pkg.Find(match[1], path.Base(file)); err != nil {
			faults = append(faults, err.Error())
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

var (
	// unixOnly is what a Unix shell or its tools understand, and PowerShell does not. The last two it takes apart: it
	// drops double quotes in an argument, and cuts an argument that begins with - at its first dot.
	unixOnly = regexp.MustCompile(`\$[\w({]|&&|\|\||\|\s*(?:grep|head|tail|tr|sed|cut|wc|sort|uniq|awk|xargs|stdbuf|base64)\b|` +
		`\b(?:seq|pgrep|sleep|timeout|export)\s|\bfor \w+ in\b|<<|/dev/|2>|\\$|&$|^\w+=|^\(|\w\(\) \{|'[^']*"[^']*'|\s-\w[^\s'"]*\.`)

	// piped is a text that goes through a pipe. That way it arrives whole.
	piped = regexp.MustCompile(`^echo '[^']*' \| `)

	// onlyHere are commands that not every system has, each with what a page says about it that uses it.
	onlyHere = map[string]string{
		"curl ": "In PowerShell, `curl` is `curl.exe`", "make ": "Without `make`, type what it runs",
	}
)

// checkShells looks at what a reader types on a page: what stands behind "$ " in a console, and how it goes on. Every
// reader's shell understands it. A console that is for Linux says so, and is left out.
func checkShells(repo *Repo) (faults []Fault) {
	for name, text := range repo.texts("README.md", "docs/*.md", "chapters/*/README.md") {
		console := false
		for i, line := range strings.Split(text, "\n") {
			if info, fence := strings.CutPrefix(line, "```"); fence {
				console = strings.HasPrefix(info, "console") && !strings.HasPrefix(info, "console linux")
			}
			command := strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "> ")
			if !console || command == line {
				continue
			}
			if found := unixOnly.FindString(piped.ReplaceAllString(command, "")); found != "" {
				faults = append(faults, fault(name, i+1,
					"%q is for a Unix shell: write what PowerShell understands, too", found))
			}
			for uses, says := range onlyHere {
				if strings.HasPrefix(command, uses) && !strings.Contains(text, says) {
					faults = append(faults, fault(name, i+1, "the page does not say %q", says))
				}
			}
		}
	}
	return faults
}
