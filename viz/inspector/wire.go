package inspector

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
)

// wire answers GET /viz/wire?resource=&watcher= with the open watches of the client half as they are on the wire:
// request, header, and the newest chunks, each with its size line, data and line end. What other programs have opened
// does not pass through our hands on their side, and is not among them.
func (i *Inspector) wire(r *http.Request) (any, error) {
	query := r.URL.Query()
	return i.streams(r.Context(), query.Get("resource"), query.Get("watcher"))
}

// streams returns the open watches of a resource and a watcher, "" for all, with nothing in their bytes that opens
// doors. A stream's watcher is the oldest open one that was opened by the same client for the same, and is not another
// stream's.
func (i *Inspector) streams(ctx context.Context, resource, watcher string) ([]Stream, error) {
	state, err := i.Now(ctx)
	if err != nil {
		return nil, err
	}
	streams, taken := []Stream{}, map[*fold.Subject]bool{}
	for _, wire := range i.Wire() {
		agent, path, query := wire.OpenedBy()
		one := Stream{Agent: agent}
		opened := []string{probe.Bound(agent), probe.Bound(path), probe.Bound(redact.Query(query))}
		var oldest *fold.Subject
		for name, picture := range state.Resources {
			for id, subject := range picture.Subjects {
				if !taken[subject] && slices.Equal(openedBy(subject), opened) &&
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

// openedBy returns what the client of a watcher calls itself, and the path and the query of its stream.
func openedBy(watcher *fold.Subject) (said []string) {
	for _, name := range []probe.Field{probe.FieldAgent, probe.FieldPath, probe.FieldQuery} {
		said = append(said, watcher.Said(probe.WireOpened, name))
	}
	return said
}

// withoutSecrets masks what opens doors in the bytes of a stream.
func withoutSecrets(stream wiretap.Stream) (masked wiretap.Stream, err error) {
	written, err := json.Marshal(stream)
	if err != nil {
		return masked, err
	}
	hide := redact.JSON
	if _, path, _ := stream.OpenedBy(); strings.Contains(path, "/secrets") {
		hide = redact.Stream
	}
	return masked, json.Unmarshal(hide(written), &masked)
}
