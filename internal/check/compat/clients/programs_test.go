//go:build full

package clients

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// unlike matches UIDs, which differ from run to run.
var unlike = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// output runs a program, which must exit with 0, and returns the lines of its output with each UID masked.
func output(t *testing.T, cmd *exec.Cmd) []string {
	t.Helper()
	p := program.Start(t, cmd)
	code := p.ExitCode(t, program.HangsAfter)
	require.True(t, code == 0, "%s: exit status %d\n%s%s", cmd, code, p.Stdout.String(), p.Stderr.String())
	return strings.Split(strings.TrimSpace(unlike.ReplaceAllString(p.Stdout.String(), "UID")), "\n")
}

// checks runs the program of that name, which sends the requests that a controller may send.
func checks(t *testing.T, at *target) []string {
	return output(t, exec.Command(program.BuildOf(t, "checks", "."), "-server", at.url))
}

// oldClient runs oldclient, which uses the leader election, informers and queue of 2022.
func oldClient(t *testing.T, at *target) []string {
	return output(t, exec.Command(program.BuildOf(t, "oldclient", "."), "-server", at.url))
}

// mirrored checks that the controller in checks/mirror labels an existing pod and a new one. The same controller on
// controller-runtime must do so, too.
func mirrored(t *testing.T, at *target) (facts []string) {
	const module = "listwatch/internal/check/compat/clients/checks/"
	for _, source := range []string{"mirror", "mirror/withruntime"} {
		name := path.Base(source)
		at.Run(t, "create", "namespace", name)
		at.Run(t, "-n", name, "run", "early", "--image=i")
		at.Run(t, "-n", name, "create", "configmap", "labels", "--from-literal=team=blue")
		p := program.Start(t, exec.Command(program.BuildOf(t, "checks", module+source), "-server", at.url))
		for _, pod := range []string{"early", "late"} {
			if pod == "late" {
				at.Run(t, "-n", name, "run", pod, "--image=i")
			}
			at.Run(t, "-n", name, "wait", "pod/"+pod, "--for=jsonpath={.metadata.labels.team}=blue", "--timeout=60s")
			facts = append(facts, name+" labels "+pod)
		}
		p.Interrupt(t)
	}
	return facts
}

// node runs the official JavaScript client, if npm is installed.
func node(t *testing.T, at *target) []string {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Log("NOT RUN: the JavaScript client needs Node and npm, which are not installed here")
		return nil
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = "node"
	output(t, install)
	run := exec.Command("node", "node/main.mjs")
	run.Env = append(os.Environ(), "KUBECONFIG="+at.kubeconfig)
	return output(t, run)
}

// stateMetrics returns the names of the metrics that kube-state-metrics serves for one namespace.
func stateMetrics(t *testing.T, at *target) []string {
	at.Run(t, "create", "namespace", "ksm")
	at.Run(t, "-n", "ksm", "create", "secret", "generic", "s", "--from-literal=a=b")
	at.Run(t, "-n", "ksm", "create", "configmap", "c")
	at.Run(t, "-n", "ksm", "create", "service", "clusterip", "web", "--tcp=80")
	at.Run(t, "-n", "ksm", "run", "a", "--image=i")
	const port = "18181"
	program.Start(t, exec.Command(program.BuildOf(t, "kubestatemetrics", "k8s.io/kube-state-metrics/v2"),
		"--apiserver", at.url, "--host", "127.0.0.1", "--port", port, "--telemetry-host", "127.0.0.1",
		"--telemetry-port", "18182", "--resources", "pods,secrets,configmaps,services,namespaces,nodes,leases"))
	series := func() (names []string) {
		answer, err := http.Get("http://127.0.0.1:" + port + "/metrics")
		if err != nil {
			return nil
		}
		defer answer.Body.Close()
		text := require.Value(io.ReadAll(answer.Body))(t)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `{namespace="ksm"`) {
				name, _, _ := strings.Cut(line, "{")
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	seen := func(metric string, want bool) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			names := series()
			return slices.Contains(names, metric) == want, fmt.Sprint(names)
		})
	}
	for _, each := range []string{"pod", "secret", "configmap", "service"} {
		seen("kube_"+each+"_info", true)
	}
	names := series()
	at.Run(t, "-n", "ksm", "delete", "pod", "a", "--now")
	seen("kube_pod_info", false)
	return names
}

// chart is a helm chart without kinds that need a kubelet.
var chart = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
	"values.yaml": "text: one\n",
	"templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {text: "{{ .Values.text }}"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: shop}
