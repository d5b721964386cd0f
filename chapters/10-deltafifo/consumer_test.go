package deltafifo

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name string, rv int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		ResourceVersion: strconv.Itoa(rv)}}
}

// consumer is the store behind a queue, as a map, and what was processed to get there.
type consumer struct {
	objects map[string]any
	// "Added a@1", "Deleted a@1?" for a tombstone, "ReplacedAll @3 [a@1 b@2]", "SyncAll", "Bookmark @4"
	deltas []string
}

// newConsumer returns a consumer whose store holds the pods of these names, at version 1.
func newConsumer(known ...string) *consumer {
	c := &consumer{objects: map[string]any{}}
	for _, name := range known {
		c.objects["default/"+name] = pod(name, 1)
	}
	return c
}

func (c *consumer) ListKeys() []string {
	var keys []string
	for key := range c.objects {
		keys = append(keys, key)
	}
	return keys
}

func (c *consumer) GetByKey(key string) (any, bool, error) {
	obj, exists := c.objects[key]
	return obj, exists, nil
}

func (c *consumer) process(deltas Deltas, _ bool) error {
	for _, delta := range deltas {
		c.deltas = append(c.deltas, describe(delta))
		c.apply(delta)
	}
	return nil
}

func (c *consumer) apply(delta Delta) {
	switch info := delta.Object.(type) {
	case ReplacedAllInfo:
		clear(c.objects)
		for _, obj := range info.Objects {
			key, _ := DeletionHandlingMetaNamespaceKeyFunc(obj)
			c.objects[key] = obj
		}
	case SyncAllInfo, BookmarkInfo:
	default:
		if delta.Type == Deleted {
			delete(c.objects, delta.Key)
		} else {
			c.objects[delta.Key] = delta.Object
		}
	}
}

func (c *consumer) take() []string {
	deltas := c.deltas
	c.deltas = nil
	return deltas
}

func describe(delta Delta) string {
	switch info := delta.Object.(type) {
	case ReplacedAllInfo:
		var objs []string
		for _, obj := range info.Objects {
			objs = append(objs, short(obj))
		}
		return fmt.Sprintf("ReplacedAll @%s [%s]", info.ResourceVersion, strings.Join(objs, " "))
	case SyncAllInfo:
		return "SyncAll"
	case BookmarkInfo:
		return "Bookmark @" + info.ResourceVersion
	case DeletedFinalStateUnknown:
		return fmt.Sprintf("%s %s?", delta.Type, short(info))
	default:
		return fmt.Sprintf("%s %s", delta.Type, short(delta.Object))
	}
}

func short(obj any) string {
	key, _ := DeletionHandlingMetaNamespaceKeyFunc(obj)
	return fmt.Sprintf("%s@%d", strings.TrimPrefix(key, "default/"), VersionOf(obj))
}

// A setup is one way to make a queue in front of a consumer.
type setup struct {
	name string
	real bool
	make func(c *consumer) Queue
}

var setups = []setup{
	{name: "delta", make: func(c *consumer) Queue { return NewDeltaFIFO(c, nil, nil) }},
	{name: "real", real: true, make: func(*consumer) Queue { return newReal() }},
}

func newReal() *RealFIFO { return NewRealFIFO(nil, nil) }

// drain processes everything that waits, in batches if batch is true and the queue can.
func drain(q Queue, c *consumer, batch bool) {
	for q.Snapshot().Len > 0 {
		popOne(q, c, batch)
	}
}

func popOne(q Queue, c *consumer, batch bool) {
	batchQueue, ok := q.(QueueWithBatch)
	if ok && batch {
		must(batchQueue.PopBatch(c.process, c.process))
		return
	}
	must(q.Pop(c.process))
}
