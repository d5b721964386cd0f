package policy

import (
	"slices"
	"strings"

	"listwatch/internal/observe/probe"
	"listwatch/internal/text/source"
)

// lanesWithoutRoutine are goroutines that a point names as its lane and that are not started by a routine.Group:
// the HTTP server starts one for each request.
var lanesWithoutRoutine = []string{"handlers.WatchServer"}

// checkMoments holds that a declared point is exactly one line of the program, on its own, with the declared args, by
// the method its sentence needs, under a lock if and only if it is declared so.
func checkMoments(repo *Repo) []Fault {
	infos := make(map[string]*probe.Info)
	for _, point := range probe.Points() {
		infos[point.String()] = point.Info()
	}
	return momentFaults(repo, infos)
}

func momentFaults(repo *Repo, infos map[string]*probe.Info) []Fault {
	moments := repo.Tree.Moments(func(name string) bool { return infos[name] != nil })
	places := make(map[string][]source.Moment)
	var faults []Fault
	for _, moment := range moments {
		if !product(moment.Package.Dir) {
			continue
		}
		if moment.Method == "" {
			faults = append(faults, fault(moment.File.Path, moment.Line, "%s is mentioned, not reported: a point is "+
				"a source line", moment.Point))
			continue
		}
		places[moment.Point] = append(places[moment.Point], moment)
		faults = append(faults, momentFault(moment, infos[moment.Point])...)
	}
	routines := append(repo.Tree.Routines(), lanesWithoutRoutine...)
	for name, info := range infos {
		if info.Op == probe.Sum {
			continue // reported by probe itself, of what no station reports
		}
		if n := len(places[name]); n == 0 {
			faults = append(faults, fault("internal/observe/probe/points.go", 0, "%s is reported nowhere", name))
		} else if n > 1 {
			for _, moment := range places[name] {
				faults = append(faults, fault(moment.File.Path, moment.Line,
					"%s is reported from %d lines, not from one", name, n))
			}
		}
		for _, lane := range info.Lanes() {
			if !slices.Contains(routines, lane) {
				faults = append(faults, fault("internal/observe/probe/points.go", 0, "%s names the lane %s, but no "+
					"goroutine of that name is started", name, lane))
			}
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.String(), b.String()) })
	return faults
}

// product reports whether a folder's code runs in the program and reports moments: stations do, and what serves them,
// and what acts on them.
func product(dir string) bool {
	return chapterNumber(dir) > 0 || strings.HasPrefix(dir, "cmd/") || dir == "internal/play/sandbox" ||
		dir == "cmd/internal/machine"
}

// momentFault returns what is wrong with one report.
func momentFault(moment source.Moment, info *probe.Info) []Fault {
	var faults []Fault
	complain := func(format string, args ...any) {
		faults = append(faults, fault(moment.File.Path, moment.Line, moment.Point+" "+format, args...))
	}
	if want := len(info.ArgNames()); moment.Spread || moment.Args != want {
		complain("is reported with %d args, declared are %d: %q", moment.Args, want, info.Args)
	}
	if !moment.OwnLine {
		complain("does not stand on its own line")
	}
	if strings.Contains(info.Says, "{type}") && moment.Method != "Event" {
		complain("says {type} and is reported by %s, which has none", moment.Method)
	}
	if strings.Contains(info.Says, "{text}") && moment.Method != "Text" {
		complain("says {text} and is reported by %s, which has none", moment.Method)
	}
	if info.Locked && !moment.Locked {
		complain("is declared Locked, but %s holds no lock there", moment.Function)
	}
	if !info.Locked && moment.Locked {
		complain("is not declared Locked, but %s holds a lock there: the world must not be held at it", moment.Function)
	}
	return faults
}
