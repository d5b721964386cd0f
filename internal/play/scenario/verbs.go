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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
)

// verb runs one step. Its result is kept under the step's name.
type verb func(s *runner, a *args) (answer, error)

// verbs are the steps by name. Letters name the story's pods: "abc" are three.
var verbs = map[string]verb{
	// METHOD TARGET (PARAMETER=VALUE)… (JSON): TARGET is a pod, or "pods" for all of the story's
	"send": send,
	// PODS N: N writes to them in turn, each a create or a change of a label; returns the last version
	"change": change,
	// PATTERN: changes pod a by a long text, until such a record is there; each change reaches the story's first stream
	// before the next one
	"fill": fill,
	"move": move, // POD NODE, which the API does not allow: at the storage
	// (from=V) (labels=L) (fields=F) (resource=R): as the story's client; or page (from=V) (labels=L) (timeout=S)
	// (bookmarks) (watchlist): a watcher of the page, whose name is returned
	"watch": openStream,

	// Clients for the length of the story.
	// NAME HANDLER (resync=D): one more informer of the story's pods
	"informer": inform,
	// NAME HANDLER: one of several copies of a controller; while it leads it has such an informer
	"candidate": candidate,
	// NAME list|stream (delta): a reflector into a queue that is not drained; NAME client: a streaming one as the
	// story's client
	"reflector": reflectPods,
	"drain":     drain, // NAME: empties the queue of a reflector; returns the changes in their order
	// N: watches at the registry, each for the pods of one node; returns how many watchers of pods there are
	"watchers": watchers,
	"kubelets": kubelets, // N M: N clients with such watches, M of them without bookmarks

	"turn":    turn,    // KNOB (TARGET|-) (VALUE)
	"operate": operate, // see Operator
	// recount reports every object of the pods' cache and of the informer; a relist logs only a count
	"recount": recount,

	"await":  await, // PATTERN, or D; the record's fields are variables: NAME.rv, .type, .text, .subject, .n, .seq
	"count":  count, // PATTERN; returns how many there are, and .most, the largest first argument
	"expect": expect,
}

// args are the words of a step: NAME=VALUE by name, the others in order.
type args struct {
	name   string // of the step
	all    []string
	words  []string
	values map[string]string
	body   string // begins at the first brace
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

// word returns the n-th word without a value, "" if there is none.
func (a *args) word(n int) string {
	if n < len(a.words) {
		return a.words[n]
	}
	return ""
}

// number returns the n-th word as a number.
func (a *args) number(n int) int {
	number, _ := strconv.Atoi(a.word(n)) // a test plays every story, so it is a number
	return number
}

// ---- requests

// send returns the status of the answer, its version as .rv, and .n, .turn, .tier and .bytes of its pods. In a step
// without a name, a refusal is an error.
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

// read adds the fields of an answer.
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
		a.fields["turn"], a.fields["tier"] = pod.Labels["turn"], pod.Labels["tier"]
	}
	return nil
}

// request makes the request of a send. Its JSON is merged into a new pod (POST), or into the informer's copy (PUT).
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
		known.DeepCopyInto(pod) // objects of a cache are shared
	}
	switch method {
	case http.MethodDelete: // at once
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

// newPod returns a pod of the story, which is no scheduler's and no kubelet's, unless the story names it.
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
	// The answer may come before the cache has the event.
	rv, _ := strconv.ParseUint(last, 10, 64) // our own server's
	taken := probe.Query{Points: []probe.Point{probe.RingAppend}, RV: rv}
	_, err := s.await(rest{{Query: taken, words: "RingAppend rv=" + last}}, 0)
	return answer{value: last}, err
}

// widest is how often a pod is changed, at most, until a client can take no more.
const widest = 60

func fill(s *runner, a *args) (answer, error) {
	until, err := parsePattern(a.all)
	for range widest {
		if err == nil {
			_, err = change(s, newArgs("", []string{"a", "1", "wide=" + strings.Repeat("·", 2000)}))
		}
		if err == nil {
			_, err = await(s, newArgs("", []string{"InputSent", "stream=0", "newest"}))
		}
		if err != nil || slices.ContainsFunc(s.seen, func(r probe.Record) bool { return until.matches(s.facts, &r) }) {
			return answer{}, err
		}
	}
	return answer{}, &Unshown{fmt.Sprintf("none in %d changes", widest), until.words}
}

func move(s *runner, a *args) (answer, error) {
	var moved corev1.Pod
	update := func(current runtime.Object) (runtime.Object, error) {
		pod := current.(*corev1.Pod)
		for _, node := range []string{pod.Spec.NodeName, a.word(1)} { // log each event of these two watchers
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
		timeout, _ := strconv.ParseInt(a.values["timeout"], 10, 64) // 0: none
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
	if a.values["labels"] != "" {
		options.LabelSelector = a.values["labels"] + "," + options.LabelSelector
	}
	resource := cmp.Or(a.values["resource"], "pods")
	stream, err := s.client.ListWatch(resource, namespace, nil).Watch(s.ctx, options)
	if err != nil {
		return answer{}, err
	}
	s.ends = append(s.ends, stream.Stop)
	s.group.Go(s.ctx, "story.stream", func(context.Context) {
		for range stream.ResultChan() { // the log has the events
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

// expect wants the first word to equal the others.
func expect(_ *runner, a *args) (answer, error) {
	if want := strings.Join(a.all[1:], " "); a.all[0] != want {
		return answer{}, &Unshown{strconv.Quote(a.all[0]), strconv.Quote(want)}
	}
	return answer{}, nil
}
