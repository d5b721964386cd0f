package viz

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
	"listwatch/viz/inspector"
)

// wire answers GET /viz/wire?resource=&watcher= with the open watches of the client half as they are on the wire:
// request, header, and the newest chunks, each with its size line, data and line end. What other programs have opened
// does not pass through our hands on their side, and is not among them.
func (u *UI) wire(r *http.Request) (any, error) {
	resource, watcher := r.URL.Query().Get("resource"), r.URL.Query().Get("watcher")
	streams := []inspector.Stream{}
	open, err := u.streams(r.Context())
	for _, stream := range open {
		if (resource == "" || resource == stream.Resource) && (watcher == "" || watcher == stream.Watcher) {
			streams = append(streams, stream)
		}
	}
	return streams, err
}

// streams returns the open watches with their watchers, and with nothing in their bytes that opens doors.
func (u *UI) streams(ctx context.Context) ([]inspector.Stream, error) {
	streams, err := u.folder.watchersOf(ctx, u.config.Wire())
	if err != nil {
		return nil, err
	}
	for i := range streams {
		hide := redact.JSON
		if strings.Contains(streams[i].OpenedBy, "/secrets") {
			hide = redact.Stream
		}
		written, err := json.Marshal(streams[i].Wire)
		if err != nil {
			return nil, err
		}
		streams[i].Wire = wiretap.Stream{}
		if err := json.Unmarshal(hide(written), &streams[i].Wire); err != nil {
			return nil, err
		}
	}
	return streams, nil
}

// watchersOf finds the watcher of each stream: the oldest open one that was opened by the same client for the same, and
// is not another stream's.
func (f *folder) watchersOf(ctx context.Context, streams []wiretap.Stream) ([]inspector.Stream, error) {
	if err := f.lockCurrent(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	var found []inspector.Stream
	taken := map[*fold.Subject]bool{}
	for _, stream := range streams {
		one := inspector.Stream{OpenedBy: stream.OpenedBy(), Wire: stream}
		if subject := f.openedLocked(&one, taken); subject != nil {
			taken[subject] = true
		}
		found = append(found, one)
	}
	return found, nil
}

// openedLocked sets resource and watcher of a stream and returns the latter's subject, nil if there is none.
func (f *folder) openedLocked(stream *inspector.Stream, taken map[*fold.Subject]bool) (oldest *fold.Subject) {
	text := fold.Bound(stream.OpenedBy)
	for _, name := range slices.Sorted(maps.Keys(f.state.Resources)) {
		for id, subject := range f.state.Resources[name].Subjects {
			if taken[subject] || subject.Texts[probe.WireOpened.Info().Name] != text || oldest != nil &&
				oldest.Opened < subject.Opened {
				continue
			}
			oldest, stream.Resource, stream.Watcher = subject, name, id
		}
	}
	return oldest
}
