package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
)

// verb does one step. What it returns is kept under the step's name.
type verb func(s *stagehand, a *args) (answer, error)

// verbs are what a step can do. Pods are named by letters: "abc" are three of the story's pods.
var verbs = map[string]verb{
	// Writes. Each returns the last version that was written.
	"create": create,     // PODS (node=NODE) (finalizer=NAME) (LABEL=VALUE)…
	"change": change,     // PODS N: a label of them in turn, N times in all; a pod that is not there is created
	"patch":  patch,      // POD JSON
	"move":   move,       // POD NODE, which the API does not allow: at the storage
	"delete": remove,     // POD, at once, or, of another kind, PATH RESOURCE NAME
	"apply":  apply,      // PATH RESOURCE JSON: an object of another kind, which is deleted when the story is over
	"post":   postAgain,  // POD: creates it, whether it is there or not; returns the status
	"put":    putFromOld, // POD as the informer knows it, with one label more; returns the status

	// Reads.
	"list":  list,  // (version=V) (exact): the story's pods; returns the version, and .n, .turn, .bytes
	"get":   get,   // POD; returns the status
	"later": later, // list|post …: as a request of its own, for which join waits
	"join":  join,  // the name of a later; returns what it came to, and .took

	// Clients.
	"watch": openStream, // (from=V) (labels=L) (fields=F) (resource=R): as the story's client; returns the status
	"open":  open,       // (labels=L) (from=V) (timeout=S) (bookmarks): a watcher of the page; returns its name
	// NAME HANDLER (resync=D) (path=PATH resource=R): one more informer of the story's pods, or objects of another kind
	"inform": inform,
	// NAME HANDLER: one of several copies of a controller; while it leads it has such an informer
	"candidate": candidate,
	"reflect":   reflectPods,
	"drain":     drain, // NAME: empties the queue of a reflector; returns the changes in their order

	// What is done to the machine.
	"turn":   turn,              // KNOB (TARGET|-) (VALUE)
	"server": machine("server"), // see Machine, as for the next two
	"etcd":   machine("etcd"),
	"other":  machine("other"),
	"crowd":  crowd, // watchers N, or kubelets N M: of the N kubelets, M ask for no bookmarks

	// the cache of pods and the informer say what they hold: after a new list the log has only numbers
	"recount": recount,

	// The log.
	"await":  await, // PATTERN; the record's fields are variables: NAME.rv, .type, .text, .subject, .n, .seq
	"count":  count, // PATTERN; returns how many there are, and .most, the largest first argument
	"expect": expect,
	"pause":  pause, // D
}

// args are the words of a step: those with a value by name, and the others in order.
type args struct {
	name   string // of the step
	all    []string
	words  []string
	values map[string]string
}

func newArgs(name string, all []string) *args {
	a := &args{name: name, all: all, values: map[string]string{}}
	for _, word := range all {
		key, value, has := strings.Cut(word, "=")
		if !has || strings.HasPrefix(word, "{") {
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
	number, _ := strconv.Atoi(a.word(n)) // what is no number is no story that a test has played
	return number
}

func says(value any) answer { return answer{value: fmt.Sprint(value)} }

// ---- writes

func create(s *stagehand, a *args) (answer, error) {
	var made answer
	for letter := range strings.SplitSeq(a.word(0), "") {
		result := s.post(letter, a)
		if apierrors.IsAlreadyExists(result.Error()) { // of a story that did not end well
			if err := s.delete(letter); err != nil {
				return answer{}, err
			}
			result = s.post(letter, a)
		}
		s.changes[letter] = 0
		var err error
		if made, err = written(result); err != nil {
			return answer{}, err
		}
	}
	return made, nil
}

// post sends a pod to be created.
func (s *stagehand) post(letter string, a *args) listwatch.Result {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.pod(letter), Namespace: namespace, Labels: map[string]string{sandbox.StoryLabel: s.story.ID},
		},
		Spec: corev1.PodSpec{NodeName: nowhere, Containers: []corev1.Container{{Name: "main",
			Image: "example.com/main:1"}}},
	}
	for key, value := range a.values {
		switch key {
		case "node":
			pod.Spec.NodeName = value
		case "finalizer":
			pod.Finalizers = []string{value}
		default:
			pod.Labels[key] = value
		}
	}
	return s.client.Post().Namespace(namespace).Resource("pods").Body(pod).Do(s.Writing)
}

