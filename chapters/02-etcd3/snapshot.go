package etcd3

import "slices"

// Snapshot is the state of a [Store] at one moment.
type Snapshot struct {
	Watches []WatchSnapshot `json:"watches"` // the oldest first
}

// WatchSnapshot is the state of one watch.
type WatchSnapshot struct {
	ID          string `json:"id"`
	Text        string `json:"text"` // what it watches
	IncomingLen int    `json:"incomingLen"`
	IncomingCap int    `json:"incomingCap"`
	ResultLen   int    `json:"resultLen"`
	ResultCap   int    `json:"resultCap"`
}

// Snapshot returns which watches are under way and what waits in their channels.
func (s *Store) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := Snapshot{Watches: make([]WatchSnapshot, 0, len(s.watches))}
	for _, w := range s.watches {
		snapshot.Watches = append(snapshot.Watches, WatchSnapshot{
			ID: w.id, Text: w.text, IncomingLen: len(w.incomingEventChan), IncomingCap: cap(w.incomingEventChan),
			ResultLen: len(w.resultChan), ResultCap: cap(w.resultChan),
		})
	}
	return snapshot
}

func (s *Store) register(w *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = append(s.watches, w)
}

func (s *Store) unregister(w *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = slices.DeleteFunc(s.watches, func(each *stream) bool { return each == w })
}
