package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// runSleeper is three clients of a listwatch that runs: the sleeper opens a watch and does not read it, the reader
// opens one and reads it, the writer changes a large pod. It makes that pod, says what becomes of the sleeper and the
// reader, and takes the pod away.
func runSleeper(ctx context.Context, server *url.URL, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, sleeperPatience)
	defer cancel()
	connections := newHTTPClient((&net.Dialer{}).DialContext)
	defer connections.CloseIdleConnections()
	client := func(agent string) *listwatch.RESTClient {
		return listwatch.NewRESTClient(listwatch.Config{
			Base: server, HTTP: connections, UserAgent: agent, QPS: -1, Clock: clock.RealClock{}})
	}
	writer := client("writer")
	// A cluster at work is not written to: only a listwatch answers here.
	if err := writer.WithAPIPath("/viz").Get().Resource("knobs").Do(ctx).Error(); err != nil {
		return fmt.Errorf("no listwatch at %s: %w", server, err)
	}
	pod := fmt.Appendf(nil, sleeperPod, strings.Repeat("x", sleeperBytes))
	err := pods(writer.Post()).Body(pod).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a pod named big is in the way; if no other -sleeper is at work: kubectl -s %s delete "+
			"pod big", server)
	} else if err != nil {
		return err
	}
	err = watchPod(ctx, client("sleeper"), client("reader"), writer, out)
	goodbye, cancel := context.WithTimeout(context.WithoutCancel(ctx), sleeperGoodbye)
	defer cancel()
	return errors.Join(err, pods(writer.Delete()).Name("big").Do(goodbye).Error())
}

// watchPod opens the two watches, changes the pod, and says what of that the sleeper and the reader are sent.
func watchPod(ctx context.Context, sleeps, reads, writer *listwatch.RESTClient, out io.Writer) error {
	sleeper, err := pods(sleeps.Get()).Param("watch", "true").Watch(ctx)
	if err != nil {
		return err
	}
	defer sleeper.Stop()
	reader, err := pods(reads.Get()).Param("watch", "true").Watch(ctx)
	if err != nil {
		return err
	}
	defer reader.Stop()
	fmt.Fprintf(out, "the sleeper and the reader watch; a pod of %d kB changes %d times\n", sleeperBytes/1000,
		sleeperChanges)
	read := 0
	for i := range sleeperChanges {
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i+1)
		if err := pods(writer.Patch(types.MergePatchType)).Name("big").Body(change).Do(ctx).Error(); err != nil {
			return err
		}
		n, _ := newestChange(reader, i+1)
		read = max(read, n)
	}
	order, err := lastWait(ctx, writer.WithAPIPath("/viz"))
	if err != nil {
		return err
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
func lastWait(ctx context.Context, page *listwatch.RESTClient) (text string, err error) {
	told := func(points, key, rv string) string { // "" after an error; a key keeps bookmarks out
		if err != nil {
			return ""
		}
		var said []byte
		said, err = page.Get().Resource("told").Param("resource", "pods").Param("point", points).Param("key", key).
			Param("rv", rv).Do(ctx).Raw()
		return string(said)
	}
	words := strings.Fields(told("InputBlocked", "default/big", ""))
	if len(words) == 0 {
		return "", err
	}
	change := strings.TrimSuffix(words[len(words)-1], ".")
	text = told("InputSent,InputBlocked", "default/big", change)
	ends := strings.SplitAfter(told("DispatchBlocked,WatcherForced", "", ""), "\n") // the last is empty
	text += strings.Join(ends[max(0, len(ends)-3):], "")
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ")
	return fmt.Sprintf("the dispatcher, with the change at %s:\n  %s\n", change, text), err
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