// written returns the version that a write has made.
func written(result listwatch.Result) (answer, error) {
	obj, err := result.Get()
	if err != nil {
		return answer{}, err
	}
	rv, err := versionOf(obj)
	return says(rv), err
}

func versionOf(obj runtime.Object) (uint64, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
}

func change(s *stagehand, a *args) (last answer, err error) {
	letters := strings.Split(a.word(0), "")
	for i := range a.number(1) {
		letter := letters[i%len(letters)]
		if n, made := s.changes[letter]; !made {
			last, err = create(s, newArgs("", []string{letter}))
		} else {
			s.changes[letter] = n + 1
			last, err = s.patch(letter, fmt.Sprintf(`{"metadata":{"labels":{"turn":"%d"}}}`, n+1))
		}
		if err != nil {
			return answer{}, err
		}
	}
	// A writer may have its answer before the cache has the event.
	_, err = s.await(moment{{points: []probe.Point{probe.RingAppend}, terms: []term{{name: "rv", value: last.value}}}},
		0)
	return last, err
}

func patch(s *stagehand, a *args) (answer, error) { return s.patch(a.word(0), a.word(1)) }

func (s *stagehand) patch(letter, body string) (answer, error) {
	request := s.client.Patch(types.MergePatchType).Namespace(namespace).Resource("pods").Name(s.pod(letter))
	return written(request.Body([]byte(body)).Do(s.Writing))
}

func move(s *stagehand, a *args) (answer, error) {
	var moved corev1.Pod
	update := func(current runtime.Object) (runtime.Object, error) {
		pod := current.(*corev1.Pod)
		for _, node := range []string{pod.Spec.NodeName, a.word(1)} { // of a crowd, these two watchers are told in full
			s.Log.Look("pods", probe.Of(s.streams[node]).ID())
		}
		pod.Spec.NodeName = a.word(1)
		return current, nil
	}
	key := "/registry/pods/" + namespace + "/" + s.pod(a.word(0))
	err := s.Pipeline.Server.Storage("pods").GuaranteedUpdate(s.ctx, key, &moved, false, nil, update, nil)
	return says(moved.ResourceVersion), err
}

func remove(s *stagehand, a *args) (answer, error) {
	if path := a.word(0); strings.HasPrefix(path, "/") {
		request := s.client.WithAPIPath(path).Delete().Resource(a.word(1)).Name(a.word(2))
		return answer{}, request.Do(s.Writing).Error()
	}
	return answer{}, s.delete(a.word(0))
}

// apply applies an object as kubectl apply --server-side does.
func apply(s *stagehand, a *args) (answer, error) {
	body := []byte(strings.Join(a.all[2:], " "))
	var obj metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &obj); err != nil {
		return answer{}, err
	}
	client := s.client.WithAPIPath(a.all[0]).Untyped()
	of := func(r *listwatch.Request) *listwatch.Request {
		return r.Namespace(obj.Namespace).Resource(a.all[1]).Name(obj.Name)
	}
	s.ends = append(s.ends, func() {
		for of(client.Delete()).Do(s.Writing).Error() == nil { // a finalizer may hold it for a while
			_ = routine.Sleep(s.Writing, s.Clock, 20*tick)
		}
	})
	return written(of(client.Patch(types.ApplyPatchType)).Param("fieldManager", s.story.ID).Body(body).Do(s.Writing))
}

// delete deletes a pod at once. A pod that is not there is no error.
func (s *stagehand) delete(letter string) error {
	zero := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	request := s.client.Delete().Namespace(namespace).Resource("pods").Name(s.pod(letter))
	if err := request.Body(&zero).Do(s.Writing).Error(); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

func postAgain(s *stagehand, a *args) (answer, error) {
	obj, err := s.post(a.word(0), a).Get()
	if err != nil {
		return statusOf(err)
	}
	rv, err := versionOf(obj)
	return answer{"201", map[string]string{"rv": fmt.Sprint(rv)}}, err
}

func putFromOld(s *stagehand, a *args) (answer, error) {
	known, err := s.Pipeline.Client.Pods().Lister().Namespace(namespace).Get(s.pod(a.word(0)))
	if err != nil {
		return answer{}, err
	}
	changed := known.DeepCopy() // what comes out of a cache is shared
	changed.Labels["owner"] = "controller"
	request := s.client.Put().Namespace(namespace).Resource("pods").Name(changed.Name)
	return statusOf(request.Body(changed).Do(s.Writing).Error())
}

// statusOf returns the HTTP status of an answer, and its message.
func statusOf(err error) (answer, error) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return says(200), nil
	case errors.As(err, &status):
		return answer{fmt.Sprint(status.Status().Code), map[string]string{"message": status.Status().Message}}, nil
	}
	return answer{}, err
}

