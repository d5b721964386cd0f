package pipeline

import (
	etcd3 "listwatch/chapters/02-etcd3"
	cacher "listwatch/chapters/06-cacher"
	informer "listwatch/chapters/13-informer"
)

// Switch is a choice between what the machinery does today and what it did before. Both halves
// start with it and keep it until they end.
type Switch struct {
	Name, Today, Before string
	Use                 string // its choice, in words
}

// Switches are all of them, under the names of the command line's flags.
var Switches = []Switch{
	{"fifo", informer.FIFOReal, informer.FIFODelta, "the queue between reflector and handlers"},
	{"initial", "watchlist", "list", "how reflectors get their first state"},
	{"etcd-watcher", etcd3.WatcherEtcd3, etcd3.WatcherEtcd2,
		"the watcher between etcd and the cache"},
	{"dispatch", cacher.TwoPhase, cacher.Sequential,
		"how the cacher treats a watcher that is full"},
}

// Today returns the value of each switch in today's machinery, by name.
func Today() map[string]string {
	values := map[string]string{}
	for _, each := range Switches {
		values[each.Name] = each.Today
	}
	return values
}

// UseWatchList reports whether reflectors get their first state as a stream.
func UseWatchList(values map[string]string) bool { return values["initial"] == "watchlist" }
