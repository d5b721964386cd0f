package kubectl

import (
	"os"
	"testing"

	"listwatch/internal/check/compat/program"
)

// TestAServerElsewhere is what docs/BEYOND.md shows: kubectl proxy, the lens on it, a kubectl through the lens, and our
// informers. The server is another program of ours, and in the heavy form the real kube-apiserver on a real etcd. Whole
// sessions through a lens are in TestSessions.
func TestAServerElsewhere(t *testing.T) {
	t.Parallel()
	var flags []string
	if os.Getenv("FULL") != "" {
		flags = program.StartKubeAPIServer(t, program.StartEtcd(t))
	} else {
		flags = []string{"-s", program.StartViz(t, "-flight=off", "-demo=false", "-controllers=false").URL}
	}
	lens := program.StartViz(t, "-flight=off", "-server", program.StartKubectlProxy(t, flags), "-server-writes")
	program.KubectlFor(t, lens).Run(t, "run", "web", "--image=example.test/web")
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
}