stringData: {text: "{{ .Values.text }}"}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {clusterIP: None, ports: [{port: 80}]}
`}

// helm installs a release, upgrades it, rolls it back and removes it. Helm keeps the release's state in secrets.
func helm(t *testing.T, at *target) (facts []string) {
	dir := t.TempDir()
	for name, text := range chart {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	binary := program.BuildOf(t, "helm", "helm.sh/helm/v3/cmd/helm")
	for _, line := range []string{
		"install shop " + dir + " --wait --timeout 1m", "upgrade shop " + dir + " --set text=two",
		"rollback shop 1", "history shop", "list", "uninstall shop", "list",
	} {
		cmd := exec.Command(binary, strings.Fields(line)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+at.kubeconfig, "HOME="+dir)
		for _, said := range output(t, cmd) {
			if !strings.HasPrefix(said, "LAST DEPLOYED") {
				facts = append(facts, strings.Join(strings.Fields(dates.ReplaceAllString(said, "")), " "))
			}
		}
		if strings.HasPrefix(line, "rollback") {
			facts = append(facts, at.Run(t, "get", "secret", "shop", "-o", "jsonpath={.data}"),
				at.Run(t, "get", "secrets", "--field-selector", "type=helm.sh/release.v1", "-o", "name"))
		}
	}
	return facts
}

var dates = regexp.MustCompile(`\S+ +\S+ +\d+ \d\d:\d\d:\d\d \d{4}|\d{4}-\d\d-\d\d \S+ \S+ \S+`)

// startK9s starts k9s in a terminal of its own, with a view of pods. It returns a function that runs tmux commands on
// that terminal, or nil without tmux.
func startK9s(t *testing.T, at *target) (tmux func(args ...string) string) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Log("NOT RUN: k9s needs a terminal, and tmux is not installed here")
		return nil
	}
	home := t.TempDir()
	socket := filepath.Join(home, "tmux")
	tmux = func(args ...string) string {
		cmd := exec.Command("tmux", append([]string{"-S", socket}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home,
			"TERM=xterm-256color", "KUBECONFIG="+at.kubeconfig, "LANG=C.UTF-8")
		return strings.Join(output(t, cmd), "\n")
	}
	binary := program.BuildOf(t, "k9s", "github.com/derailed/k9s")
	tmux("new-session", "-d", "-x", "160", "-y", "40", binary+" --splashless -c pods")
	t.Cleanup(func() { tmux("kill-server") })
	return tmux
}

// stern starts stern, creates a pod, and waits for a line of the pod's log.
func stern(t *testing.T, at *target) []string {
	if at.restart == nil {
		return nil // on a real server, only a kubelet has logs
	}
	p := program.Start(t, exec.Command(program.BuildOf(t, "stern", "github.com/stern/stern"), "logs", "--color=never",
		"--only-log-lines", "--kubeconfig", at.kubeconfig))
	at.makeLog(t)
	const line = "logs-0 c c: image i started on none"
	program.Eventually(t, patience, func() (bool, string) {
		return slices.Contains(p.Stdout.Lines(), line), p.Stdout.String() + p.Stderr.String()
	})
	at.Run(t, "delete", "pod", "logs-0", "--force", "--grace-period=0")
	return []string{line}
}

// makeLog creates a pod with a container status, from which our server makes a log.
func (at *target) makeLog(t *testing.T) {
	t.Helper()
	at.apply(t, pods("logs", 0, 1, "nodeName: none,"))
	at.Run(t, "patch", "pod", "logs-0", "--subresource=status", "-p", `{"status":{"containerStatuses":[{"name":"c",
		"image":"i","imageID":"","containerID":"none://c","ready":true,"restartCount":0,
		"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}}`)
}

// k9s opens views of k9s, and returns the texts that they showed, or nil without tmux.
func k9s(t *testing.T, at *target) (facts []string) {
	at.apply(t, pods("k9s", 0, 2, ""))
	tmux := startK9s(t, at)
	if tmux == nil {
		return nil
	}
	shows := func(want ...string) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			screen := tmux("capture-pane", "-p")
			for _, text := range want {
				if !strings.Contains(screen, text) {
					return false, screen
				}
			}
			return true, ""
		})
		facts = append(facts, fmt.Sprint("shows ", want))
	}
	keys := func(line string) { tmux("send-keys", line, "Enter") }
	shows("k9s-0", "k9s-1")
	at.apply(t, pods("k9s", 2, 3, ""))
	shows("k9s-2")
	at.Run(t, "delete", "pod", "k9s-2", "--now")
	tmux("send-keys", "d")
	shows("Name:", "Namespace:", "app=k9s")
	tmux("send-keys", "Escape")
	shows("pods(") // wait, because k9s would read Escape and the next key as one sequence
	for _, view := range []string{"configmaps", "secrets", "namespaces", "services", "leases", "serviceaccounts"} {
		keys(":" + view)
		shows(view + "(")
	}
	if at.restart != nil { // on a real server, only a kubelet has logs
		at.makeLog(t)
		keys(":pods /logs")
		shows("logs-0")
		tmux("send-keys", "l")
		shows("c: image i started on none")
		tmux("send-keys", "Escape")
		shows("pods(")
		at.Run(t, "delete", "pod", "logs-0", "--force", "--grace-period=0")
	}
	keys(":pulses")
	shows("Pods", "Deployments")
	at.Run(t, "delete", "pods", "-l", "app=k9s", "--now")
	return facts
}
