package main

import (
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/play/scenario"
	"listwatch/viz"
	"listwatch/viz/book"
	"listwatch/viz/export"
)

// exportTo writes pages that need no program, for which nothing is started.
func exportTo(folder string, stdout io.Writer) error {
	files, size, err := export.Write(folder, viz.New(viz.Config{
		Log: probe.NewLog(clock.RealClock{}, 1), Replay: true, Scenarios: scenario.All, Book: book.New(scenario.All),
	}))
	if err != nil {
		return fmt.Errorf("-export %s: %w", folder, err)
	}
	fmt.Fprintf(stdout, "wrote %d files into %s, %.1f MB: begin with index.html\n", files, folder, float64(size)/1e6)
	return nil
}
