package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"listwatch/internal/check/compat/program"
)

// rows splits a table that kubectl printed into rows of columns. No cell of these tests holds two spaces in a row.
func rows(table string) [][]string {
	var rows [][]string
	for line := range strings.Lines(table) {
		var row []string
		for cell := range strings.SplitSeq(strings.TrimSpace(line), "  ") {
			if cell = strings.TrimSpace(cell); cell != "" {
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// row returns the row whose first cell is name, or nil.
func row(table, name string) []string {
	for _, row := range rows(table) {
		if len(row) > 0 && row[0] == name {
			return row
		}
	}
	return nil
}

func TestKubectlGetPodsShowsAPodComingToLife(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	k := kubectlFor(t, v)
	create(t, k, podManifest("a"))
	program.Eventually(t, patience, func() (bool, string) {
		out := k.Run(t, "get", "pods")
		return slices.Equal(head(row(out, "a"), 4), []string{"a", "1/1", "Running", "0"}), out
	})
	out := k.Run(t, "get", "pods")
	if got, want := rows(out)[0], []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
}

func head(row []string, n int) []string { return row[:min(n, len(row))] }

func TestKubectlWideNamesNodeAndAddress(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	k := kubectlFor(t, v)
	create(t, k, podManifest("a"))
	program.Eventually(t, patience, func() (bool, string) {
		out := k.Run(t, "get", "pods", "-o", "wide")
		columns, pod := rows(out)[0], row(out, "a")
		ip, node := slices.Index(columns, "IP"), slices.Index(columns, "NODE")
		holds := ip > 0 && node > 0 && len(pod) > node && strings.Count(pod[ip], ".") == 3 && pod[node] != "<none>"
		return holds, out
	})
}

func TestKubectlGetYAMLIsTheWholePod(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	k := kubectlFor(t, v)
	create(t, k, podManifest("a"))
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(k.Run(t, "get", "pod", "a", "-o", "yaml")), &pod); err != nil {
		t.Fatal(err)
	}
	if pod.Kind != "Pod" || pod.APIVersion != "v1" || pod.Name != "a" || pod.Namespace != "default" {
		t.Errorf("got %s %s %s/%s, want v1 Pod default/a", pod.APIVersion, pod.Kind, pod.Namespace, pod.Name)
	}
	if pod.UID == "" || pod.ResourceVersion == "" || pod.CreationTimestamp.IsZero() {
		t.Errorf("uid %q, resourceVersion %q, created %v: want all three", pod.UID, pod.ResourceVersion,
			pod.CreationTimestamp)
	}
	if len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Image != "example.test/main:1" {
		t.Errorf("containers %v", pod.Spec.Containers)
	}
}

func TestKubectlWatchPrintsEveryPhaseAndTheEnd(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	k := kubectlFor(t, v)
	create(t, k, podManifest("before"))
	watch := program.Start(t, k.Command("get", "pods", "-w", "--output-watch-events"))
	program.Eventually(t, patience, func() (bool, string) { // it has listed: what follows it is told of
		return strings.Contains(watch.Stdout.String(), "before"), watch.Stdout.String() + watch.Stderr.String()
	})
	create(t, k, podManifest("a"))
	waitFor := func(event, status string) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			for _, row := range rows(watch.Stdout.String()) {
				if len(row) > 3 && row[0] == event && row[1] == "a" && row[3] == status {
					return true, ""
				}
			}
			return false, "want " + event + " with " + status + " in\n" + watch.Stdout.String() + watch.Stderr.String()
		})
	}
	waitFor("ADDED", "Pending")
	waitFor("MODIFIED", "Running")
	k.Run(t, "delete", "pod", "a")
	program.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(watch.Stdout.String(), "DELETED"), watch.Stdout.String()
	})
}

func TestKubectlDeleteWaitsUntilThePodIsGone(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	k := kubectlFor(t, v)
	create(t, k, podManifest("a"))
	program.Eventually(t, patience, func() (bool, string) {
		out := k.Run(t, "get", "pods")
		return strings.Contains(out, "Running"), out
	})
	if out := k.Run(t, "delete", "pod", "a"); !strings.Contains(out, `"a" deleted`) {
		t.Errorf("kubectl delete said %q", out)
	}
	if out := k.Run(t, "get", "pods", "-o", "name"); out != "" {
		t.Errorf("after delete returned kubectl still shows %q", out)
	}
}

func TestKubectlAPIResources(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	out := kubectlFor(t, v).Run(t, "api-resources")
	for _, want := range [][]string{
		{"configmaps", "cm", "v1", "true", "ConfigMap"},
		{"events", "ev", "v1", "true", "Event"},
		{"namespaces", "ns", "v1", "false", "Namespace"},
		{"nodes", "no", "v1", "false", "Node"},
		{"pods", "po", "v1", "true", "Pod"},
	} {
		if got := row(out, want[0]); !slices.Equal(got, want) {
			t.Errorf("row %q, want %q in\n%s", got, want, out)
		}
	}
}

func TestKubectlSelectorsChoosePods(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	k := kubectlFor(t, v)
	create(t, k, podManifest("a"))
	create(t, k, podManifest("b"))
	for _, c := range []struct{ flag, selector, want string }{
		{"-l", "app=a", "pod/a\n"},
		{"-l", "app!=a", "pod/b\n"},
		{"--field-selector", "metadata.name=b", "pod/b\n"},
		{"--field-selector", "status.phase=Pending", "pod/a\npod/b\n"},
		{"--field-selector", "spec.nodeName=node1", ""},
	} {
		if got := k.Run(t, "get", "pods", "-o", "name", c.flag, c.selector); got != c.want {
			t.Errorf("%s %s chooses %q, want %q", c.flag, c.selector, got, c.want)
		}
	}
}

func TestKubectlNamesWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	cmd := kubectlFor(t, v).Command("get", "pod", "none")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `Error from server (NotFound): pods "none" not found`) {
		t.Errorf("kubectl get pod none: %v\n%s", err, out)
	}
}
