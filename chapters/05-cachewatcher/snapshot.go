package cachewatcher

import "time"

// Snapshot is the state of a [CacheWatcher], for the page.
type Snapshot struct {
	ID        string `json:"id"`
	Text      string `json:"text"`
	InputLen  int    `json:"inputLen"`
	InputCap  int    `json:"inputCap"`
	ResultLen int    `json:"resultLen"`
	ResultCap int    `json:"resultCap"`
	// "waiting", "received" or "sent": the one that ends the initial events
	Bookmark      string    `json:"bookmark"`
	BookmarkAfter uint64    `json:"bookmarkAfter,omitempty"` // the version that bookmark must have reached
	Deadline      time.Time `json:"deadline,omitzero"`
}

// Snapshot returns the state. The lengths are read one after the other, without a lock over both.
func (w *CacheWatcher) Snapshot() Snapshot {
	return Snapshot{
		ID:            w.id,
		Text:          w.text,
		InputLen:      len(w.input),
		InputCap:      cap(w.input),
		ResultLen:     len(w.result),
		ResultCap:     cap(w.result),
		Bookmark:      bookmarkStateNames[w.bookmarkState()],
		BookmarkAfter: w.bookmarkAfterResourceVersion,
		Deadline:      w.deadline,
	}
}
