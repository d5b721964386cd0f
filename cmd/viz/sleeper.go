package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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

	sleeperPod = `{"metadata":{"name":"big","annotations":{"big":"%s"}},` +
		`"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}`
)

// sleepers is three clients of a listwatch that runs: the sleeper opens a watch and does not read it, the reader opens
// one and reads it, the writer changes a large pod.
type sleepers struct {
	sleeper, reader, writer *listwatch.RESTClient
	err                     error // the first of the writer's; after it nothing is asked
}

func newSleepers(server *url.URL, client *http.Client) *sleepers {
	named := func(agent string) *listwatch.RESTClient {
		return listwatch.NewRESTClient(listwatch.Config{
			Base: server, HTTP: client, UserAgent: agent, QPS: -1, Clock: clock.RealClock{}})
	}
	return &sleepers{sleeper: named("sleeper"), reader: named("reader"), writer: named("writer")}
}

// runSleeper makes the writer's pod, says what becomes of the sleeper and the reader, and takes the pod away.
func runSleeper(ctx context.Context, server *url.URL, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, sleeperPatience)
	defer cancel()
	client := newHTTPClient(nil)
	defer client.CloseIdleConnections()
	s := newSleepers(server, client)
	// A cluster at work is not written to: only a listwatch answers here.
	if s.ask(ctx, s.writer.WithAPIPath("/viz").Get().Resource("knobs")); s.err != nil {
		return fmt.Errorf("no listwatch at %s: %w", server, s.err)
	}
	s.ask(ctx, pods(s.writer.Post()).Body(fmt.Appendf(nil, sleeperPod, strings.Repeat("x", sleeperBytes))))
	if apierrors.IsAlreadyExists(s.err) {
		return fmt.Errorf("a pod named big is in the way; if no other -sleeper is at work: kubectl -s %s delete "+
			"pod big", server)
	} else if s.err != nil {
		return s.err
	}
	err := s.watchPod(ctx, out)
	goodbye, cancel := context.WithTimeout(context.WithoutCancel(ctx), sleeperGoodbye)
	defer cancel()
	return errors.Join(err, pods(s.writer.Delete()).Name("big").Do(goodbye).Error())
}

// watchPod opens the two watches, changes the pod, and says what of that the sleeper and the reader are sent.
func (s *sleepers) watchPod(ctx context.Context, out io.Writer) error {
	sleeper, err := pods(s.sleeper.Get()).Param("watch", "true").Watch(ctx)
	if err != nil {
		return err
	}
	defer sleeper.Stop()
	reader, err := pods(s.reader.Get()).Param("watch", "true").Watch(ctx)
	if err != nil {
		return err
	}
	defer reader.Stop()
	fmt.Fprintf(out, "the sleeper and the reader watch; a pod of %d kB changes %d times\n", sleeperBytes/1000,
		sleeperChanges)
	read := 0
	for i := 1; i <= sleeperChanges && s.err == nil; i++ {
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i)
		if s.ask(ctx, pods(s.writer.Patch(types.MergePatchType)).Name("big").Body(change)); s.err == nil {
			n, _ := newestChange(reader, i)
			read = max(read, n)
		}
	}
	order := s.lastWait(ctx)
	if s.err != nil {
		return s.err
	}
	fmt.Fprintf(out, "the reader was sent %d changes\n%s", read, order)
	slept, err := newestChange(sleeper, sleeperChanges)
	end := "then the end of its stream, and no error"
	if err != nil {
		end = fmt.Sprintf("then an error: %v", err)
	} else if slept == sleeperChanges {
		end = "and no end: it was not evicted"
	}
	fmt.Fprintf(out, "the sleeper wakes up and finds %d changes, %s\n", slept, end)
	return nil
}

// lastWait tells what the dispatcher did with the last change for which it waited: who had it before the wait, how long
// it was ready to wait and for whom, and who had it only then. That order is the dispatcher's own: no load of the
// machine changes it.
func (s *sleepers) lastWait(ctx context.Context) string {
	told := func(points string) *listwatch.Request {
		return s.writer.WithAPIPath("/viz").Get().Resource("told").Param("resource", "pods").Param("point", points)
	}
	words := strings.Fields(s.ask(ctx, told("InputBlocked").Param("key", "default/big")))
	if len(words) == 0 {
		return ""
	}
	change := strings.TrimSuffix(words[len(words)-1], ".")
	order := s.ask(ctx, told("InputSent,InputBlocked").Param("rv", change))
	ends := strings.SplitAfter(s.ask(ctx, told("DispatchBlocked,WatcherForced")), "\n") // the last is empty
	text := order + strings.Join(ends[max(0, len(ends)-3):], "")
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ")
	return fmt.Sprintf("the dispatcher, with the change at %s:\n  %s\n", change, text)
}

// newestChange reads a watch up to a change, or to its end, and returns the newest change: none is left out.
func newestChange(from watch.Interface, until int) (newest int, err error) {
	for event := range from.ResultChan() {
		if event.Type == watch.Error {
			return newest, apierrors.FromObject(event.Object)
		}
		n, _ := strconv.Atoi(event.Object.(metav1.Object).GetAnnotations()["n"]) // 0: another pod
		if newest = max(newest, n); newest >= until {
			break
		}
	}
	return newest, nil
}

func pods(request *listwatch.Request) *listwatch.Request {
	return request.Namespace("default").Resource("pods")
}

// ask makes a request as the writer and returns the answer, "" after an error.
func (s *sleepers) ask(ctx context.Context, request *listwatch.Request) (answer string) {
	if s.err == nil {
		var text []byte
		text, s.err = request.Do(ctx).Raw()
		answer = string(text)
	}
	return answer
}
