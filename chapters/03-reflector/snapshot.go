package reflector

// Snapshot is a [Reflector] seen at one moment.
type Snapshot struct {
	Name                    string `json:"name"`
	LastSyncResourceVersion string `json:"lastSyncResourceVersion"`
	Unavailable             bool   `json:"unavailable"` // the server refused that version
	StoreErrors             int64  `json:"storeErrors"` // events that the store has refused
}

// Snapshot returns the present state. It takes the reflector's lock for a moment.
func (r *Reflector) Snapshot() Snapshot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Snapshot{r.config.Name, r.lastSyncResourceVersion, r.isLastSyncResourceVersionUnavailable, r.StoreErrors()}
}
