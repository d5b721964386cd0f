package etcd3

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// event is an element of incomingEventChan: a change of one key in etcd's terms, still encoded; or the news that etcd
// has reached rev; or the error that ends the watch.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/event.go: event
// Differs: no timestamps; an error is an event too, so that it cannot overtake what was queued before it.
type event struct {
	key       string
	value     []byte
	prevValue []byte
	rev       int64
	isDeleted bool
	isCreated bool

	isProgressNotify           bool
	isInitialEventsEndBookmark bool

	err error // then nothing else is set
}

// parseKV makes an object of the initial state an event, as if it had just been created.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/event.go: parseKV
func parseKV(kv *mvccpb.KeyValue) *event {
	return &event{key: string(kv.Key), value: kv.Value, rev: kv.ModRevision, isCreated: true}
}

// errPreviousCompacted is the refusal of parseEvent.
var errPreviousCompacted = errors.New("the state before a change is compacted")

// parseEvent refuses a change whose previous state is not known: without it, whether a selector matched before is
// unknown. A watch that resumes right at the compacted revision gets such a change: etcd still has the change, but not
// the state before it.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/event.go: parseEvent
// Differs: to the reader this is 410 Expired, which is the truth and heals by listing again; upstream reports a 500.
func parseEvent(e *clientv3.Event) (*event, error) {
	if !e.IsCreate() && e.PrevKv == nil {
		return nil, fmt.Errorf("%s of %s at revision %d: %w", e.Type, e.Kv.Key, e.Kv.ModRevision, errPreviousCompacted)
	}
	parsed := &event{
		key: string(e.Kv.Key), value: e.Kv.Value, rev: e.Kv.ModRevision,
		isDeleted: e.Type == clientv3.EventTypeDelete, isCreated: e.IsCreate(),
	}
	if e.PrevKv != nil {
		parsed.prevValue = e.PrevKv.Value
	}
	return parsed, nil
}

// progressNotifyEvent returns an event that reports that everything up to rev has been delivered.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/event.go: progressNotifyEvent
func progressNotifyEvent(rev int64) *event { return &event{rev: rev, isProgressNotify: true} }
