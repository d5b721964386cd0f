package processor

// initialBufferSize is how many notifications the pending ring of a listener holds before it grows for the first time,
// and from how many on its handler is watched for slowness.
const initialBufferSize = 1024

// pendingRing is a queue without a limit. It doubles when it is full and never shrinks: a
// handler that was slow once is expected to be slow again.
//
// Upstream: k8s.io/utils/buffer/ring_growing.go: RingGrowing
type pendingRing struct {
	slots []*notification
	first int // slot of the oldest
	n     int // how many there are
}

// write appends n.
func (r *pendingRing) write(n *notification) {
	if r.n == len(r.slots) {
		r.grow()
	}
	r.slots[(r.first+r.n)%len(r.slots)] = n
	r.n++
}

// grow doubles the ring and puts the oldest into slot 0.
func (r *pendingRing) grow() {
	slots := make([]*notification, max(initialBufferSize, 2*len(r.slots)))
	upToEnd := copy(slots, r.slots[r.first:])
	copy(slots[upToEnd:], r.slots[:r.first])
	r.slots = slots
	r.first = 0
}

// read removes and returns the oldest, or nil if there is none.
func (r *pendingRing) read() *notification {
	if r.n == 0 {
		return nil
	}
	n := r.slots[r.first]
	r.slots[r.first] = nil // the ring must not keep objects alive
	r.first = (r.first + 1) % len(r.slots)
	r.n--
	return n
}
