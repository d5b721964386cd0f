package informer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	indexer "listwatch/chapters/11-indexer"
	"listwatch/internal/observe/probe"
)

// The queues an informer can have.
const (
	FIFOReal  = "real"  // [deltafifo.RealFIFO], the default
	FIFODelta = "delta" // [deltafifo.DeltaFIFO], as until Kubernetes 1.32
)

// Config describes a [SharedIndexInformer]. ListerWatcher and Clock are required.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: SharedIndexInformerOptions
type Config struct {
	Name          string // for errors, snapshots and waiting; default: the type of ExampleObject
	ListerWatcher reflector.ListerWatcher
	ExampleObject runtime.Object // what the server is expected to send; nil: anything
	Indexers      indexer.Indexers
	Clock         clock.WithTicker
	Probe         *probe.Probe

	// ResyncPeriod is the resync period of handlers that do not ask for another, and how often the reflector checks
	// whether anyone's is over; handlers added before Run can shorten it. 0: no resyncs, even for handlers that ask.
	ResyncPeriod time.Duration

	FIFO         string // [FIFOReal] or [FIFODelta]; "": FIFOReal
	UseWatchList bool   // as in [reflector.Config]

	// Transform is applied to every object before it is queued, and twice to those of a streamed initial state; see
	// [reflector.TransformFunc]. (Upstream's SetTransform is an error once the informer has started.)
	Transform reflector.TransformFunc
	// WatchErrorHandler is called when a list failed, or a watch after it could not be opened; see [reflector.Config].
	WatchErrorHandler func(ctx context.Context, r *reflector.Reflector, err error)
	// Jitter is for the reflector.
	Jitter func() float64
}
