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
	// client-go would log errors about servers that the tests have stopped.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// Build before the tests: a compiler would take the processors from a running test, and a held world would be
	// released meanwhile.
	if err := program.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Three tests may run at once, because most tests without a page wait for programs. Seats limit the pages.
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(tests{m})
}

// tests runs this package's tests, and then closes the browser that they share.
type tests struct{ *testing.M }

// Run returns the tests' exit code, or 1 if the browser does not close.
func (m tests) Run() int {
	code := m.M.Run()
	if err := closeChromium(); err != nil {
		fmt.Fprintln(os.Stderr, "close the browser:", err)
		code = 1
	}
	return code
}
