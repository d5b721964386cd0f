package handlers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

func TestAbsurdNumbersAreRefusedOrTakenAtTheirWord(t *testing.T) {
	for query, want := range map[string]int{
		"?limit=-1":                                                   200, // as upstream: no limit
		"?limit=9223372036854775807":                                  200,
		"?limit=9223372036854775808":                                  400,
		"?timeoutSeconds=9223372036854775807":                         200,
		"?timeoutSeconds=-9223372036854775808":                        422,
		"?timeoutSeconds=1e9":                                         400,
		"?resourceVersion=-1":                                         400,
		"?resourceVersion=9223372036854775807":                        504, // a version of the future
		"?resourceVersion=18446744073709551615":                       400,
		"?resourceVersion=18446744073709551616":                       400,
		"?resourceVersion=1.5":                                        400,
		"?timeout=9999999999h":                                        400,
		"?timeout=-1s":                                                400,
		"?continue=" + strings.Repeat("x", 100_000):                   400,
		"?labelSelector=" + strings.Repeat("a,", 10_000) + "a":        200,
		"?fieldSelector=metadata.name%3D" + strings.Repeat("x", 5000): 200,
	} {
		t.Run(query[:min(len(query), 40)], func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				a := newCachedAPI(t)
				w := a.do("GET", podsPath+query, "")
				assert.Equal(t, w.Code, want, "got %d %.300s, want %d", w.Code, w.Body, want)
			})
		})
	}
}

func TestALengthOfCenturiesIsNoLimit(t *testing.T) {
	for _, seconds := range []string{"9223372036", "9223372036854775807"} {
		t.Run(seconds, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				a := newCachedAPI(t)
				response, err := a.serve().Get("http://api" + podsPath + "?watch=1&resourceVersion=0&timeoutSeconds=" +
					seconds)
				require.NoError(t, err)
				defer response.Body.Close()
				time.Sleep(24 * time.Hour)
				a.create(podA)
				got := next(t, bufio.NewScanner(response.Body))
				assert.Equal(t, got.Type, "ADDED", "got %+v, want a after a day", got)
			})
		})
	}
}

func TestANamespaceThatClimbsIsABadRequest(t *testing.T) {
	const climbing = "/api/v1/namespaces/%2e%2e/pods"
	for _, c := range []struct{ method, path, body string }{
		{"GET", climbing + "/x", ""}, {"GET", climbing, ""}, {"GET", climbing + "?watch=1", ""},
		{"PUT", climbing + "/x", strings.Replace(podA, `"name":"a"`, `"name":"x"`, 1)}, {"DELETE", climbing + "/x",
			""}, {"DELETE", climbing, ""},
		{"GET", climbing + "/x/status", ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				wantStatus(t, newCachedAPI(t).do(c.method, c.path, c.body), 400, metav1.StatusReasonBadRequest)
			})
		})
	}
}

// raw sends bytes over a connection of their own and returns what comes back until the server closes it, or for a
// minute.
func raw(t *testing.T, client *http.Client, text string) string {
	t.Helper()
	conn, err := client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "api")
	require.NoError(t, err)
	defer conn.Close()
	// A server that has heard enough does not read to the end.
	new(routine.Group).Go(context.Background(), "test.client", func(context.Context) {
		_, _ = io.WriteString(conn,
			text)
	})
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	answer, err := io.ReadAll(conn)
	if timeout, ok := err.(net.Error); err != nil && !(ok && timeout.Timeout()) {
		t.Logf("read: %v", err)
	}
	return string(answer)
}

