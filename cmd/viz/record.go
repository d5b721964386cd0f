package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"k8s.io/utils/clock"

	"listwatch/internal/fold"
	"listwatch/internal/probe"
	"listwatch/internal/recording"
	"listwatch/internal/routine"
	"listwatch/internal/rules"
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

// startFlight begins to watch for what goes wrong, unless -flight is "off".
func startFlight(ctx context.Context, group *routine.Group, o *options, log *probe.Log, promises *rules.Monitor, ui *viz.UI, stderr io.Writer) {
	if o.flight == flightOff {
		return
	}
	flight := &recording.Flight{
		Log: log, Clock: clock.RealClock{}, Dir: o.flight, Switches: o.switches(), Keyframe: ui.Keyframe, Breaches: promises.Breaches,
		Say: func(line string) { fmt.Fprintf(stderr, "viz: %s\n", line) },
	}
	group.Go(ctx, "viz.flight", flight.Run)
}

// replay shows a recording. Nothing runs: the API answers that it is not there. The whole recording is in the log at once,
// and the page moves through it as people like.
func replay(ctx context.Context, o *options, listener net.Listener, stdout, stderr io.Writer) error {
	file, err := os.ReadFile(o.replay)
	if err != nil {
		return fmt.Errorf("-replay: %w", err)
	}
	header, records, err := recording.Read(bytes.NewReader(file))
	if err != nil {
		return fmt.Errorf("-replay %s: %w", o.replay, err)
	}
	config := viz.Config{Log: probe.NewLog(clock.RealClock{}, max(len(records), 1)), Replay: true, Recording: recording.Hash(file)}
	if header.Keyframe != nil {
		if config.Keyframe, err = fold.Read(header.Keyframe); err != nil {
			return fmt.Errorf("-replay %s: %w", o.replay, err)
		}
	}
	recording.Load(config.Log, records)
	config.Rules = rules.NewMonitor(config.Log)
	if header.Points != "" && header.Points != recording.PointsHash() {
		fmt.Fprintf(stderr, "viz: %s was written by another version of this program; what has changed since may be shown wrongly\n", o.replay)
	}
	o.recorded = header.Switches
	ui, err := newUI(o, listener, config)
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
	announce(o, listener, stdout, stderr)
	<-ctx.Done()
	return ended(ctx)
}
