package kubectl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// TestAServerElsewhere is what docs/BEYOND.md shows: kubectl proxy, the lens on it, a kubectl through the lens, and our
// informers. The server is another program of ours, and in the heavy form the real kube-apiserver on a real etcd.
func TestAServerElsewhere(t *testing.T) {
	t.Parallel()
	var flags []string
	if os.Getenv("FULL") != "" {
		flags = program.StartKubeAPIServer(t, program.StartEtcd(t))
	} else {
		flags = []string{"-s", program.StartViz(t, "-flight=off", "-demo=false", "-controllers=false").URL}
	}
	proxy := program.StartKubectlProxy(t, flags)
	lens := program.StartViz(t, "-flight=off", "-server", proxy, "-server-writes")
	kubectl := program.KubectlFor(t, lens)
	t.Logf("%s", kubectl.Run(t, "get", "--raw", "/version"))

	watching := program.Start(t, kubectl.Command("get", "configmaps", "-l", "app=web", "-w", "--output-watch-events",
		"--no-headers"))
	told := func(point, text string, n int) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			var log struct {
				Records []struct{ Resource, Text string }
			}
			lens.Get(t, "/viz/records?point="+point, &log)
			got := 0
			for _, r := range log.Records {
				if r.Resource == "configmaps" && strings.HasPrefix(r.Text, text) {
					got++
				}
			}
			return got == n, fmt.Sprintf("%d %s of configmaps, want %d\n%s%s", got, point, n, watching.Stdout.String(),
				watching.Stderr.String())
		})
	}
	told("WireOpened", "kubectl/", 1)
	file := filepath.Join(t.TempDir(), "a.yaml")
	for _, value := range []string{"1", "2"} {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {app: web}}\ndata: {x: \"" + value +
			"\"}\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		kubectl.Run(t, "apply", "--server-side", "-f", file)
	}
	kubectl.Run(t, "delete", "-f", file)
	program.Eventually(t, patience, func() (bool, string) {
		said := watching.Stdout.String()
		return strings.Contains(said, "DELETED"), said
	})
	if said := strings.Fields(watching.Stdout.String()); strings.Join([]string{said[0], said[4], said[8]},
		" ") != "ADDED MODIFIED DELETED" {
		t.Errorf("kubectl was told %q", said)
	}
	told("FrameWritten", "", 3)

	kubectl.Run(t, "run", "web", "--image=example.test/web")
	program.Eventually(t, patience, func() (bool, string) {
		var guest struct {
			Watched []struct {
				Synced  bool
				Objects int
				Trouble string
			}
			Metrics map[string]map[string]float64
		}
		lens.Get(t, "/viz/guest", &guest)
		seen := guest.Watched[0]
		return seen.Synced && seen.Objects == 1 && guest.Metrics["pods"]["ring capacity"] > 0, seen.Trouble
	})
	t.Logf("in the log: %v", lens.Points(t))
}