func TestRequestsThatAreNoneAreAnsweredAndForgotten(t *testing.T) {
	var headers strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&headers, "X-Header-%d: %s\r\n", i, strings.Repeat("v", 200))
	}
	post := "POST " + podsPath + " HTTP/1.1\r\nHost: api\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct{ text, want string }{
		"not HTTP":         {"hello\r\n\r\n", "HTTP/1.1 400 "},
		"half a body":      {post + "Content-Length: 100\r\n\r\n{", "HTTP/1.1 504 "},
		"a body that lies": {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
		"10 MB": {post + "Connection: close\r\nContent-Length: 10485760\r\n\r\n" + strings.Repeat(" ",
			10<<20), "HTTP/1.1 413 "},
		"10,000 headers": {"GET " + podsPath + " HTTP/1.1\r\nHost: api\r\n" + headers.String() + "\r\n",
			"HTTP/1.1 431 "},
		"two lengths": {post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 400 "},
		"an unknown method": {"BREW " + podsPath + " HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n",
			"HTTP/1.1 405 "},
		"a path from above": {"GET /api/v1/namespaces/../../etc HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n",
			"HTTP/1.1 404 "},
		"a name with a slash": {"GET " + podsPath + "/a%2Fb HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n",
			"HTTP/1.1 404 "},
		"a name with a zero": {"GET " + podsPath + "/a%00b HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n",
			"HTTP/1.1 404 "},
		"no JSON": {post + "Connection: close\r\nContent-Length: 4\r\n\r\n{\"a\"", "HTTP/1.1 400 "},
		"deep JSON": {post + "Connection: close\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("[",
			200_000), "HTTP/1.1 400 "},
		"an expectation": {post + "Expect: the-impossible\r\nContent-Length: 1\r\nConnection: close\r\n\r\n{",
			"HTTP/1.1 417 "},
		"half a watch": {"GET " + podsPath + "?watch=1", ""},
		"a watch with a body": {"GET " + podsPath + "?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: api\r\nConnection: " +
			"close\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 200 "},
		"a socket of no watch": {"GET " + podsPath +
			"?watch=1 HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 400 "},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				answer := raw(t, newCachedAPI(t).serve(), c.text)
				assert.True(t, strings.HasPrefix(answer, c.want), "got %.200q, want %q", answer, c.want)
			})
		})
	}
}

func TestASlowClientIsCutOffAndMissesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const pods = 1500 // more than its queues hold
		a := newCachedAPI(t)
		client := a.serve()
		first := strings.Replace(podA, `"app"`, `"k":"`+strings.Repeat("x", 60)+`","app"`, 1)
		a.create(first)
		response, err := client.Get("http://api" + podsPath + "?watch=1&timeoutSeconds=3600")
		require.NoError(t, err)
		defer response.Body.Close()
		synctest.Wait()
		for i := range pods { // while it does not read
			a.create(strings.Replace(first, `"a"`, fmt.Sprintf(`"p%d"`, i), 1))
		}
		time.Sleep(time.Second)
		seen, version, ended := collect(t, response.Body)
		require.True(t, ended && len(seen) <= pods, "got %d events, end %v: it was not cut off", len(seen), ended)
		t.Logf("cut off after %d events", len(seen))
		for len(seen) < pods+1 {
			again, err := client.Get("http://api" + podsPath + "?watch=1&timeoutSeconds=60&resourceVersion=" + version)
			require.NoError(t, err)
			more, last, _ := collect(t, again.Body)
			again.Body.Close()
			for name, times := range more {
				seen[name] += times
			}
			if last == "" {
				break
			}
			version = last
		}
		for i := range pods {
			assert.Equal(t, seen[fmt.Sprint("p", i)], 1, "p%d was seen times", i)
		}
	})
}

// collect reads a watch to its end: how often each name was added, the last version, and whether the end was clean.
func collect(t *testing.T, body io.Reader) (seen map[string]int, version string, ended bool) {
	t.Helper()
	seen = map[string]int{}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		var f frame
		var object metav1.PartialObjectMetadata
		require.NoError(t, json.Unmarshal(lines.Bytes(), &f))
		require.NoError(t, json.Unmarshal(f.Object, &object))
		seen[object.Name]++
		version = object.ResourceVersion
	}
	return seen, version, lines.Err() == nil
}
