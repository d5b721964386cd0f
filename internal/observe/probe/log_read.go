package probe

// Last returns the sequence number of the newest record, 0 if there is none.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealLocked()
	return l.sealed
}

// Oldest returns the sequence number of the oldest record still held, or of the next one to come if there is none.
func (l *Log) Oldest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealLocked()
	return l.oldestLocked()
}

func (l *Log) oldestLocked() uint64 {
	if claimed := l.next.Load(); claimed >= l.size {
		return max(l.first, claimed-l.size+1)
	}
	return l.first
}

// Since appends to dst the records in (seq, newest], at most max of them, oldest first, and returns the extended
// slice, which the caller owns. ok is false, and nothing is appended, if the log no longer holds seq+1: the caller
// has to begin again from a snapshot, as a watcher does after 410 Gone. A seq from the future is answered with
// ok false too: the reader knew another log.
func (l *Log) Since(dst []Record, seq uint64, max int) (records []Record, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealLocked()
	if seq+1 < l.oldestLocked() || seq > l.sealed {
		return dst, false
	}
	before := len(dst)
	for n := seq + 1; n <= l.sealed && max > 0; n++ {
		s := l.slotLocked(n)
		if s == nil {
			return dst[:before], false // while we read, the writers have gone all the way round
		}
		dst = append(dst, s.record(n, s.t))
		max--
	}
	return dst, true
}

// sealLocked settles what has been published since the last time, up to the first record that is still being written:
// its time becomes that of the record before it if it was earlier.
func (l *Log) sealLocked() {
	if oldest := l.oldestLocked(); l.sealed+1 < oldest {
		l.sealed = oldest - 1 // no reader has asked for a while
	}
	for claimed := l.next.Load(); l.sealed < claimed; l.sealed++ {
		s := l.slotLocked(l.sealed + 1)
		if s == nil {
			return
		}
		l.latest = max(l.latest, s.t)
		s.t = l.latest
	}
}

// slotLocked returns the slot of a record that has been published, nil if it has not, or is there no more. While l.mu
// is held no block is used for other records.
func (l *Log) slotLocked(seq uint64) *slot {
	number, place := blockOf(seq)
	b := l.blocks[number%uint64(len(l.blocks))].Load()
	if b == nil || b.number.Load() != number {
		return nil
	}
	s := &b.slots[place]
	if s.seq.Load() != seq {
		return nil
	}
	return s
}
