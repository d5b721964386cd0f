package client

import (
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"listwatch/internal/check/compat/ratios"
)

func TestMain(m *testing.M) {
	// What the real client-go says of a server that fails is not about our program.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	printTable, err := ratios.Watch()
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		printTable()
		os.Exit(code)
	}), goleak.IgnoreCurrent())
}
