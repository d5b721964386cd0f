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
	// sleeperBytes × sleeperChanges exceeds the socket buffers of both ends. A narrow window would need less data, but would
	// take minutes to drain when the sleeper wakes up.
	sleeperBytes    = 100_000
	sleeperPatience = 20 * time.Minute // many times what all of it takes
	sleeperGoodbye  = 5 * time.Second  // for taking its pod away, also after Ctrl-C
	sleeperPod      = `{"metadata":{"name":"big","labels":{"listwatch":"sleeper"},"annotations":{"big":%q}},` +
		`"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}`
)

// statusError is an answer's status of 400 or more.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("%d %s", int(s), http.StatusText(int(s))) }

// runSleeper is three clients of a listwatch that runs: the sleeper opens a watch and does not read it, the reader opens one
// and reads it, the writer changes a large pod. It says what became of the first two, and takes its pod away.
func runSleeper(ctx context.Context, server *url.URL, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sleeperPatience)
	defer cancel()
	client := newHTTPClient(nil)
	defer client.CloseIdleConnections()
	// A cluster at work is not written to: only a listwatch answers here.
	if _, err := send(ctx, client, http.MethodGet, server.JoinPath("/viz/knobs"), ""); err != nil {
		return fmt.Errorf("no listwatch at %s: %w", server, err)
	}
	pods := server.JoinPath("/api/v1/namespaces/default/pods")
	_, err = send(ctx, client, http.MethodPost, pods, fmt.Sprintf(sleeperPod, strings.Repeat("x", sleeperBytes)))
	if errors.Is(err, statusError(http.StatusConflict)) {
		return inTheWay(ctx, client, server)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sleeperGoodbye)
		defer cancel()
		_, gone := send(ctx, client, http.MethodDelete, pods.JoinPath("big"), "")
		if !errors.Is(gone, statusError(http.StatusNotFound)) {
			err = errors.Join(err, gone)
		}
	}()
	if err != nil {
		return err
	}
	sleeper, err := openWatch(ctx, client, pods, "sleeper")
	if err != nil {
		return err
	}
	defer sleeper.Close()
	reader, err := openWatch(ctx, client, pods, "reader")
	if err != nil {
		return err
	}
	defer reader.Close()
	fmt.Fprintf(out, "the sleeper and the reader watch; a pod of %d kB changes %d times\n", sleeperBytes/1000, sleeperChanges)
	var read changesSeen
	done := make(chan error, 1) // sent once, by the goroutine, when the reader has read the last change, or its stream has ended
	go func() {
		var err error
		read, err = readChanges(reader)
		done <- err
	}()
	for i := 1; i <= sleeperChanges && err == nil; i++ {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d","sent":"%d"}}}`, i, time.Now().UnixNano())
		_, err = send(ctx, client, http.MethodPatch, pods.JoinPath("big"), patch)
	}
	if err != nil {
		_ = reader.Close()
		<-done
		return err
	}
	if err := <-done; err != nil {
		return fmt.Errorf("the reader's stream broke: %w", err)
	}
	fmt.Fprintf(out, "the reader was sent %d changes; the slowest took %d ms\n", read.n, read.slowest.Milliseconds())
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

// inTheWay says whose pod has the name of ours.
func inTheWay(ctx context.Context, client *http.Client, server *url.URL) error {
	text, err := send(ctx, client, http.MethodGet, server.JoinPath("/api/v1/namespaces/default/pods/big"), "")
	if err != nil {
		return err
	}
	remove := fmt.Sprintf("kubectl -s %s delete pod big", server)
	if strings.Contains(text, `"listwatch":"sleeper"`) {
		return fmt.Errorf("another -sleeper is at work, or was killed: wait for it, or remove its pod: %s", remove)
	}
	return fmt.Errorf("a pod named big is in the way, and no sleeper has made it: remove it: %s", remove)
}

// changesSeen is what a client has read of a watch.
type changesSeen struct {
	n       int           // the newest change: none is left out
	slowest time.Duration // from the request to the event
	last    bool          // it has read the last one
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
		annotations := event.Object.Metadata.Annotations
		n, err := strconv.Atoi(annotations["n"])
		if err != nil || n <= seen.n {
			continue // another pod, or changed by another client
		}
		seen.n = n
		sent, _ := strconv.ParseInt(annotations["sent"], 10, 64)
		seen.slowest = max(seen.slowest, time.Since(time.Unix(0, sent)))
		seen.last = n == sleeperChanges
	}
	return seen, nil
}

func openWatch(ctx context.Context, client *http.Client, pods *url.URL, agent string) (io.ReadCloser, error) {
	watch := *pods
	watch.RawQuery = "watch=true"
	stream, err := ask(ctx, client, http.MethodGet, &watch, agent, "")
	if err != nil {
		return nil, fmt.Errorf("open the watch of the %s: %w", agent, err)
	}
	return stream, nil
}

// send makes one request and returns its answer.
func send(ctx context.Context, client *http.Client, method string, target *url.URL, body string) (string, error) {
	answer, err := ask(ctx, client, method, target, "writer", body)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer)
	return string(text), errors.Join(err, answer.Close())
}

// ask makes one request as the client that is called agent. The caller closes the answer's body.
func ask(ctx context.Context, client *http.Client, method string, target *url.URL, agent, body string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, target.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", agent)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := client.Do(request)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = errors.Join(statusError(response.StatusCode), response.Body.Close())
	}
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}
