package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
)

// verb runs one step and returns its result.
type verb func(s *runner, a *args) (answer, error)

// verbs are the verbs of steps, by name, with their arguments. Letters are pods of the story: "abc" are three pods.
var verbs = map[string]verb{
	// METHOD TARGET (PARAMETER=VALUE)… (JSON): sends a request; TARGET is a pod, or "pods" for all the story's pods.
	"send": send,
	// PODS N: makes N writes, to the pods in turn; each creates a pod or changes its label; returns the last version
	"change": change,
	// PATTERN: makes large changes to pod a until a record matches. Each change must reach the story's first stream
	// before the next.
	"fill":   fill,
	"deploy": deploy, // creates a deployment of one pod, named after the story's pod
	// N: acts like a naive controller for N pods: counts the story's pods in the informer's store, creates or deletes
	// the difference, and returns the count.
	"replicate": replicate,
	"move":      move, // POD NODE: moves a pod; the API does not allow it, so the step writes to the storage
	// (from=V) (fields=F) (resource=R): opens a watch of the story's client. Or: page (from=V) (labels=L) (timeout=S)
	// (bookmarks) (watchlist): opens a watcher of the page and returns its user agent.
	"watch": openStream,

	// The clients below run until the end of the story. NAME HANDLER (resync=D) (labels=L): starts an informer; its
	// pods are the story's, or those with the labels.
	"informer": inform,
	// NAME list|stream (delta): starts a reflector that fills a queue, which only drain empties. NAME client: the same,
	// streaming, as the story's client.
	"reflector": reflectPods,
	"drain":     drain, // NAME: empties the queue of a reflector; returns the changes in the queue's order
	// N: opens N watches at the registry, each for the pods of one node; returns the number of watchers of pods
	"watchers": watchers,
	"kubelets": kubelets, // N M: starts N clients that watch one node each, M of them without bookmarks

	"turn":    turn,    // KNOB (TARGET|-) (VALUE)
	"operate": operate, // see Operator
	// makes the cache of pods and the informer report every object; a relist only reports a count
	"recount": recount,

	"await":  await,  // D: sleeps. PATTERN: waits for a record; sets NAME.rv, .seq, .n, .type, .subject, and its texts
	"count":  count,  // PATTERN: returns the number of matches, and .most, their largest first argument
	"expect": expect, // GOT WANT…: requires that GOT equals the rest of the words
}

// args are the words of a step: NAME=VALUE by name, all other words in their order.
type args struct {
	name   string // the step's name
	all    []string
	words  []string
	values map[string]string
	body   string // the words from the first brace on
}

func newArgs(name string, all []string) *args {
	a := &args{name: name, all: all, values: map[string]string{}}
	for i, word := range all {
		if strings.HasPrefix(word, "{") {
			a.body = strings.Join(all[i:], " ")
			break
		}
		key, value, has := strings.Cut(word, "=")
		if !has {
			a.words = append(a.words, word)
			continue
		}
		a.values[key] = value
	}
	return a
}

// word returns the n-th word that is not NAME=VALUE, or "" if there is none.
func (a *args) word(n int) string {
	if n < len(a.words) {
		return a.words[n]
	}
	return ""
}

// number returns the n-th word as a number.
func (a *args) number(n int) int {
	number, _ := strconv.Atoi(a.word(n)) // a test plays every story, so the word is a number
	return number
}

// ---- requests

// send sends a request. It returns the status, the version as .rv, the size as .bytes, and for a list the number of
// pods as .n and the last pod's .tier. It repeats a request that gets 429. Other refusals fail unnamed steps.
func send(s *runner, a *args) (answer, error) {
	ctx := s.Writing
	if a.word(0) == http.MethodGet {
		ctx = s.ctx
	}
	for {
		request, err := s.request(a)
		if err != nil {
			return answer{}, err
		}
		result := request.Do(ctx)
		if apierrors.IsTooManyRequests(result.Error()) {
			continue // the client has already waited and retried
		}
		got := answer{strconv.Itoa(result.StatusCode()), map[string]string{}}
		if result.Error() == nil {
			return got, got.read(result)
		}
		if a.name != "" && result.StatusCode() != 0 {
			return got, nil
		}
		return got, result.Error()
	}
}

// read adds the fields of a response's body.
func (a *answer) read(result listwatch.Result) error {
	obj, err := result.Get()
	if err != nil {
		return err
	}
	body, _ := result.Raw()
	a.fields["bytes"] = strconv.Itoa(len(body))
	if accessor, err := meta.CommonAccessor(obj); err == nil {
		a.fields["rv"] = accessor.GetResourceVersion()
	}
	pods, isList := obj.(*corev1.PodList)
	if !isList {
		return nil
	}
	a.fields["n"] = strconv.Itoa(len(pods.Items))
	for _, pod := range pods.Items {
		a.fields["tier"] = pod.Labels["tier"]
	}
	return nil
}

