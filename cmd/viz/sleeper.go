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
	// sleeperBytes times sleeperChanges is more than two kernels keep of what is not read. A narrow window would do with less, and
	// the sleeper would need minutes to read that when it wakes up.
	sleeperBytes = 100_000
	// sleeperPatience is many times what all of it takes.
	sleeperPatience = 20 * time.Minute
)

// runSleeper is three clients of a listwatch that runs: the sleeper opens a watch and does not read it, the reader opens one
// and reads it, the writer changes a large pod. It says what became of the first two.
func runSleeper(ctx context.Context, server *url.URL, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, sleeperPatience)
	defer cancel()
	client := newHTTPClient(nil)
	defer client.CloseIdleConnections()
	// A cluster at work is not written to: only a listwatch answers here.
	if err := send(ctx, client, http.MethodGet, server.JoinPath("/viz/knobs"), ""); err != nil {
		return fmt.Errorf("no listwatch at %s: %w", server, err)
	}
	pods := server.JoinPath("/api/v1/namespaces/default/pods")
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
	var read changesSeen
	done := make(chan error, 1) // sent once, by the goroutine, when the reader has read the last change, or its stream has ended
	go func() {
		var err error
		read, err = readChanges(reader)
		done <- err
	}()
	fmt.Fprintf(out, "the sleeper and the reader watch; a pod of %d kB changes %d times\n", sleeperBytes/1000, sleeperChanges)
	if err := writeChanges(ctx, client, pods); err != nil {
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
	return send(ctx, client, http.MethodDelete, pods.JoinPath("big"), "")
}

// writeChanges makes the pod and changes it. Each version says when it was sent.
func writeChanges(ctx context.Context, client *http.Client, pods *url.URL) error {
	pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"big","annotations":{"big":%q}},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}`,
		strings.Repeat("x", sleeperBytes))
	err := send(ctx, client, http.MethodPost, pods, pod)
	for i := 1; i <= sleeperChanges && err == nil; i++ {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d","sent":"%d"}}}`, i, time.Now().UnixNano())
		err = send(ctx, client, http.MethodPatch, pods.JoinPath("big"), patch)
	}
	return err
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, pods.String()+"?watch=true", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", agent)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("open the watch of the %s: %s", agent, response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// send makes one request and drops its answer, if that is no error.
func send(ctx context.Context, client *http.Client, method string, target *url.URL, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, target.String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode >= http.StatusBadRequest {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
