package viz

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/utils/clock"

	"listwatch/internal/fold"
	"listwatch/internal/probe"
)

// foldBatch is how many records are taken from the log at once, so that its lock is never held for long.
const foldBatch = 1024

// folder keeps the folded state of a log.
type folder struct {
	// Set by newFolder, never changed.
	log *probe.Log

	mu    sync.Mutex // guards the fields below; taken before the log's own lock
	state *fold.State
	batch []probe.Record // reused by every catchUp
}

func newFolder(log *probe.Log) *folder {
	return &folder{log: log, state: fold.New()}
}

// run folds every framePeriod until ctx is done.
func (f *folder) run(ctx context.Context, clk clock.WithTicker) {
	ticker := clk.NewTicker(framePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			f.catchUp()
		}
	}
}

// catchUp folds what has been written since.
func (f *folder) catchUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUpLocked()
}

// catchUpLocked expects f.mu. If the log has overrun us it goes on with the oldest record there is: the state then
// counts what is missing as lost, and says so.
func (f *folder) catchUpLocked() {
	from := f.state.Seq
	for {
		records, ok := f.log.Since(f.batch[:0], from, foldBatch)
		f.batch = records
		if !ok {
			from = f.log.Oldest() - 1
			continue
		}
		if len(records) == 0 {
			return
		}
		f.state.Apply(records)
		from = f.state.Seq
	}
}

// snapshot returns the state up to this moment as JSON, with its sequence number.
func (f *folder) snapshot() (uint64, json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUpLocked()
	written, err := json.Marshal(f.state)
	if err != nil {
		panic(fmt.Sprintf("viz: a state is not JSON: %v", err))
	}
	return f.state.Seq, written
}

// view returns what the scenery is first drawn from.
func (f *folder) view(resource string) view {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUpLocked()
	return newView(f.state, resource)
}