// request builds the request of a send. POST merges the JSON into a new pod, PUT into a copy of the informer's pod.
func (s *runner) request(a *args) (*listwatch.Request, error) {
	method, target := a.word(0), a.word(1)
	request := s.client.Verb(method)
	if method == http.MethodPatch {
		request = s.client.Patch(types.MergePatchType).Body([]byte(a.body))
	}
	request.Namespace(namespace).Resource("pods")
	for name, value := range a.values {
		request.Param(name, value)
	}
	if target == "pods" {
		return request.Param("labelSelector", s.ownLabel()), nil
	}
	pod := s.newPod(target)
	if method == http.MethodPut {
		known, err := s.Pipeline.Client.Pods().Lister().Namespace(namespace).Get(pod.Name)
		if err != nil {
			return nil, err
		}
		known.DeepCopyInto(pod) // the cache's objects are shared
	}
	switch method {
	case http.MethodDelete: // without a grace period
		request.Body(&metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	case http.MethodPost, http.MethodPut:
		if err := json.Unmarshal([]byte(cmp.Or(a.body, "{}")), pod); err != nil {
			return nil, err
		}
		request.Body(pod)
	}
	if method == http.MethodPost {
		return request, nil
	}
	return request.Name(pod.Name), nil
}

// newPod returns a pod of the story. No scheduler and no kubelet acts on it, unless its name is Story.Pod.
func (s *runner) newPod(letter string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.story.podName(letter), Namespace: namespace,
			Labels: map[string]string{sandbox.StoryLabel: s.story.ID},
		},
		Spec: corev1.PodSpec{NodeName: nowhere, Containers: []corev1.Container{{Name: "main",
			Image: "example.com/main:1"}}},
	}
	if pod.Name == s.story.Pod {
		pod.Spec.NodeName = ""
	}
	return pod
}

func (s *runner) ownLabel() string { return sandbox.StoryLabel + "=" + s.story.ID }

func change(s *runner, a *args) (answer, error) {
	letters, last := strings.Split(a.word(0), ""), ""
	for i := range a.number(1) {
		letter := letters[i%len(letters)]
		words := []string{http.MethodPost, letter}
		if n := s.changes[letter]; n > 0 || letter == "a" && s.story.Pod != "" {
			wide := ""
			if text := a.values["wide"]; text != "" {
				wide = fmt.Sprintf(`,"annotations":{"wide":%q}`, text)
			}
			patch := fmt.Sprintf(`{"metadata":{"labels":{"turn":"%d"}%s}}`, n, wide)
			words = []string{http.MethodPatch, letter, patch}
		}
		s.changes[letter]++
		written, err := send(s, newArgs("", words))
		if err != nil {
			return answer{}, err
		}
		last = written.fields["rv"]
	}
	// The client may get the response before the cache has the event, so the step also waits for the event.
	rv, _ := strconv.ParseUint(last, 10, 64) // cannot fail: our own server sent the number
	taken := probe.Query{Points: []probe.Point{probe.RingAppend}, RV: rv}
	_, err := s.await(rest{{Query: taken, words: "RingAppend rv=" + last}}, 0)
	return answer{value: last}, err
}

// widest is the maximum number of changes that fill makes to a pod.
const widest = 60

func fill(s *runner, a *args) (answer, error) {
	until, err := parsePattern(a.all)
	for range widest {
		sent := []string{"InputSent|WatcherForced", "stream=0", fmt.Sprint("after=", s.Log.Last())}
		if err == nil {
			_, err = change(s, newArgs("", []string{"a", "1", "wide=" + strings.Repeat("·", 2000)}))
		}
		if err == nil {
			_, err = await(s, newArgs("", sent))
		}
		if err != nil || slices.ContainsFunc(s.seen, func(r probe.Record) bool { return until.matches(s.facts, &r) }) {
			return answer{}, err
		}
		if slices.ContainsFunc(s.seen, func(r probe.Record) bool { return r.Point == probe.WatcherForced }) {
			return answer{}, &Unshown{"1 WatcherForced", until.words}
		}
	}
	return answer{}, &Unshown{fmt.Sprintf("none in %d changes", widest), until.words}
}

func deploy(s *runner, _ *args) (answer, error) {
	apps := s.client.WithAPIPath("/apis/apps/v1")
	own := map[string]string{sandbox.StoryLabel: s.story.ID}
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: s.story.Pod, Labels: own},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: own}}}
	made.Spec.Template.Labels = own
	made.Spec.Template.Spec.Containers = []corev1.Container{{Name: "nginx", Image: "nginx"}}
	s.ends = append(s.ends, func() { // otherwise the controllers would replace the pods that the sandbox deletes
		for _, kind := range []string{"deployments", "replicasets"} {
			request := apps.Delete().Namespace(namespace).Resource(kind).Param("labelSelector", s.ownLabel())
			_ = request.Do(s.Writing).Error() // the garbage collector deletes the rest
		}
	})
	err := apps.Post().Namespace(namespace).Resource("deployments").Body(made).Do(s.Writing).Into(made)
	return answer{value: made.ResourceVersion}, err
}

