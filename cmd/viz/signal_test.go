//go:build unix

package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// asStuck is the environment variable that makes this test binary run [stuck] on a clock that does not move.
const asStuck = "VIZ_TEST_AS_STUCK"

func init() {
	if os.Getenv(asStuck) == "" {
		return
	}
	end := &ending{clock: clocktesting.NewFakeClock(time.Time{})}
	o, err := parseOptions([]string{"-listen=127.0.0.1:0", "-flight=off", "-demo=false"}, os.Stderr)
	if err == nil {
		o.end = end
		ready := make(chan string, 1)
		go func() { fmt.Println(<-ready) }()
		err = end.within(interruptible(), os.Stderr, func(ctx context.Context) error {
			return stuck(ctx, o, false, nil, ready)
		})
	}
	fmt.Fprintln(os.Stderr, "ends by itself:", err)
	os.Exit(exitOK)
}

// TestASecondSignalEndsTheProgramAtOnce has a handler compute forever, and stops the program's clock, so that the first
// signal never ends the program.
func TestASecondSignalEndsTheProgramAtOnce(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sent.String(), func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			c, stderr := child(t, asStuck+"=1")
			c.Env = append(c.Env, "TMPDIR="+tmp)
			stdout := require.Value(c.StdoutPipe())(t)
			require.NoError(t, c.Start())
			url := strings.TrimSpace(require.Value(bufio.NewReader(stdout).ReadString('\n'))(t))
			computes := require.Value(http.Get(url + "/computing"))(t)
			defer computes.Body.Close()
			watch := require.Value(http.Get(url + "/api/v1/pods?watch=true"))(t)
			defer watch.Body.Close()
			require.NoError(t, c.Process.Signal(sent))
			require.NoError(t, assert.ErrorOf(io.Copy(io.Discard, watch.Body)), "the first signal ends a stream")
			require.NoError(t, c.Process.Signal(sent))
			_ = c.Wait() // the test reads the status below
			status := c.ProcessState.Sys().(syscall.WaitStatus)
			assert.True(t, status.Signaled() && status.Signal() == sent && stderr.String() == "", "got %v and %q",
				c.ProcessState, stderr)
			left := require.Value(os.ReadDir(tmp))(t)
			assert.True(t, len(left) == 1 && strings.HasPrefix(left[0].Name(), "listwatch-"), "left behind: %v", left)
		})
	}
}

// TestASignalEndsAReplayInTheMiddleOfALine feeds the program a line that has no end.
func TestASignalEndsAReplayInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	c, stderr := child(t, asProgram+"=1", "-listen=127.0.0.1:0", "-replay=/dev/stdin")
	file := require.Value(c.StdinPipe())(t)
	require.NoError(t, c.Start())
	line := require.Value(gzip.NewWriterLevel(file, gzip.NoCompression))(t)
	_, err := line.Write(make([]byte, 1<<20)) // more than a pipe holds: after this write, the program is reading
	require.NoError(t, err)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	// Send small pieces, so that the program notices the signal long before the line is too long.
	for piece := make([]byte, 64); err == nil; err = line.Flush() {
		_, _ = line.Write(piece)
	}
	_ = c.Wait() // the test reads the status below
	assert.True(t, c.ProcessState.ExitCode() == exitOK && stderr.String() == "", "got %v and %q", c.ProcessState,
		stderr)
}
