package viz

import (
	"context"
	"encoding/json"
	"net/http"
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
	query := r.URL.Query()
	return u.streams(r.Context(), query.Get("resource"), query.Get("watcher"))
}

// streams returns the open watches of a resource and a watcher, "" for all, with nothing in their bytes that opens
// doors. A stream's watcher is the oldest open one that was opened by the same client for the same, and is not another
// stream's.
func (u *UI) streams(ctx context.Context, resource, watcher string) ([]inspector.Stream, error) {
	state, err := u.folder.now(ctx)
	if err != nil {
		return nil, err
	}
	streams, taken := []inspector.Stream{}, map[*fold.Subject]bool{}
	for _, wire := range u.config.Wire() {
		one := inspector.Stream{OpenedBy: wire.OpenedBy()}
		var oldest *fold.Subject
		for name, picture := range state.Resources {
			for id, subject := range picture.Subjects {
				if !taken[subject] && subject.Texts[probe.WireOpened.String()] == probe.Bound(one.OpenedBy) &&
					(oldest == nil || subject.Opened < oldest.Opened) {
					oldest, one.Resource, one.Watcher = subject, name, id
				}
			}
		}
		taken[oldest] = oldest != nil
		if resource != "" && resource != one.Resource || watcher != "" && watcher != one.Watcher {
			continue
		}
		if one.Wire, err = withoutSecrets(wire); err != nil {
			return nil, err
		}
		streams = append(streams, one)
	}
	return streams, nil
}

// withoutSecrets masks what opens doors in the bytes of a stream.
func withoutSecrets(stream wiretap.Stream) (masked wiretap.Stream, err error) {
	written, err := json.Marshal(stream)
	if err != nil {
		return masked, err
	}
	hide := redact.JSON
	if strings.Contains(stream.OpenedBy(), "/secrets") {
		hide = redact.Stream
	}
	return masked, json.Unmarshal(hide(written), &masked)
}
