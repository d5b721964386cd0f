package probe

import (
	"sync/atomic"
	"time"
)

// moment is what At is told.
type moment struct {
	probe          *Probe // who speaks: resource and subject
	typ, text, key string
	rv             uint64
	args           [4]int
	point          Point
}

func (m *moment) record(seq uint64, t time.Duration) Record {
	return Record{
		Seq: seq, Time: t, Point: m.point, Resource: m.probe.resource, Subject: m.probe.subject,
		Type: m.typ, Key: m.key, RV: m.rv, Args: m.args, Text: m.text,
	}
}

// slot is the place of one record: two lines of the processor's cache.
type slot struct {
	// Written by the goroutine that claimed the sequence number, before seq; then, once, t by the one that seals it.
	moment
	t time.Duration

	seq atomic.Uint64 // of the record that is here. It is stored last: a goroutine that has loaded it may read the rest
}

const blockSize = 1024 // records; a new block is a tenth of a megabyte

// block is a run of slots for the records numbered number*blockSize+1 and up.
type block struct {
	number atomic.Uint64
	slots  [blockSize]slot
}

// blockOf returns the number of the block for a record, and its place there.
func blockOf(seq uint64) (number, place uint64) { return (seq - 1) / blockSize, (seq - 1) % blockSize }

// complete reports whether every record of the block is there, so that no goroutine will write into it any more.
func (b *block) complete() bool {
	first := b.number.Load()*blockSize + 1
	for i := range b.slots {
		if b.slots[i].seq.Load() != first+uint64(i) {
			return false
		}
	}
	return true
}
