package machine

import (
	"maps"
	"strconv"
)

// ClockManual as Options.Clock: the clock stands once everything is ready.
const ClockManual = "manual"

// Options say how both halves run.
type Options struct {
	Demo         bool              // gentle built-in traffic
	AwaitPage    bool              // the demo begins when a page shows it
	Controllers  []string          // names of those that run, of pipeline.Controllers
	Switches     map[string]string // values by name, as pipeline.Switches has them
	MediaType    string            // in which objects are stored in etcd
	RingCapacity int               // of every history ring; 0: dynamic
	MaxTraffic   int               // the most that a viewer may ask for, in changes a second; 0: the sandbox's own
	LogSize      int               // how many records the log keeps
	Clock        string            // "real" or [ClockManual]
	Etcd         string            // "memory": the small one; "": a real one
}

// Shown returns what the page says about how the program was started.
func (o Options) Shown() map[string]string {
	all := maps.Clone(o.Switches)
	all["storage-media-type"], all["ring-capacity"], all["clock"] = o.MediaType, "dynamic", o.Clock
	if o.RingCapacity > 0 {
		all["ring-capacity"] = strconv.Itoa(o.RingCapacity)
	}
	if o.Etcd != "" {
		all["etcd"] = o.Etcd
	}
	return all
}
