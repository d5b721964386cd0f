// Package inspector is the room of what can be looked into: a station, a queue or one watcher, with leaves of what it
// is, how it stands, the code that reports there, who waits for whom, its records, and its bytes. What follows from the
// picture at the cursor, the page fills in (state.js, why.js).
package inspector

import (
	"context"

	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
)

// Inspector makes the leaves. Its fields never change.
type Inspector struct {
	Log *probe.Log
	// Streams returns the open watches of the client half as bytes, of one watcher or, "", of all; nil: there are none.
	Streams func(ctx context.Context, resource, watcher string) ([]Stream, error)
}

// Stream is one open watch of the client half as bytes, with the watcher that feeds it on the server's side.
type Stream struct {
	Resource string         `json:"resource"` // "" if the watcher is not known
	Watcher  string         `json:"watcher"`
	OpenedBy string         `json:"openedBy"`
	Wire     wiretap.Stream `json:"wire"` // without secrets
}
