package cacher

import (
	"testing"
	"time"
)

func TestAWatcherSeesEveryEventAfterItsVersion(t *testing.T) {
	run(t, nil, func(f *fixture) {
		rv := f.create("default/a")
		w := f.watch("", everything(rv))
		f.create("default/b")
		f.update("default/a")
		f.remove("default/b")
		f.is("watch", seen(w), "ADDED default/b 3, MODIFIED default/a 4, DELETED default/b 5")
		w.Stop()
		f.is("stopped", seen(w), "closed")
	})
}

func TestAWatchWithoutAVersionBeginsWithTheState(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/b")
		f.create("default/a")
		time.Sleep(time.Millisecond)
		w := f.watch("", everything("0"))
		f.create("default/c")
		f.is("watch", seen(w), "ADDED default/a 3, ADDED default/b 2, ADDED default/c 4")
		w.Stop()
	})
}
