//go:build unix && full

package scale

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"listwatch/internal/check/require"
)

// serverOf names the environment variable by which this test binary, run again, becomes the clients of a server.
const serverOf = "SCALE_TEST_SERVER"

func TestMain(m *testing.M) {
	if address := os.Getenv(serverOf); address != "" {
		(&crowd{address: address, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}}}).run()
		return
	}
	goleak.VerifyTestMain(m)
}

// writers is how many clients write at once.
const writers = 8

// crowd is the clients: each line on stdin is a command, each line on stdout says that it was done.
type crowd struct {
	address string
	http    *http.Client

	frames, bytes atomic.Int64 // that the watches have received
}

func (c *crowd) run() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var from, to int
		var rv string
		command, rest, _ := strings.Cut(in.Text(), " ")
		fmt.Sscan(rest, &from, &to, &rv)
		switch command {
		case "nodes": // one watch for each node
			each(from, to, func(n int) {
				c.watch("fieldSelector=spec.nodeName%3D" + node(n) + "&resourceVersion=" +
					rv)
			})
		case "all":
			each(from, to, func(int) { c.watch("resourceVersion=" + rv) })
		case "write": // once to each pod
			each(from, to, c.write)
		}
		fmt.Println("done", c.frames.Load(), c.bytes.Load())
	}
}

// each calls do for each number in [from, to), several at once.
func each(from, to int, do func(int)) {
	var group errgroup.Group
	group.SetLimit(writers)
	for n := from; n < to; n++ {
		group.Go(func() error { do(n); return nil })
	}
	_ = group.Wait()
}

// watch opens a watch, and lets it be read for as long as the process runs.
func (c *crowd) watch(query string) {
	response, err := c.http.Get(c.address + "/api/v1/pods?watch=true&timeoutSeconds=7200&" + query)
	if err != nil || response.StatusCode != http.StatusOK {
		fmt.Println("failed: watch", query, err, response)
		os.Exit(1)
	}
	go func() {
		buffer := make([]byte, 32<<10)
		for {
			n, err := response.Body.Read(buffer)
			c.bytes.Add(int64(n))
			c.frames.Add(int64(bytes.Count(buffer[:n], []byte("\n"))))
			if err != nil {
				fmt.Println("failed: a watch ended:", err)
				os.Exit(1)
			}
		}
	}()
}

var written atomic.Int64

func (c *crowd) write(n int) {
	body := fmt.Sprintf(`{"metadata":{"labels":{"turn":"%d"}}}`, written.Add(1))
	request, err := http.NewRequest(http.MethodPatch, c.address+"/api/v1/namespaces/default/pods/"+podName(n),
		strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := c.http.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		fmt.Println("failed: write", n, err, response)
		os.Exit(1)
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
}

// clients is the crowd as the test sees it.
type clients struct {
	stdin  io.Writer
	stdout *bufio.Scanner
}

func startClients(t *testing.T, address string) *clients {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverOf+"="+address)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &clients{stdin, bufio.NewScanner(stdout)}
}

// do lets the clients do something, and returns what their watches have received until now.
func (c *clients) do(t *testing.T, command string) (frames, bytes int64) {
	t.Helper()
	fmt.Fprintln(c.stdin, command)
	if !c.stdout.Scan() {
		t.Fatalf("%s: the clients are gone: %v", command, c.stdout.Err())
	}
	if _, err := fmt.Sscanf(c.stdout.Text(), "done %d %d", &frames, &bytes); err != nil {
		t.Fatalf("%s: %s", command, c.stdout.Text())
	}
	return frames, bytes
}
