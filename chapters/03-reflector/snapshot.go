package reflector

// Snapshot is a [Reflector] seen at one moment.
type Snapshot struct {
	Name                    string `json:"name"`
	LastSyncResourceVersion string `json:"lastSyncResourceVersion"`
	Unavailable             bool   `json:"unavailable"`  // the server refused that version
	Watching                bool   `json:"watching"`     // a watch is open
	LastWatchEnd            string `json:"lastWatchEnd"` // why there is not, or why there was not
	Events                  int    `json:"events"`       // carried into a store since the beginning
	Skipped                 int    `json:"skipped"`      // not understood
	StoreErrors             int    `json:"storeErrors"`  // refused by the store
}

// Snapshot returns the present state. It takes the reflector's lock for a moment.
func (r *Reflector) Snapshot() Snapshot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Snapshot{
		Name:                    r.config.Name,
		LastSyncResourceVersion: r.lastSyncResourceVersion,
		Unavailable:             r.isLastSyncResourceVersionUnavailable,
		Watching:                r.watching,
		LastWatchEnd:            r.lastWatchEnd,
		Events:                  r.nEvents,
		Skipped:                 r.nSkipped,
		StoreErrors:             r.nStoreErrors,
	}
}

// countEvent counts an event that was carried into a store, and the store's answer.
func (r *Reflector) countEvent(storeErr error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nEvents++
	if storeErr != nil {
		r.nStoreErrors++
	}
}

// countSkipped counts an event that was not understood.
func (r *Reflector) countSkipped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nSkipped++
}

func (r *Reflector) setWatching(watching bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watching = watching
}

// noteEnd remembers why there is no watch.
func (r *Reflector) noteEnd(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watching = false
	r.lastWatchEnd = reason
}

func (r *Reflector) lastEnd() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lastWatchEnd
}
