package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"k8s.io/utils/clock"

	"listwatch/cmd/internal/machine"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/rules"
	"listwatch/internal/play/scenario"
	"listwatch/viz"
	"listwatch/viz/frame"
)

// startRecording begins to write the log to -record's file, if there is one. stop ends it when nothing writes to
// the log any more, and returns when the file is complete: it contains the end of both halves. A recording that
// cannot go on says so at once and ends, and not the program; stop returns what goes wrong only at the end.
func startRecording(
	o *options, switches map[string]string, log *probe.Log, stderr io.Writer,
) (stop func() error, _ error) {
	name := o.record
	if name == "" {
		return func() error { return nil }, nil
	}
	file, err := createOurs(name, recording.Begins) // it holds what clients have said
	if err != nil {
		return nil, fmt.Errorf("-record: %w", err)
	}
	var group routine.Group
	ctx, cancel := context.WithCancel(context.Background())
	group.Go(ctx, "viz.record", func(ctx context.Context) {
		wrong := cmp.Or(recording.Write(ctx, log, switches, file), file.Close())
		switch {
		case wrong == nil:
		case ctx.Err() == nil:
			fmt.Fprintf(stderr, "viz: -record %s: %v; the file ends there, and "+
				"the program continues without it\n", name,
				wrong)
		default:
			err = fmt.Errorf("-record %s: %w", name, wrong) // read when this goroutine has ended
		}
	})
	return o.end.last.add(func() error {
		cancel()
		group.Wait()
		return err
	}), nil
}

// replay shows a recording. Nothing runs: the API answers that it is not there. The whole recording is in the log
// at once, and the page moves through it as people like.
func replay(ctx context.Context, o *options, listener net.Listener, stdout, stderr io.Writer) error {
	rec, err := recording.Open(ctx, o.replay)
	if err != nil {
		return fmt.Errorf("-replay %s: %w", o.replay, err)
	}
	log := probe.NewLog(clock.RealClock{}, max(len(rec.Records), 1))
	for i := range rec.Records {
		log.Replay(rec.Records[i])
	}
	if unknown := rec.Unknown(); len(unknown) > 0 {
		fmt.Fprintf(stderr, "viz: another version of this program wrote %s: "+
			"its moments of %.500s are shown by name "+
			"only\n", o.replay, strings.Join(unknown, ", "))
	}
	pictures := viz.NewPictures(log, rec.Start, nil)
	page := frame.New(log, pictures)
	page.Past.Recording, page.Past.Switches, page.Replay = rec.Hash, rec.Header.Switches, true
	page.Promises.Monitor, page.Stories.Stories = rules.NewMonitor(log), scenario.All
	bring(page)
	ui := viz.New(pictures, page, nil, o.hosts(listener)...)
	ctx, fail := context.WithCancelCause(ctx)
	var group routine.Group
	defer group.Wait()
	defer fail(nil)
	front := &front{listener: listener, handler: ui, fail: fail, log: newFrontLog(stderr)}
	group.Go(ctx, "viz.ui", ui.Run)
	group.Go(ctx, "viz.front", front.run)
	announce(o, listener, stdout, stderr)
	<-ctx.Done()
	return machine.Ended(ctx)
}
