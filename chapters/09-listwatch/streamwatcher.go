package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// clientWatchDecoding is the cause in the Status of an ERROR event that was made up by the client.
const clientWatchDecoding = "ClientWatchDecoding"

// StreamWatcher turns a stream into a watch.Interface.
//
// Upstream: k8s.io/apimachinery/pkg/watch/streamwatcher.go: StreamWatcher
// Differs: a constructor that starts nothing; ends with its context, too; Stop waits for the
// goroutine; source and reporter are interfaces there.
type StreamWatcher struct {
	// Set by NewStreamWatcher, never changed.
	source   *Decoder
	reporter *apierrors.ErrorReporter // makes an object of an error, for an ERROR event
	probe    *probe.Probe

	// Sent and closed by receive. Unbuffered: a consumer can easily add a buffer, but could
	// never remove one.
	result chan watch.Event
	group  routine.Group           // receive
	stop   context.CancelCauseFunc // of receive's context, made by Start; frees a waiting send
}

// NewStreamWatcher returns a watcher that does nothing until Start.
//
// Upstream: k8s.io/apimachinery/pkg/watch/streamwatcher.go: NewStreamWatcher
func NewStreamWatcher(source *Decoder, reporter *apierrors.ErrorReporter, p *probe.Probe) *StreamWatcher {
	return &StreamWatcher{
		source:   source,
		reporter: reporter,
		probe:    p,
		result:   make(chan watch.Event),
	}
}

// Start begins to read. It is called once. The stream ends with ctx, if not before.
func (sw *StreamWatcher) Start(ctx context.Context) {
	ctx, sw.stop = context.WithCancelCause(ctx)
	sw.group.Go(ctx, "StreamWatcher.receive", sw.receive)
}

// ResultChan returns the events. It is closed when the stream has ended.
func (sw *StreamWatcher) ResultChan() <-chan watch.Event { return sw.result }

// Stop closes the stream and waits until nothing is read from it any more. It may be called at
// any time after Start, as often as you like, from any goroutine. Events that were decoded but
// not received are lost.
//
// Upstream: k8s.io/apimachinery/pkg/watch/streamwatcher.go: (*StreamWatcher).Stop
func (sw *StreamWatcher) Stop() {
	sw.stop(errStopped)
	sw.source.Close()
	sw.group.Wait()
}

// receive runs until the stream ends, ctx is done or Stop is called. It owns result.
//
// Upstream: k8s.io/apimachinery/pkg/watch/streamwatcher.go: (*StreamWatcher).receive
func (sw *StreamWatcher) receive(ctx context.Context) {
	defer close(sw.result)
	defer sw.source.Close()
	defer sw.stop(nil)
	for {
		typ, obj, err := sw.source.Decode()
		if err != nil {
			sw.end(ctx, err)
			return
		}
		key, rv := reflector.Identify(sw.probe, reflector.MetaNamespaceKeyFunc, obj)
		sw.probe.Event(probe.FrameDecoded, string(typ), key, rv)
		if !sw.handOver(ctx, watch.Event{Type: typ, Object: obj}, key, rv) {
			sw.end(ctx, errStopped)
			return
		}
	}
}

var errStopped = errors.New("stopped")

// end says why the stream is over, to the consumer only if it would not expect it.
func (sw *StreamWatcher) end(ctx context.Context, err error) {
	if sw.isUnexpected(ctx, err) {
		err = fmt.Errorf("unable to decode an event from the watch stream: %w", err)
		sw.send(ctx, watch.Event{Type: watch.Error, Object: sw.reporter.AsObject(err)})
	}
	sw.probe.Text(probe.StreamEnded, sw.reason(ctx, err), "", 0)
}

// isUnexpected reports whether the consumer gets err: it is no end that every stream has.
func (sw *StreamWatcher) isUnexpected(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false // the error follows from that
	}
	var garbage *DecodeError
	if errors.As(err, &garbage) {
		return true // asked first: the text of garbage may look like anything
	}
	return !isStreamEnd(err)
}

func (sw *StreamWatcher) reason(ctx context.Context, err error) string {
	switch {
	case context.Cause(ctx) == errStopped:
		return "stopped by the client"
	case err == io.EOF:
		return "the server closed it"
	default:
		return err.Error()
	}
}

// handOver sends an event at once if the consumer waits for one, and otherwise as soon as it does. Until then nothing
// more is read from the stream.
func (sw *StreamWatcher) handOver(ctx context.Context, event watch.Event, key string, rv uint64) bool {
	select {
	case sw.result <- event:
		return true
	default:
	}
	sw.probe.Event(probe.StreamBlocked, string(event.Type), key, rv)
	return sw.send(ctx, event)
}

// send hands an event to the consumer. It returns false if there is no consumer any more.
func (sw *StreamWatcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case <-ctx.Done():
		return false
	case sw.result <- event:
		return true
	}
}
