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
	"listwatch/viz/frame"
)

// exportTo writes pages that need no program, for which nothing is started.
func exportTo(folder string, stdout io.Writer) error {
	log := probe.NewLog(clock.RealClock{}, 1)
	pictures := viz.NewPictures(log, nil, nil)
	page := frame.New(log, pictures)
	page.Replay, page.Stories.Stories, page.Book.Pages = true, scenario.All, book.New(scenario.All)
	files, size, err := export.Write(folder, viz.New(pictures, page, nil))
	if err != nil {
		return fmt.Errorf("-export %s: %w", folder, err)
	}
	fmt.Fprintf(stdout, "wrote %d files into %s, %.1f MB: begin with index.html\n", files, folder, float64(size)/1e6)
	return nil
}
