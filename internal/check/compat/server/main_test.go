package server

import (
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"listwatch/internal/check/compat/ratios"
)

func TestMain(m *testing.M) {
	// What the real cacher says about watchers that come and go is not about our program.
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	klog.SetOutput(io.Discard)
	printTable, err := ratios.Watch()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// A read that has waited for a version leaves this behind for three seconds.
	waiting := goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2")
	goleak.VerifyTestMain(m, waiting, goleak.IgnoreAnyFunction("listwatch/internal/check/compat/ratios.Watch.func1"), goleak.Cleanup(func(code int) {
		printTable()
		os.Exit(code)
	}))
}
