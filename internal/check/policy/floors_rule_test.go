package policy

import (
	"slices"
	"strings"
)

// floors are the rooms of the house from the ground up. A package imports its own floor and those below it;
// docs/ARCHITECTURE.md says what is behind each door. Chapters are floors of their own, by their numbers.
var floors = []string{
	"docs", "internal/kube", "internal/observe", "chapters", "internal/server", "chapters/15-pipeline",
	"internal/text", "internal/play", "viz", "cmd/internal/machine", "cmd", "internal/check",
}

// floorOf returns the floor of a folder, -1 if it stands on none.
func floorOf(dir string) int {
	last := -1
	for i, floor := range floors {
		if (dir == floor || strings.HasPrefix(dir, floor+"/")) && (last < 0 || len(floor) > len(floors[last])) {
			last = i
		}
	}
	return last
}

// checkFloors holds that no import leads up: from no floor to a higher one, and from no chapter to itself or a later
// one. Tests keep the order of the chapters, too, because who reads chapter 3 has not read chapter 6; otherwise they
// import what they need.
func checkFloors(repo *Repo) []Fault {
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		from, chapter := floorOf(pkg.Dir), chapterNumber(pkg.Dir)
		if from < 0 {
			faults = append(faults, fault(pkg.Dir, 0, "stands on no floor; there are %s", strings.Join(floors, ", ")))
			continue
		}
		for _, file := range pkg.Files {
			for _, spec := range file.AST.Imports {
				to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), Module+"/")
				if !ours {
					continue // .golangci.yml says which modules chapters may use
				}
				complain := func(reason string) {
					faults = append(faults, fault(file.Path, repo.Tree.Line(spec.Pos()), "imports %s: %s", to, reason))
				}
				other := chapterNumber(to)
				switch {
				case chapter > 0 && other > 0 && (other > chapter || other == chapter && !file.Test):
					complain("a chapter imports only chapters with lower numbers")
				case !file.Test && floorOf(to) > from:
					complain("it is on a higher floor")
				}
			}
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Where, b.Where) })
	return faults
}
