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
	// The real client-go's messages about an absent server are not about our program.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// Build before the tests: a compiler would take the processors from a running test, and a held world does not wait
	// so long.
	if err := program.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Tests without a page mostly wait for programs. Seats limit the pages.
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(tests{m})
}

// tests runs this package's tests in one browser.
type tests struct{ *testing.M }

// Run runs the tests and then closes the browser.
func (m tests) Run() int {
	code := m.M.Run()
	if err := closeChromium(); err != nil {
		fmt.Fprintln(os.Stderr, "close the browser:", err)
		code = 1
	}
	return code
}
