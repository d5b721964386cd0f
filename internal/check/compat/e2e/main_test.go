package e2e

import (
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"listwatch/internal/check/compat/program"
)

func TestMain(m *testing.M) {
	// What the real client-go says while its server is away is not about our program.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// Not in the middle of a test: a compiler beside it leaves it no processor, and a world that is held does not wait
	// so long.
	if err := program.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Tests without a page wait for programs most of the time. Pages are limited by seats.
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(tests{m})
}

// tests are those of this package, in one browser.
type tests struct{ *testing.M }

// Run runs them.
func (m tests) Run() int {
	code := m.M.Run()
	if err := closeChromium(); err != nil {
		fmt.Fprintln(os.Stderr, "close the browser:", err)
		code = 1
	}
	return code
}