func replicate(s *runner, a *args) (answer, error) {
	own := labels.SelectorFromSet(labels.Set{sandbox.StoryLabel: s.story.ID})
	known := s.Pipeline.Client.Pods().Lister().Namespace(namespace).List(own)
	counted := answer{value: strconv.Itoa(len(known))}
	for range a.number(0) - len(known) {
		letter := string(rune('a' + s.changes["made"]))
		s.changes["made"]++
		if _, err := send(s, newArgs("", []string{http.MethodPost, letter})); err != nil {
			return counted, err
		}
	}
	slices.SortFunc(known, func(a, b *corev1.Pod) int { return strings.Compare(b.Name, a.Name) })
	for _, pod := range known[:max(0, len(known)-a.number(0))] {
		letter := strings.TrimPrefix(pod.Name, s.story.ID+"-")
		if _, err := send(s, newArgs("", []string{http.MethodDelete, letter})); err != nil {
			return counted, err
		}
	}
	return counted, nil
}

func move(s *runner, a *args) (answer, error) {
	var moved corev1.Pod
	update := func(current runtime.Object) (runtime.Object, error) {
		pod := current.(*corev1.Pod)
		for _, node := range []string{pod.Spec.NodeName, a.word(1)} { // makes the log keep each event of these watchers
			s.Log.Look("pods", probe.Of(s.streams[node]).ID())
		}
		pod.Spec.NodeName = a.word(1)
		return current, nil
	}
	key := "/registry/pods/" + namespace + "/" + s.story.podName(a.word(0))
	err := s.Pipeline.Server.Storage("pods").GuaranteedUpdate(s.ctx, key, &moved, false, nil, update, nil)
	return answer{value: moved.ResourceVersion}, err
}

// ---- clients

func openStream(s *runner, a *args) (answer, error) {
	if a.word(0) == "page" {
		timeout, _ := strconv.ParseInt(a.values["timeout"], 10, 64) // 0: no timeout
		added, _, err := s.Sandbox.AddWatcher(s.ctx, s.Run, sandbox.WatcherOptions{
			Resource: "pods", LabelSelector: a.values["labels"], ResourceVersion: a.values["from"],
			Bookmarks: slices.Contains(a.words, "bookmarks"), TimeoutSeconds: timeout,
			WatchList: slices.Contains(a.words, "watchlist"),
		})
		return answer{value: added.UserAgent}, err
	}
	options := metav1.ListOptions{
		ResourceVersion: a.values["from"], FieldSelector: a.values["fields"], LabelSelector: s.ownLabel(),
	}
	resource := cmp.Or(a.values["resource"], "pods")
	stream, err := s.client.ListWatch(resource, namespace, nil).Watch(s.ctx, options)
	if err != nil {
		return answer{}, err
	}
	s.ends = append(s.ends, stream.Stop)
	s.group.Go(s.ctx, "story.stream", func(context.Context) {
		for range stream.ResultChan() { // only drains the stream: the log has the events
		}
	})
	return answer{}, nil
}

// ---- the machine

func turn(s *runner, a *args) (answer, error) {
	knob := sandbox.Knob{Name: a.word(0), Target: strings.TrimPrefix(a.word(1), "-"), Value: a.word(2)}
	_, err := s.Sandbox.Turn(s.ctx, s.Run, knob)
	return answer{}, err
}

func operate(s *runner, a *args) (answer, error) { return answer{}, s.Operator.Do(s.ctx, a.words...) }

func recount(s *runner, _ *args) (answer, error) {
	s.Pipeline.Recount("pods", "cacher", fold.MaxRows)
	s.Pipeline.Recount("pods", "informer", fold.MaxRows)
	return answer{}, nil
}

// ---- the log

func await(s *runner, a *args) (answer, error) {
	if d, err := time.ParseDuration(a.word(0)); err == nil {
		return answer{}, routine.Sleep(s.ctx, s.Clock, d)
	}
	p, err := parsePattern(a.all)
	if err != nil {
		return answer{}, err
	}
	r, err := s.await(rest{p}, s.from)
	s.note(a.name, r)
	return answer{}, err
}

func count(s *runner, a *args) (answer, error) {
	p, err := parsePattern(a.all)
	if err == nil {
		err = s.read()
	}
	n, most := 0, 0
	for i := range s.seen {
		if r := &s.seen[i]; err == nil && p.matches(s.facts, r) {
			n, most = n+1, max(most, r.Args[0])
		}
	}
	return answer{fmt.Sprint(n), map[string]string{"most": fmt.Sprint(most)}}, err
}

// expect requires that the first word equals the rest of the words. The error is an [Unshown].
func expect(_ *runner, a *args) (answer, error) {
	if want := strings.Join(a.all[1:], " "); a.all[0] != want {
		return answer{}, &Unshown{strconv.Quote(a.all[0]), strconv.Quote(want)}
	}
	return answer{}, nil
}