// ---- reads

func list(s *stagehand, a *args) (answer, error) {
	options := metav1.ListOptions{LabelSelector: s.ownLabel(), ResourceVersion: a.values["version"]}
	if a.word(0) == "exact" {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	for {
		var pods corev1.PodList
		result := s.client.Get().Namespace(namespace).Resource("pods").VersionedParams(&options).Do(s.ctx)
		body, _ := result.Raw()
		err := result.Into(&pods)
		if apierrors.IsTooManyRequests(err) {
			continue // the client has waited already, as often as it does by itself
		}
		fields := map[string]string{"n": strconv.Itoa(len(pods.Items)), "bytes": strconv.Itoa(len(body))}
		for _, pod := range pods.Items {
			fields["turn"], fields["tier"] = pod.Labels["turn"], pod.Labels["tier"]
		}
		return answer{pods.ResourceVersion, fields}, err
	}
}

func (s *stagehand) ownLabel() string { return sandbox.StoryLabel + "=" + s.story.ID }

func get(s *stagehand, a *args) (answer, error) {
	return statusOf(s.client.Get().Namespace(namespace).Resource("pods").Name(s.pod(a.word(0))).Do(s.ctx).Error())
}

// ---- clients

func openStream(s *stagehand, a *args) (answer, error) {
	options := metav1.ListOptions{
		ResourceVersion: a.values["from"], FieldSelector: a.values["fields"], LabelSelector: s.ownLabel(),
	}
	if a.values["labels"] != "" {
		options.LabelSelector = a.values["labels"] + "," + options.LabelSelector
	}
	resource := a.values["resource"]
	if resource == "" {
		resource = "pods"
	}
	stream, err := listwatch.NewListWatch(s.client, resource, namespace, nil).Watch(s.ctx, options)
	if err != nil {
		return statusOf(err)
	}
	s.ends = append(s.ends, stream.Stop)
	s.group.Go(s.ctx, "story.stream", func(context.Context) {
		for range stream.ResultChan() { // the log tells what came
		}
	})
	return says(200), nil
}

func open(s *stagehand, a *args) (answer, error) {
	timeout, _ := strconv.ParseInt(a.values["timeout"], 10, 64) // 0: none
	agent, err := s.AddWatcher(sandbox.WatcherOptions{
		Resource: "pods", LabelSelector: a.values["labels"], ResourceVersion: a.values["from"],
		Bookmarks: slices.Contains(a.words, "bookmarks"), TimeoutSeconds: timeout,
	})
	return says(agent), err
}

// ---- the machine

func turn(s *stagehand, a *args) (answer, error) {
	knob := sandbox.Knob{Name: a.word(0), Target: strings.TrimPrefix(a.word(1), "-"), Value: a.word(2)}
	if s.story.Alone != "" { // its world ends with it
		_, err := s.Sandbox.Turn(s.ctx, knob)
		return answer{}, err
	}
	return answer{}, s.Turn(knob)
}

// ---- the log

func await(s *stagehand, a *args) (answer, error) {
	p, err := parsePattern(a.all)
	if err != nil {
		return answer{}, err
	}
	r, err := s.await(moment{p}, s.from)
	s.note(a.name, r)
	return answer{}, err
}

func count(s *stagehand, a *args) (answer, error) {
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

// expect holds that the first word is the others.
func expect(_ *stagehand, a *args) (answer, error) {
	if want := strings.Join(a.all[1:], " "); a.all[0] != want {
		return answer{}, fmt.Errorf("got %q, want %q", a.all[0], want)
	}
	return answer{}, nil
}

func pause(s *stagehand, a *args) (answer, error) {
	d, err := time.ParseDuration(a.word(0))
	if err != nil {
		return answer{}, err
	}
	return answer{}, routine.Sleep(s.ctx, s.Clock, d)
}
