//go:build full

package clients

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// stages lists the files of kwok's module that define the simulated behavior.
var stages = []string{"node/fast/node-initialize", "node/heartbeat/node-heartbeat", "pod/fast/pod-complete",
	"pod/fast/pod-delete", "pod/fast/pod-ready"}

// startCluster starts the unmodified kube-scheduler and kwok with n simulated nodes.
func startCluster(t *testing.T, at *target, n int) {
	t.Helper()
	kwok := program.BuildOf(t, "kwok", "sigs.k8s.io/kwok/cmd/kwok") // this also downloads its module
	find := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	find.Dir = "kwok"
	module := output(t, find)[0]
	text := ""
	for _, stage := range stages {
		data := require.Value(os.ReadFile(filepath.Join(module, "kustomize/stage", stage+".yaml")))(t)
		text += "---\n" + string(data)
	}
	config := filepath.Join(t.TempDir(), "stages.yaml")
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	program.Start(t, exec.Command(kwok, "--kubeconfig", at.kubeconfig, "-c", config, "--manage-all-nodes=true"))
	program.Start(t, exec.Command(program.BuildOf(t, "../kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
		"--kubeconfig", at.kubeconfig, "--secure-port=0"))
	nodes, ready := "", ""
	for i := range n {
		nodes += fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: kwok-%d}\nstatus: {allocatable: "+
			"{cpu: 32, memory: 256Gi, pods: 110}, capacity: {cpu: 32, memory: 256Gi, pods: 110}}\n", i)
		ready += "True "
	}
	at.apply(t, nodes)
	at.eventually(t, strings.TrimSpace(ready), "get", "nodes", "-o",
		`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
	at.eventually(t, "kube-scheduler", "get", "lease", "-n", "kube-system", "-o",
		`jsonpath={.items[?(@.metadata.name=="kube-scheduler")].metadata.name}`)
}

// schedule waits until 30 pods run. It returns what kube-scheduler and kwok did with them and with pods that must wait.
func schedule(t *testing.T, at *target) []string {
	startCluster(t, at, 4)
	at.Run(t, "cordon", "kwok-0")
	at.apply(t, pods("load", 0, 30, "")+pods("other", 0, 1, "schedulerName: other,")+pods("gated", 0, 1,
		"schedulingGates: [{name: example.com/g}],")+strings.Replace(pods("large", 0, 1, ""), "100m", "100", 1))
	running := at.runs(t, "load", 30)
	on := map[string]bool{}
	for _, pod := range running {
		on[pod.Spec.NodeName] = true
	}
	failed := []string{"get", "events", "--field-selector", "reason=FailedScheduling,involvedObject.name=large-0", "-o",
		"jsonpath={.items[0].message}"}
	program.Eventually(t, patience, func() (bool, string) {
		said := at.Run(t, "get", "events", "--field-selector", "involvedObject.name=large-0")
		return strings.Contains(said, "FailedScheduling"), said
	})
	facts := []string{fmt.Sprint("pods on a cordoned node: ", on["kwok-0"], ", nodes in use: ", len(on)),
		at.Run(t, failed...)}
	scheduled := at.Run(t, "get", "events", "--field-selector", "reason=Scheduled", "-o", "name")
	facts = append(facts, fmt.Sprint("Scheduled: ", strings.Count(scheduled, "\n")))
	for _, name := range []string{"large-0", "other-0", "gated-0"} {
		facts = append(facts, name+": "+at.Run(t, "get", "pod", name, "-o",
			`jsonpath={.status.phase} {.spec.nodeName} {.status.conditions[?(@.type=="PodScheduled")].reason}`))
	}
	at.Run(t, "delete", "pods", "-l", "app in (load, other, gated, large)", "--now", "--wait=false")
	at.eventually(t, "", "get", "pods", "-l", "app in (load, other, gated, large)", "-o", "name")
	return facts
}

// replicate runs the unmodified deployment and replica set controllers, and the garbage collector. A replica set adopts
// a pod, creates pods that kube-scheduler and kwok run, and replaces one that no longer matches. Then it calls rollout.
func replicate(t *testing.T, at *target) []string {
	startCluster(t, at, 4)
	program.Start(t, exec.Command(program.BuildOf(t, "../kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
		"--kubeconfig", at.kubeconfig, "--leader-elect=false", "--use-service-account-credentials=false",
		"--controllers=deployment-controller,replicaset-controller,garbage-collector-controller", "--secure-port=0"))
	at.apply(t, pods("set", 0, 1, ""))
	at.runs(t, "set", 1)
	at.apply(t, `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: set}
spec:
  replicas: 3
  selector: {matchLabels: {app: set}}
  template: {metadata: {labels: {app: set}}, spec: {containers: [{name: c, image: i}]}}
`)
	at.eventually(t, "3 3 3 1", "get", "rs", "set", "-o", "jsonpath={.status.replicas} {.status.readyReplicas} "+
		"{.status.availableReplicas} {.status.observedGeneration}")
	owner := "jsonpath={.metadata.ownerReferences[0].kind} {.metadata.ownerReferences[0].name}"
	facts := []string{"owner of the adopted pod: " + at.Run(t, "get", "pod", "set-0", "-o", owner)}
	at.Run(t, "label", "pod", "set-0", "app=other", "--overwrite")
	at.eventually(t, "", "get", "pod", "set-0", "-o", owner)
	at.runs(t, "set", 3)
	created := at.Run(t, "get", "events", "--field-selector", "reason=SuccessfulCreate", "-o", "name")
	facts = append(facts, fmt.Sprint("SuccessfulCreate: ", strings.Count(created, "\n")))
	at.Run(t, "delete", "rs", "set", "--cascade=orphan")
	at.Run(t, "delete", "pods", "-l", "app in (set, other)", "--now")
	return append(facts, rollout(t, at)...)
}

// rollout rolls out 100 replicas twice, and then runs the session TestSessions/rollout of ../kubectl.
func rollout(t *testing.T, at *target) []string {
	at.Run(t, "create", "deployment", "web", "--image=i:1", "--replicas=100")
	at.Run(t, "rollout", "status", "deployment/web")
	at.Run(t, "set", "image", "deployment/web", "i=i:2")
	at.Run(t, "rollout", "status", "deployment/web")
	facts := []string{at.Run(t, "rollout", "history", "deployment/web"), at.Run(t, "get", "deployment", "web", "-o",
		"jsonpath={.status.replicas} {.status.updatedReplicas} {.status.availableReplicas} "+
			"{.status.observedGeneration}"),
		at.Run(t, "get", "replicasets", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.replicas}; {end}")}
	at.Run(t, "delete", "deployment", "web", "--cascade=foreground")
	at.eventually(t, "", "get", "pods", "-l", "app=web", "-o", "name")
	output(t, exec.Command("go", "test", "-count=1", "-vet=off", "../kubectl", "-run=TestSessions/rollout",
		"-server="+at.Server))
	return facts
}

// runs waits until exactly n pods with the label app=name run, and returns them.
func (at *target) runs(t *testing.T, name string, n int) (running []corev1.Pod) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		var list corev1.PodList
		answer := at.Run(t, "get", "--raw",
			"/api/v1/namespaces/default/pods?resourceVersion=0&labelSelector=app%3D"+name)
		require.NoError(t, json.Unmarshal([]byte(answer), &list))
		running = slices.DeleteFunc(list.Items,
			func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning })
		return len(running) == n, fmt.Sprint(len(running), " run")
	})
	return running
}

// TestFiveHundredPods connects the unmodified kube-scheduler and kwok directly to our server, whose stage must name
// them. The test logs the time until all pods run, which is less than 15 seconds on two idle cores.
func TestFiveHundredPods(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	server := program.StartViz(t, "-demo=false", "-controllers=false", "-kubeconfig", kubeconfig)
	at := &target{Kubectl: program.KubectlFor(t, server), url: server.URL, kubeconfig: kubeconfig}
	startCluster(t, at, 20)
	start := time.Now()
	at.apply(t, pods("load", 0, 500, ""))
	created := time.Since(start)
	at.runs(t, "load", 500)
	t.Logf("500 pods were created in %v, and ran after %v", created, time.Since(start))
	startManager(t, at)
	names := []string{"checks", "kube-scheduler", "kwok"}
	if startK9s(t, at) != nil {
		names = append(names, "k9s")
	}
	onStage(t, server, names)
}

var picture = flag.String("picture", "", "write a picture of the stage with these programs into this file")

// drawn lists the names of the lanes on the page, without names that a counter covers or that are cut off.
const drawn = `document.querySelector("#mode").dataset.state !== "live" ? []
	: [...document.querySelectorAll("#watchers .lane:not(.over)")].flatMap((lane) => {
	const name = lane.querySelector(".name");
	const { right, top, bottom } = name.getBoundingClientRect();
	const covered = [...lane.querySelectorAll(".num")].some((each) => {
		const box = each.getBoundingClientRect();
		const meet = box.left < right && box.top < bottom && top < box.bottom;
		return each.checkVisibility({ visibilityProperty: true }) && box.width > 0 && meet;
	});
	return covered || name.textContent.includes("…") ? [] : [name.textContent];
})`

// onStage checks in a browser that the stage of pods has a lane with each client's name.
func onStage(t *testing.T, server *program.Viz, names []string) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(
		chromedp.DefaultExecAllocatorOptions)], chromedp.WindowSize(1280, 807), chromedp.NoSandbox, chromedp.DisableGPU)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	page, leave := chromedp.NewContext(allocator)
	defer leave()
	require.NoError(t, assert.ErrorOf(chromedp.Run(page, chromedp.Navigate(server.URL+"/?tour=0"))), "open the page")
	program.Eventually(t, patience, func() (bool, string) {
		lanes := require.Value(chromedp.Run(page, chromedp.Evaluate[[]string](drawn)))(t)
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(lanes, name) }),
			fmt.Sprintf("lanes of %q, want %q", lanes, names)
	})
	if *picture != "" {
		shot := require.Value(chromedp.Run(page, chromedp.CaptureScreenshot()))(t)
		seen := require.Value(png.Decode(bytes.NewReader(shot)))(t)
		file := require.Value(os.Create(*picture))(t)
		require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(file, seen))
		require.NoError(t, file.Close())
	}
}
