package main

import (
	"context"
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/play/scenario"
	"listwatch/viz"
	"listwatch/viz/book"
	"listwatch/viz/export"
)

// onePage is how the name of a page ends that is written for one recording.
const onePage = ".html"

// exportTo writes pages that need no program, for which nothing is started.
func exportTo(ctx context.Context, o *options, stdout io.Writer) error {
	config := viz.Config{Log: probe.NewLog(clock.RealClock{}, 1), Replay: true}
	if o.replay != "" {
		rec, err := recording.Open(ctx, o.replay)
		if err != nil {
			return fmt.Errorf("-replay %s: %w", o.replay, err)
		}
		size, err := export.WriteOne(o.export, viz.New(config), rec)
		if err != nil {
			return fmt.Errorf("-export %s: %w", o.export, err)
		}
		fmt.Fprintf(stdout, "wrote %s, %.1f MB\n", o.export, float64(size)/1e6)
		return nil
	}
	config.Scenarios = scenario.All
	config.Book = book.New()
	files, size, err := export.Write(o.export, viz.New(config))
	if err != nil {
		return fmt.Errorf("-export %s: %w", o.export, err)
	}
	fmt.Fprintf(stdout, "wrote %d files into %s, %.1f MB: begin with index.html\n", files, o.export, float64(size)/1e6)
	return nil
}
