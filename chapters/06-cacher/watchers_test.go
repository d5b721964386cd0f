package cacher

import (
	"testing"

	watchcache "listwatch/chapters/04-watchcache"
	cachewatcher "listwatch/chapters/05-cachewatcher"
	"listwatch/internal/check/assert"
)

func TestAnEventFindsTheWatchersOfEachScopeOnce(t *testing.T) {
	scopes := []namespacedName{{"default", "a"}, {"default", ""}, {"", "a"}, {}, {"default", "b"}, {"other", ""},
		{"other", "a"}}
	for name, test := range map[string]struct {
		key        string
		namespaced bool
		want       []namespacedName
	}{
		"namespaced": {"/registry/pods/default/a", true, []namespacedName{{"default", "a"}, {"default", ""},
			{"", "a"}, {}}},
		"cluster-scoped": {"/registry/pods/a", false, []namespacedName{{"", "a"}, {}}},
		"without a name": {"/registry/pods/default/", true, []namespacedName{{"default", ""}, {}}},
		"without either": {"/registry/pods/", true, []namespacedName{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cacher{config: Config{ResourcePrefix: "/registry/pods", Namespaced: test.namespaced},
				watchers: newIndexedWatchers()}
			scopeOfWatcher := map[*cachewatcher.CacheWatcher]namespacedName{}
			for _, scope := range scopes {
				w := cachewatcher.New(cachewatcher.Config{})
				scopeOfWatcher[w] = scope
				c.watchers.addLocked(&watchRequest{watcher: w, scope: scope})
			}
			c.pickWatchersLocked(&watchcache.Event{Key: test.key})
			var got []namespacedName
			for _, w := range c.watchersBuffer {
				got = append(got, scopeOfWatcher[w])
			}
			assert.EqualSlices(t, got, test.want)
		})
	}
}
