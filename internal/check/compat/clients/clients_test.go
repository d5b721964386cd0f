//go:build full

package clients

import (
	"slices"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
)

// programs lists the programs that the test runs, in order. do returns a program's results as lines. differs lists the
// lines that differ: "- " begins a line only from our server, "+ " a line only from the real server.
var programs = []struct {
	name    string
	do      func(t *testing.T, at *target) []string
	differs []string
}{
	{"controller-runtime 0.25.2 one by one", checks, differentUID},
	{"controller-runtime 0.25.2 two managers", books, nil},
	{"client-go 0.26.15", oldClient, nil},
	{"the path's controller, with client-go 0.37.2 and with controller-runtime 0.25.2", mirrored, nil},
	{"kube-scheduler 1.37.2 and kwok 0.8.0", schedule, nil},
	{"kube-controller-manager 1.37.2", replicate, nil},
	{"kube-state-metrics 2.15.0", stateMetrics, []string{"+ kube_pod_tolerations"}}, // the real server adds tolerations
	{"helm 3.18.6", helm, nil},
	{"k9s 0.50.18", k9s, []string{"- shows [logs-0]", "- shows [c: image i started on none]"}},
	{"stern 1.33.0", stern, []string{"- logs-0 c c: image i started on none"}},
	{"client-node 1.4.0", node, nil},
}

// differentUID is each server's refusal to delete another object of the same name.
var differentUID = []string{
	`- delete another of its name: Conflict Operation cannot be fulfilled on pods "` +
		`gated": Precondition failed: UID in precondition: UID, UID in object meta: UID`,
	`+ delete another of its name: Conflict Operation cannot be fulfilled on Pod "gated": the UID in the ` +
		`precondition (UID) does not match the UID in record (UID). ` +
		`The object might have been deleted and then recreated`,
}

func TestProgramsKnowNoDifference(t *testing.T) {
	facts := map[string][][]string{}
	run := func(t *testing.T, at *target) {
		for _, p := range programs {
			t.Run(p.name, func(t *testing.T) {
				start := time.Now()
				facts[p.name] = append(facts[p.name], p.do(t, at))
				t.Logf("%v", time.Since(start).Round(time.Second))
			})
		}
	}
	t.Run("ours", func(t *testing.T) { run(t, ours(t)) })
	t.Run("real", func(t *testing.T) {
		flags := program.StartKubeAPIServer(t, program.StartEtcd(t))
		run(t, through(t, program.StartKubectlProxy(t, flags)))
	})
	for _, p := range programs {
		if len(facts[p.name]) < 2 {
			continue // its own test has reported the reason
		}
		ours, real := facts[p.name][0], facts[p.name][1]
		var differs []string
		only := func(sign string, these, those []string) {
			for _, line := range these {
				if !slices.Contains(those, line) {
					differs = append(differs, sign+line)
				}
			}
		}
		only("- ", ours, real)
		only("+ ", real, ours)
		assert.True(t, slices.Equal(differs, p.differs),
			"%s: differs in\n%s\nwant\n%s", p.name, strings.Join(differs, "\n"), strings.Join(p.differs, "\n"))
		t.Logf("%s came to know:\n\t%s", p.name, strings.Join(ours, "\n\t"))
	}
}
