package etcd3

import (
	"testing"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/server/mvcc"
)

// The type of an event follows from whether the object matched before and matches now, never from the verb.
func TestTheTypeOfAnEventFollowsFromTheTwoMatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Store, _ *mvcc.Store) {
		created := create(t, s, pod("a", "db"))
		w := start(t, s, prefix, storage.ListOptions{
			ResourceVersion: created.ResourceVersion, Recursive: true, Predicate: selecting(t, "app=web"),
		})
		relabel(t, s, "a", "web")
		w.want(t, "ADDED a 3 web") // an update made it match
		relabel(t, s, "a", "db")
		w.want(t, "DELETED a 4 web") // an update made it match no longer; the pod lives
		remove(t, s, "a")
		w.want(t) // what did not match is not missed
	})
}
