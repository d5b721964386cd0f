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

// A chapter that begins with first tries has this heading in the place of the walk. Before it no excerpt is from the
// station.
const repair = "The repair"

// excerptOf is a line that quotes a declaration.
var excerptOf = regexp.MustCompile(`\]\(\S+ "(code|whole)[^"]*"\)`)

// firstTry is the file of a chapter's first tries.
const firstTry = "first_try_test.go"

// after are what may still come behind the last section: a summary and side roads.
var after = []string{"You can now explain", "Appendix"}

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

func checkProse(repo *Repo, dir string) (faults []Fault) {
	name := path.Join(dir, "README.md")
	prose, err := fs.ReadFile(repo.FS, name)
	if err != nil {
		return []Fault{fault(name, 0, "the chapter has no prose")}
	}
	want := slices.Clone(sections)
	_, err = fs.Stat(repo.FS, path.Join(dir, firstTry))
	tries := err == nil
	if tries {
		want[slices.Index(want, "The walk")] = repair
	}
	if title := "# " + path.Base(dir)[:2] + " · "; !strings.HasPrefix(string(prose), title) {
		faults = append(faults, fault(name, 1, "begins with %q", title+"Title"))
	}
	fenced, repaired, next := false, !tries, 0 // next: the section that comes next
	for i, line := range strings.Split(string(prose), "\n") {
		heading, ok := strings.CutPrefix(line, "## ")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case !repaired && excerptOf.MatchString(line) && !strings.Contains(line, "]("+firstTry+" "):
			faults = append(faults, fault(name, i+1, "an excerpt of the station before %q", repair))
		case !ok || fenced:
		case next == len(want) && !slices.Contains(after, heading):
			faults = append(faults, fault(name, i+1, "the section %q comes after %q", heading, want[next-1]))
		case next < len(want) && heading == want[next]:
			next++
			repaired = repaired || heading == repair
		}
	}
	if next < len(want) {
		faults = append(faults, fault(name, 0, "the section %q is missing, or out of order", want[next]))
	}
	return faults
}
