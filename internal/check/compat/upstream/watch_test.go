package upstream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"listwatch/internal/check/assert"
)

// The history of these tests, in three parts: what is there before the caches begin, what happens before the watches
// begin, and what happens while they run. Objects come, go, come back, and pass in and out of selectors.
var (
	beforeCaches = []string{
		"+default/a app=x node=n1", "+default/b app=y", "+default/ab app=x", "+other/a app=x node=n2",
		"+default/gone app=x",
		"~default/b app=x", "-default/gone",
	}
	beforeWatches = []string{
		"+default/c app=y", "~default/c app=x node=n1", "~default/a app=y node=n1", "-other/a",
		"+other/a app=y node=n1",
		"+other/d app=x", "~other/d app=x", "-other/d",
	}
	whileWatching = []string{
		"~default/a app=x node=n1", "~default/a app=x node=n2", "~default/a app=y node=n2", "+default/e node=n1 app=x",
		"~default/e node=n1 app=y", "~default/e node=n1 app=z", "-default/e", "+default/e app=x", "-default/e",
		"~other/a app=x",
		"-other/a", "-default/a", "+default/a app=x node=n1", "+third/a app=x node=n1", "~default/ab app=y",
		"-default/ab",
	}
)

// versions are the resource versions the watches begin with, by name.
type versions map[string]string

func (v versions) names() []string {
	return []string{"none", "zero", "ancient", "list", "history", "now", "future", "garbage"}
}

// stagePair writes the history up to the moment at which watches begin.
func stagePair(t *testing.T) (*pair, versions) {
	v := versions{"none": "", "zero": "0", "garbage": "x", "future": "100000"}
	p := newPair(t, func(p *pair) {
		v["ancient"] = p.writeAll(beforeCaches[:3]...)
		v["list"] = p.writeAll(beforeCaches[3:]...)
	})
	v["history"] = p.writeAll(beforeWatches[:3]...)
	v["now"] = p.writeAll(beforeWatches[3:]...)
	p.bothReach(v["now"])
	return p, v
}

// queries returns every combination of options, by a name that says which.
func (v versions) queries() map[string]query {
	all := map[string]query{}
	yes, no := true, false
	for _, version := range v.names() {
		for initial, ptr := range map[string]*bool{"": nil, " initial": &yes, " no-initial": &no} {
			for _, bookmarks := range []bool{false, true} {
				for _, selector := range []string{"", "app=x", "app!=x", "spec.nodeName=n1", "metadata.name=a",
					"metadata.namespace=other"} {
					for _, scope := range []string{"", "default", "default/a", "nowhere"} {
						q := query{rv: v[version], initial: ptr, bookmarks: bookmarks}
						q.namespace, q.name, _ = strings.Cut(scope, "/")
						if strings.Contains(selector, ".") {
							q.field = selector
						} else {
							q.label = selector
						}
						all[fmt.Sprintf("watch %q from %s%s bookmarks=%t selecting %q", scope, version, initial,
							bookmarks, selector)] = q
					}
				}
			}
		}
	}
	return all
}

// watchBoth asks both sides for every watch, lets the rest of history happen, and returns what they have heard.
func watchBoth(t *testing.T, p *pair, queries map[string]query, one, other side) []*dialogue {
	ctx, cancel := context.WithCancel(context.Background())
	dialogues := make([]*dialogue, 0, len(queries))
	var begun sync.WaitGroup
	for name, q := range queries {
		d := &dialogue{name: name}
		dialogues = append(dialogues, d)
		begun.Go(func() { d.ours = startStream(ctx, one, q) })
		begun.Go(func() { d.theirs = startStream(ctx, other, q) })
	}
	begun.Wait() // some wait for three seconds for a version that never comes
	// a store reads the state with which a watch begins only after Watch has returned; the writes below must not be in
	// it
	settle(dialogues)
	p.bothReach(p.writeAll(whileWatching...))
	settle(dialogues)
	t.Cleanup(func() {
		defer cancel()
		for _, d := range dialogues {
			d.ours.stop()
			d.theirs.stop()
		}
	})
	return dialogues
}

// compare reports every pair of streams that differ.
func compare(t *testing.T, dialogues []*dialogue) {
	t.Helper()
	wrong, events := 0, 0
	for _, d := range dialogues {
		a, b := strings.Join(d.ours.sofar(), "\n        "), strings.Join(d.theirs.sofar(), "\n        ")
		events += len(d.theirs.sofar())
		if a == b {
			continue
		}
		if wrong++; wrong <= 20 {
			t.Errorf("%s:\n   ours %s\n theirs %s", d.name, a, b)
		}
	}
	assert.True(t, wrong == 0, "%d of %d watches differ", wrong, len(dialogues))
	assert.True(t, events >= 4*len(dialogues),
		"%d watches saw only %d events: too few to compare anything", len(dialogues), events)
}

func TestEveryWatchOfTheCacheSaysWhatTheRealOneSays(t *testing.T) {
	p, v := stagePair(t)
	compare(t, watchBoth(t, p, v.queries(), p.ourCache, p.theirCache))
}

func TestEveryWatchOfTheStoreSaysWhatTheRealOneSays(t *testing.T) {
	p, v := stagePair(t)
	compare(t, watchBoth(t, p, v.queries(), p.ourStore, p.theirStore))
}
