package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"

	"k8s.io/utils/clock"

	"listwatch/cmd/internal/machine"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/rules"
	"listwatch/internal/play/scenario"
	"listwatch/viz"
	"listwatch/viz/book"
	"listwatch/viz/export"
	"listwatch/viz/frame"
)

// createOurs creates a file that only its owner may read. It replaces a file of that name if the file is empty, or if
// ours recognizes it as written by this program. It changes nothing else, not even the target of a link.
func createOurs(name string, ours func(io.Reader) bool) (*os.File, error) {
	create := func() (*os.File, error) { return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) }
	file, err := create()
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	there, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !there.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not an ordinary file: name the file itself", name)
	}
	old, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	opened, err := old.Stat()
	if err != nil {
		return nil, err
	}
	// Replace only the file that was examined, because another program may have put a link in its place meanwhile.
	if !os.SameFile(there, opened) || opened.Size() > 0 && !ours(old) {
		return nil, fmt.Errorf("%s is there, and not as this program writes it: choose another name, or remove the "+
			"file", name)
	}
	// Create a new file instead of emptying the old one, which others may have open or know by another name.
	if err := errors.Join(old.Close(), os.Remove(name)); err != nil {
		return nil, err
	}
	return create()
}

// kubeconfigMark begins each kubeconfig that this program writes. A program that changes the file, such as kubectl
// config, drops the mark; this program then leaves the file alone.
const kubeconfigMark = "# Written by listwatch -kubeconfig\n"

// writeKubeconfig writes a kubeconfig for url, without certificate checks: the JavaScript client needs that for http.
func writeKubeconfig(name, url string) error {
	file, err := createOurs(name, func(old io.Reader) bool {
		head := make([]byte, len(kubeconfigMark))
		_, err := io.ReadFull(old, head)
		return err == nil && bytes.Equal(head, []byte(kubeconfigMark))
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, kubeconfigMark+`apiVersion: v1
kind: Config
current-context: listwatch
clusters:
- name: listwatch
  cluster: {server: %q, insecure-skip-tls-verify: true}
contexts:
- name: listwatch
  context: {cluster: listwatch, user: listwatch}
users:
- name: listwatch
  user: {}
`, url)
	return errors.Join(err, file.Close())
}

// exportTo writes the pages that work without the program, and prints their number and size. It starts neither half.
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

// startRecording begins to write the log to -record's file, if that is set. Call stop when nothing writes to the log
// any more: it returns when the file is complete, with the end of both halves in it. If the recording breaks earlier,
// the program prints the reason at once and continues without it, and stop returns nil.
func startRecording(
	o *options, switches map[string]string, log *probe.Log, stderr io.Writer,
) (stop func() error, _ error) {
	name := o.record
	if name == "" {
		return func() error { return nil }, nil
	}
	file, err := createOurs(name, recording.Begins) // only the owner may read it: it holds what clients have sent
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
				"the program continues without it\n", name, wrong)
		default:
			err = fmt.Errorf("-record %s: %w", name, wrong) // stop reads err after this goroutine has ended
		}
	})
	return o.end.last.add(func() error {
		cancel()
		group.Wait()
		return err
	}), nil
}

// replay shows a recording. Neither half runs, so the API answers 404. From the start, the log holds the whole
// recording, so the page can move to any record.
func replay(ctx context.Context, o *options, listener net.Listener, stdout, stderr io.Writer) error {
	rec, err := recording.Open(ctx, o.replay)
	if err != nil {
		return fmt.Errorf("-replay %s: %w", o.replay, err)
	}
	log := probe.NewLog(clock.RealClock{}, max(len(rec.Records), 1))
	for i := range rec.Records {
		log.Replay(rec.Records[i])
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
