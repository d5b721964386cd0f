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
)

const (
	sleeperChanges = 100
	// sleeperBytes × sleeperChanges exceeds the socket buffers of both ends. A narrow window would need less data, but
	// would take minutes to drain when the sleeper wakes up.
	sleeperBytes    = 100_000
	sleeperPatience = 20 * time.Minute // many times what all of it takes
	sleeperGoodbye  = 5 * time.Second  // for taking its pod away, also after Ctrl-C

	sleeperPods = "/api/v1/namespaces/default/pods"
	sleeperPod  = `{"metadata":{"name":"big","annotations":{"big":"%s"}},` +
		`"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}`
)

// sleepers is three clients of a listwatch that runs: the sleeper opens a watch and does not read it, the reader opens
// one and reads it, the writer changes a large pod.
type sleepers struct {
	server *url.URL
	client *http.Client
}

// runSleeper says what became of the sleeper and the reader, and takes the writer's pod away.
func runSleeper(ctx context.Context, server *url.URL, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sleeperPatience)
	defer cancel()
	s := &sleepers{server, newHTTPClient(nil)}
	defer s.client.CloseIdleConnections()
	// A cluster at work is not written to: only a listwatch answers here.
	if _, err := s.text(ctx, http.MethodGet, "/viz/knobs", ""); err != nil {
		return fmt.Errorf("no listwatch at %s: %w", server, err)
	}
	pod := fmt.Sprintf(sleeperPod, strings.Repeat("x", sleeperBytes))
	if _, err := s.text(ctx, http.MethodPost, sleeperPods, pod); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sleeperGoodbye)
		defer cancel()
		_, gone := s.text(ctx, http.MethodDelete, sleeperPods+"/big", "")
		err = errors.Join(err, gone)
	}()
	sleeper, err := s.ask(ctx, "sleeper", http.MethodGet, sleeperPods+"?watch=true", "")
	if err != nil {
		return err
	}
	defer sleeper.Close()
	reader, err := s.ask(ctx, "reader", http.MethodGet, sleeperPods+"?watch=true", "")
	if err != nil {
		return err
	}
	defer reader.Close()
	fmt.Fprintf(out, "the sleeper and the reader watch; a pod of %d kB changes %d times\n", sleeperBytes/1000,
		sleeperChanges)
	read, frames := 0, json.NewDecoder(reader)
	for i := 1; i <= sleeperChanges; i++ {
		change := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, i)
		if _, err := s.text(ctx, http.MethodPatch, sleeperPods+"/big", change); err != nil {
			return err
		}
		n, err := newestChange(frames, i) // 0: its stream has ended
		if err != nil {
			return err
		}
		read = max(read, n)
	}
	order, err := s.lastWait(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the reader was sent %d changes\n%s", read, order)
	slept, err := newestChange(json.NewDecoder(sleeper), sleeperChanges)
	end := "then the end of its stream, and no error"
	switch {
	case err != nil:
		end = fmt.Sprintf("then an error: %v", err)
	case slept == sleeperChanges:
		end = "and no end: it was not evicted"
	}
	fmt.Fprintf(out, "the sleeper wakes up and finds %d changes, %s\n", slept, end)
	return nil
}

// lastWait tells what the dispatcher did with the last change for which it waited: who had it before the wait, how long
// it was ready to wait and for whom, and who had it only then. That order is the dispatcher's own: no load of the
// machine changes it.
func (s *sleepers) lastWait(ctx context.Context) (string, error) {
	const told = "/viz/told?resource=pods&"
	waits, err := s.text(ctx, http.MethodGet, told+"key=default/big&point=InputBlocked", "")
	words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(waits), "."))
	if err != nil || len(words) == 0 {
		return "", err
	}
	change := words[len(words)-1]
	order, err := s.text(ctx, http.MethodGet, told+"rv="+change+"&point=InputSent,InputBlocked", "")
	ends, err2 := s.text(ctx, http.MethodGet, told+"point=DispatchBlocked,WatcherForced", "")
	lines := strings.SplitAfter(ends, "\n") // the last is empty
	text := order + strings.Join(lines[max(0, len(lines)-3):], "")
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ")
	return fmt.Sprintf("the dispatcher, with the change at %s:\n  %s\n", change, text), errors.Join(err, err2)
}

// newestChange reads a watch up to a change, or to its end, and returns the newest change: none is left out. An end
// between two frames is no error.
func newestChange(frames *json.Decoder, until int) (newest int, err error) {
	for newest < until {
		var event struct {
			Object struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
		if err := frames.Decode(&event); errors.Is(err, io.EOF) {
			return newest, nil
		} else if err != nil {
			return newest, err
		}
		n, _ := strconv.Atoi(event.Object.Metadata.Annotations["n"]) // 0: another pod
		newest = max(newest, n)
	}
	return newest, nil
}

// text makes a request of the writer's and returns the whole answer.
func (s *sleepers) text(ctx context.Context, method, path, body string) (string, error) {
	answer, err := s.ask(ctx, "writer", method, path, body)
	if err != nil {
		return "", err
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	return string(text), err
}

// ask makes a request as the client that is called agent. The caller closes the answer.
func (s *sleepers) ask(ctx context.Context, agent, method, path, body string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.server.String(), "/")+path,
		strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", agent)
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		return response.Body, nil
	}
	_ = response.Body.Close()
	if response.StatusCode == http.StatusConflict {
		return nil, fmt.Errorf("a pod named big is in the way; if no other -sleeper is at work: kubectl -s %s delete "+
			"pod big", s.server)
	}
	return nil, fmt.Errorf("the %s was answered %s", agent, response.Status)
}
