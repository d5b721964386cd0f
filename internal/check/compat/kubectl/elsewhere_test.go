package kubectl

import (
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
	lensed := func(fact func(client string, watch bool, frames int) bool) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			var report struct {
				Rows []struct {
					Ask struct {
						Client, Resource string
						Watch            bool
					}
					Frames int
				}
			}
			lens.Get(t, "/viz/lens", &report)
			for _, row := range report.Rows {
				if row.Ask.Resource == "configmaps" && fact(row.Ask.Client, row.Ask.Watch, row.Frames) {
					return true, ""
				}
			}
			return false, watching.Stdout.String() + watching.Stderr.String()
		})
	}
	lensed(func(_ string, watch bool, _ int) bool { return watch })
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
	lensed(func(client string, _ bool, frames int) bool {
		return strings.HasPrefix(client, "kubectl/") && frames == 3
	})

	kubectl.Run(t, "run", "web", "--image=example.test/web")
	program.Eventually(t, patience, func() (bool, string) {
		var guest struct {
			Watched []struct {
				Synced  bool
				Objects int
				Trouble string
			}
			Metrics map[string]map[string]string
		}
		lens.Get(t, "/viz/guest", &guest)
		seen := guest.Watched[0]
		return seen.Synced && seen.Objects == 1 && guest.Metrics["pods"]["ring capacity"] != "", seen.Trouble
	})
	t.Logf("in the log: %v", lens.Points(t))
}
