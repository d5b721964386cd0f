package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
)

const (
	sleeperChanges = 100
	// sleeperBytes × sleeperChanges exceeds the socket buffers of both ends. A narrow window would need less data, but
	// would take minutes to drain when the sleeper wakes up.
	sleeperBytes    = 100_000
	sleeperPatience = 20 * time.Minute // many times what all of it takes
	sleeperGoodbye  = 5 * time.Second  // for taking its pod away, also after Ctrl-C
)

// runSleeper is three clients of a listwatch that runs: the sleeper opens a watch and does not read it, the reader
// opens one and reads it, the writer changes a large pod. It says what became of the first two, and takes its pod away.
func runSleeper(ctx context.Context, server *url.URL, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sleeperPatience)
	defer cancel()
	client := newHTTPClient(nil)
	defer client.CloseIdleConnections()
	// A cluster at work is not written to: only a listwatch answers here.
	knobs, err := open(ctx, client, server.JoinPath("/viz/knobs"), "writer")
	if err != nil {
		return fmt.Errorf("no listwatch at %s: %w", server, err)
	}
	_ = knobs.Close() // it was only asked for
	w := writer{server, listwatch.NewRESTClient(listwatch.Config{
		Base: server, HTTP: client, Clock: clock.RealClock{}, QPS: -1, UserAgent: "writer",
	})}
	if err := w.create(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	watch := server.JoinPath("/api/v1/namespaces/default/pods")
	watch.RawQuery = "watch=true"
	sleeper, err := open(ctx, client, watch, "sleeper")
	if err != nil {
		return err
	}
	defer sleeper.Close()
	reader, err := open(ctx, client, watch, "reader")
	if err != nil {
		return err
	}
	defer reader.Close()
	fmt.Fprintf(out, "the sleeper and the reader watch; a pod of %d kB changes %d times\n", sleeperBytes/1000,
		sleeperChanges)
	var read changesSeen
	var group errgroup.Group
	group.Go(func() (err error) { read, err = readChanges(reader); return err })
	if err := w.change(ctx); err != nil {
		_ = reader.Close()
		_ = group.Wait() // says that the stream was closed
		return err
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("the reader's stream broke: %w", err)
	}
	fmt.Fprintf(out, "the reader was sent %d changes\n", read.n)
	if err := tellWait(ctx, client, server, out); err != nil {
		return err
	}
	slept, err := readChanges(sleeper)
	end := "then the end of its stream, and no error"
	switch {
	case err != nil:
		end = fmt.Sprintf("then an error: %v", err)
	case slept.last:
		end = "and no end: it was not evicted"
	}
	fmt.Fprintf(out, "the sleeper wakes up and finds %d changes, %s\n", slept.n, end)
	return nil
}

// tellWait prints what the dispatcher did with the last change for which it waited: who had it before the wait, how
// long it was ready to wait and for whom, and who had it only then. That order is the dispatcher's own: no load of the
// machine changes it.
func tellWait(ctx context.Context, client *http.Client, server *url.URL, out io.Writer) error {
	told := func(query string) (string, error) {
		at := server.JoinPath("/viz/told")
		at.RawQuery = "resource=pods&" + query
		body, err := open(ctx, client, at, "writer")
		if err != nil {
			return "", err
		}
		defer body.Close()
		lines, err := io.ReadAll(body)
		return strings.TrimSuffix(string(lines), "\n"), err
	}
	waits, err := told("key=default/big&point=InputBlocked")
	if err != nil || waits == "" {
		return err
	}
	change := strings.TrimSuffix(waits[strings.LastIndex(waits, " ")+1:], ".")
	order, err := told("rv=" + change + "&point=InputSent,InputBlocked")
	if err != nil {
		return err
	}
	end, err := told("point=DispatchBlocked,WatcherForced")
	if err == nil {
		lines := append(strings.Split(order, "\n"), strings.Split(end, "\n")[max(0, strings.Count(end, "\n")-1):]...)
		fmt.Fprintf(out, "the dispatcher, with the change at %s:\n  %s\n", change, strings.Join(lines, "\n  "))
	}
	return err
}

// writer writes the pod big at a server.
type writer struct {
	server *url.URL
	*listwatch.RESTClient
}

func (w writer) big(r *listwatch.Request) *listwatch.Request {
	return r.Namespace(metav1.NamespaceDefault).Resource("pods").Name("big")
}

// create makes the pod. If there is one already, the error says how to remove it.
func (w writer) create(ctx context.Context) error {
	pod := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: new(int64(0)), Containers: []v1.Container{
		{Name: "c", Image: "i"}}}}
	pod.Name = "big"
	pod.Annotations = map[string]string{"big": strings.Repeat("x", sleeperBytes)}
	err := w.Post().Namespace(metav1.NamespaceDefault).Resource("pods").Body(pod).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf(
			"a pod named big is in the way; if no other -sleeper is at work: kubectl -s %s delete pod big", w.server)
	}
	return err
}

// change changes the pod, time after time.
func (w writer) change(ctx context.Context) (err error) {
	for i := 1; i <= sleeperChanges && err == nil; i++ {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, i)
		err = w.big(w.Patch(types.MergePatchType)).Body([]byte(patch)).Do(ctx).Error()
	}
	return err
}

// remove takes the pod away, also after ctx is done.
func (w writer) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sleeperGoodbye)
	defer cancel()
	return w.big(w.Delete()).Do(ctx).Error()
}

// changesSeen is what a client has read of a watch.
type changesSeen struct {
	n    int  // the newest change: none is left out
	last bool // it has read the last one
}

// readChanges reads a watch up to the last change, or to its end. An end between two frames is no error.
func readChanges(stream io.Reader) (seen changesSeen, err error) {
	for frames := json.NewDecoder(stream); !seen.last; {
		var event struct {
			Object struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
		if err := frames.Decode(&event); errors.Is(err, io.EOF) {
			return seen, nil
		} else if err != nil {
			return seen, err
		}
		n, err := strconv.Atoi(event.Object.Metadata.Annotations["n"])
		if err != nil || n <= seen.n {
			continue // another pod, or changed by another client
		}
		seen.n = n
		seen.last = n == sleeperChanges
	}
	return seen, nil
}

// open begins a request as the client that is called agent. The caller closes the answer's body.
func open(ctx context.Context, client *http.Client, target *url.URL, agent string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", agent)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("the %s was answered %s", agent, response.Status), response.Body.Close())
	}
	return response.Body, nil
}
