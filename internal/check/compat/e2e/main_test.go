package e2e

import (
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
	goleak.VerifyTestMain(m)
}
