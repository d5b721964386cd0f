package mvcc

import (
	"bytes"
	"sort"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// history is one key through time.
type history struct {
	key      string
	versions []*version // by ascending revision
}

// version is one state of a key: a value, or the fact that it was deleted. Versions never change.
type version struct {
	key     string
	value   []byte
	mod     int64 // the revision that made it
	create  int64 // the revision in which the key last came into being
	count   int64 // of writes since then
	deleted bool
}

// change is one revision: every transaction here writes one key.
type change struct {
	previous *version // nil if the key did not exist
	current  *version
}

// at returns the version that was visible at rev, nil if there was none or it was a deletion.
func (h *history) at(rev int64) *version {
	n := sort.Search(len(h.versions), func(i int) bool { return h.versions[i].mod > rev })
	if n == 0 || h.versions[n-1].deleted {
		return nil
	}
	return h.versions[n-1]
}

// append adds the version made by rev, which must be greater than all before.
func (h *history) append(rev int64, value []byte, deleted bool) *version {
	v := &version{key: h.key, value: bytes.Clone(value), mod: rev, create: rev, count: 1, deleted: deleted}
	if last := h.at(rev); last != nil {
		v.create, v.count = last.create, last.count+1
	}
	h.versions = append(h.versions, v)
	return v
}

// compact forgets what cannot be seen at rev or later.
func (h *history) compact(rev int64) {
	n := sort.Search(len(h.versions), func(i int) bool { return h.versions[i].mod > rev })
	if n > 0 && !h.versions[n-1].deleted {
		n-- // still the visible one at rev
	}
	h.versions = append([]*version(nil), h.versions[n:]...)
}

// modRevision returns 0 for nil, which is how a transaction spells "there is none".
func (v *version) modRevision() int64 {
	if v == nil {
		return 0
	}
	return v.mod
}

// keyValue returns a copy for the outside, nil for nil.
func (v *version) keyValue() *mvccpb.KeyValue {
	if v == nil {
		return nil
	}
	return &mvccpb.KeyValue{Key: []byte(v.key), Value: bytes.Clone(v.value), ModRevision: v.mod,
		CreateRevision: v.create, Version: v.count}
}

// event returns the change as a watch sees it, with the previous state only if withPrevious. A deletion carries
// no more than key and revision.
func (c *change) event(withPrevious bool) *clientv3.Event {
	e := &clientv3.Event{Type: clientv3.EventTypePut, Kv: c.current.keyValue()}
	if c.current.deleted {
		e.Type = clientv3.EventTypeDelete
		e.Kv = &mvccpb.KeyValue{Key: []byte(c.current.key), ModRevision: c.current.mod}
	}
	if withPrevious {
		e.PrevKv = c.previous.keyValue()
	}
	return e
}
