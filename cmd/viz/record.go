package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"k8s.io/utils/clock"

	"listwatch/internal/probe"
	"listwatch/internal/recording"
	"listwatch/internal/routine"
	"listwatch/viz"
)

// startRecording begins to write the log to -record's file, if there is one. The file is complete when the group has
// ended; an error while writing ends the program, because a recording with a hole is worth nothing.
func startRecording(ctx context.Context, group *routine.Group, o *options, log *probe.Log, fail context.CancelCauseFunc) error {
	if o.record == "" {
		return nil
	}
	file, err := os.Create(o.record)
	if err != nil {
		return fmt.Errorf("-record: %w", err)
	}
	group.Go(ctx, "viz.record", func(ctx context.Context) {
		err := recording.Write(ctx, log, clock.RealClock{}, o.switches(), file)
		if err := errors.Join(err, file.Close()); err != nil {
			fail(fmt.Errorf("-record %s: %w", o.record, err))
		}
	})
	return nil
}

// replay shows a recording, at the pace at which it was made. Nothing else runs: the API answers that it is not there.
func replay(ctx context.Context, o *options, listener net.Listener, stdout, stderr io.Writer) error {
	file, err := os.Open(o.replay)
	if err != nil {
		return fmt.Errorf("-replay: %w", err)
	}
	header, records, err := recording.Read(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("-replay %s: %w", o.replay, err)
	}
	log := probe.NewLog(clock.RealClock{}, max(len(records), probe.DefaultLogSize))
	o.recorded = header.Switches
	ui, err := newUI(o, listener, viz.Config{Log: log, Replay: true})
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	var group routine.Group
	defer group.Wait()
	defer fail(nil)
	front := &front{listener: listener, handler: ui, fail: fail}
	group.Go(ctx, "viz.ui", ui.Run)
	group.Go(ctx, "viz.front", front.run)
	group.Go(ctx, "viz.play", func(ctx context.Context) { recording.Play(ctx, log, clock.RealClock{}, records) })
	announce(o, listener, stdout, stderr)
	<-ctx.Done()
	return ended(ctx)
}
