package policy

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"listwatch/chapters"
)

// sections are the headings that every chapter's README.md has, in this order. Others may come between them. Behind the
// last one comes nothing but the side roads.
var sections = []string{
	"The question",
	"The picture",
	"Watch it happen",
	"The walk",
	"Locks and goroutines",
	"What upstream does more",
	"What changed since the older descriptions",
	"Try it",
	"Questions",
}

// A chapter that begins with a first try has this heading in the place of the walk. Before it no excerpt is from the
// station.
const repair = "The repair"

// excerptOf is a line that quotes a declaration.
var excerptOf = regexp.MustCompile(`\]\(\S+ "(code|whole)[^"]*"\)`)

// firstTry is the file of a chapter's first tries.
const firstTry = "first_try_test.go"

// summary may still come behind the last section.
const summary = "You can now explain"

// appendix is where a chapter has its side roads, if it has any.
const appendix = "Appendix"

// checkChapters looks for what every chapter must have: a number, and prose with all sections.
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
	var faults []Fault
	_, err = fs.Stat(repo.FS, path.Join(dir, firstTry))
	tries := err == nil
	fenced := false
	line := 0
	for text := range strings.Lines(string(text)) {
		line++
		if strings.HasPrefix(text, "```") {
			fenced = !fenced
		}
		heading, ok := strings.CutPrefix(text, "## ")
		if ok && !fenced {
			headings = append(headings, strings.TrimSpace(heading))
		}
		early := tries && !slices.Contains(headings, repair)
		if early && excerptOf.MatchString(text) && !strings.Contains(text, "]("+firstTry+" ") {
			faults = append(faults, fault(name, line, "an excerpt of the station before %q", repair))
		}
	}
	if number := path.Base(dir)[:2]; !strings.HasPrefix(string(text), "# "+number+" · ") {
		faults = append(faults, fault(name, 1, "begins with %q", "# "+number+" · Title"))
	}
	at := 0
	for _, section := range sections {
		if section == "The walk" && tries {
			section = repair
		}
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
		if heading != headings[at] && heading != summary && heading != appendix {
			faults = append(faults, fault(name, 0, "the section %q comes after %q", heading, headings[at]))
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
		if strings.HasPrefix(name, ".") || slices.Contains(top, name) || slices.Contains(ignored, "/"+name) ||
			slices.Contains(ignored, "/"+name+"/") {
			continue
		}
		faults = append(faults, fault(name, 0, "does not belong at the top; there may be %s", strings.Join(top, ", ")))
	}
	return faults
}
