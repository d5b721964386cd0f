package clientgo

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"listwatch/internal/check/compat/ratios"
)

func TestMain(m *testing.M) {
	// What the real client-go says about streams that end is not about our program.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	printTable, err := ratios.Watch()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("listwatch/internal/check/compat/ratios.Watch.func1"), goleak.Cleanup(func(code int) {
		printTable()
		os.Exit(code)
	}))
}
