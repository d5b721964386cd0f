package takes

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/check/sandboxtest"
	"listwatch/internal/observe/probe"
)

const (
	numbersHeading = "### The story in numbers\n"
	numbersTable   = "| station | what happens |\n|---|---|\n"
	numbersVersion = 9 // the binding of the first pod
)

// numbersPoints are the moments of one change that the table has, in the order of the path. The cache's reflector comes
// before its ring.
var numbersPoints = []probe.Point{probe.TxnCommitted, probe.RingAppend, probe.DispatchStarted, probe.ReflectorReceived,
	probe.IndexerUpdated}

func numbersOrder(r probe.Record) int {
	if r.Subject == "cacher" && r.Point == probe.ReflectorReceived {
		return slices.Index(numbersPoints, probe.TxnCommitted)
	}
	return slices.Index(numbersPoints, r.Point)
}

// playNumbers creates a pod, and tells what happens to its binding, in the order of the path.
func playNumbers(t *testing.T) string {
	var out strings.Builder
	out.WriteString(numbersTable)
	sandboxtest.Run(t, 1<<16, func(t *testing.T, w *sandboxtest.Fixture) {
		first := w.Log.Last()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}}}
		client := w.Pipeline.Client.NewClient("kubectl", nil)
		require.NoError(t, client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
		time.Sleep(4 * time.Second) // bound, arrived, running
		synctest.Wait()
		records, _ := w.Log.Since(nil, first, 1<<16)
		told := slices.DeleteFunc(slices.Clone(records), func(r probe.Record) bool {
			return r.Resource != "pods" || r.RV != numbersVersion || !slices.Contains(numbersPoints, r.Point)
		})
		slices.SortStableFunc(told, func(a, b probe.Record) int {
			return cmp.Or(cmp.Compare(numbersOrder(a), numbersOrder(b)), cmp.Compare(a.Subject, b.Subject))
		})
		for _, r := range told {
			fmt.Fprintf(&out, "| %s | %s |\n", r.Point.Info().Station, r.Sentence())
		}
	})
	return out.String()
}

// TestTheStoryInNumbersIsOfThisProgram compares what chapter 15 says with a run. With -update it writes it.
func TestTheStoryInNumbersIsOfThisProgram(t *testing.T) {
	table := playNumbers(t)
	assert.Equal(t, table, playNumbers(t), "another time")
	file := filepath.Join("..", "..", "..", "chapters", "15-pipeline", "README.md")
	text := string(require.Value(os.ReadFile(file))(t))
	before, rest, titled := strings.Cut(text, numbersHeading)
	lead, rest, begun := strings.Cut(rest, numbersTable)
	_, rest, ended := strings.Cut(rest, "\n\n")
	require.True(t, titled && begun && ended && !strings.Contains(lead, "\n## "), "no table below %q", numbersHeading)
	want := before + numbersHeading + lead + table + "\n" + rest
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	assert.True(t, *update || want == text, "%s is stale: go test ./internal/observe/takes -run Numbers -update\n%s",
		file,
		table)
}
