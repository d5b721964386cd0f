// Code generated from points.go: make generate. DO NOT EDIT.

package probe

// The points, in path order.
const (
	// Unknown: a recording holds a moment of a point that this version of the program does not have; it changes
	// nothing. Texts: name.
	Unknown Point = iota
	// RequestReceived: a request has passed routing; nothing has been read or written yet. Texts: method, path, query,
	// agent, version.
	RequestReceived
	// RequestAnswered: the handler has returned; for a watch this is the end of the stream. Args: status. Texts:
	// method, path, query, agent, version, reason.
	RequestAnswered
	// KnobTurned: a knob of the sandbox is turned; its effect follows. Texts: name, target, value.
	KnobTurned
	// CommandEnded: a command that was answered before it ended has ended; its error is reported only here. Args:
	// command. Texts: error.
	CommandEnded
	// PredicateChosen: the registry has turned selectors, namespace and name into one key and one predicate. Texts:
	// scope, labels, fields.
	PredicateChosen
	// TxnCommitted: the optimistic transaction succeeded: the revision exists and is durable as etcd promises; request
	// is the record of the request that caused it, 0 if none did. Args: request.
	TxnCommitted
	// TxnConflict: another writer wrote the key first: nothing was written.
	TxnConflict
	// WriteRefused: a write named another version than the one that is stored: nothing was written, its client gets
	// 409. Texts: version.
	WriteRefused
	// RangeRead: one range of keys was read at one revision. Args: n.
	RangeRead
	// EtcdLookedAt: etcd's leader, the size of its database, or whether it refuses writes (refuses is 1) has changed
	// since the last check. Args: percent, kB, refuses. Texts: health.
	EtcdLookedAt
	// EtcdFailed: etcd has logged that it cannot continue; the program ends. Texts: error.
	EtcdFailed
	// ProgramStopped: the whole program runs again after a debugger or SIGSTOP had stopped it; its clocks have not
	// counted the pause. Texts: pause.
	ProgramStopped
	// WatchChanOpened: the watchChan exists, its goroutines are about to start. Texts: from.
	WatchChanOpened
	// WatchChanClosed: all goroutines of the watchChan have ended and resultChan is closed.
	WatchChanClosed
	// WatchChanError: the watch cannot continue; it is about to send one ERROR event. Texts: error, reason.
	WatchChanError
	// Etcd3IncomingBlocked: incomingEventChan is full: the watchChan reads nothing more from etcd.
	Etcd3IncomingBlocked
	// Etcd3IncomingSent: an etcd event has been parsed and queued for decoding. Args: len, cap.
	Etcd3IncomingSent
	// Etcd3IncomingReceived: the event has left incomingEventChan and is about to be decoded. Args: len, cap.
	Etcd3IncomingReceived
	// Etcd3ResultBlocked: resultChan is full: at most ten more events are decoded.
	Etcd3ResultBlocked
	// Etcd3ResultSent: the event has been decoded and is in resultChan, in the order in which it came. Args: len, cap.
	Etcd3ResultSent
	// RingAppend: the event is in the ring; the store does not have it yet; no reader sees either while the lock is
	// held. Args: start, end, capacity, oldest.
	RingAppend
	// RingResize: the events have moved into a ring of another size; their absolute positions are unchanged. Args:
	// start, end, capacity, oldest. Texts: why.
	RingResize
	// RVAdvanced: a bookmark moved the cache's resource version without an event.
	RVAdvanced
	// StoreUpdate: the keyed store holds the new state. Args: n.
	StoreUpdate
	// StoreHolds: the page has asked for the store's objects, because the log had only their number. Args: n.
	StoreHolds
	// CacheReplaced: store and ring were replaced by a list; history before it is gone. Args: start, end, capacity, n.
	CacheReplaced
	// FreshnessWait: a reader waits until the cache has caught up with a resource version.
	FreshnessWait
	// FreshnessReady: the reader's resource version has been reached.
	FreshnessReady
	// FreshnessGivenUp: the reader has given up: its time is over, or its client has disconnected. Texts: error.
	FreshnessGivenUp
	// ListServed: a list was answered from the cache. Args: n.
	ListServed
	// CacherReady: the first list is in the cache: the cacher accepts reads and watches. Args: generation.
	CacherReady
	// CacherNotReady: the cacher has lost its source: it refuses watches and most reads with 429. Args: generation.
	// Texts: why.
	CacherNotReady
	// CacherStopped: the cacher has ended for good, and with it its ring, its store and its watchers; another one may
	// follow.
	CacherStopped
	// IncomingBlocked: incoming is full: the one writer into the cache waits for the dispatcher.
	IncomingBlocked
	// IncomingSent: the event is in incoming; its sender does not hold the watchCache's lock. Args: len, cap.
	IncomingSent
	// IncomingReceived: the dispatcher took the event. Args: len, cap.
	IncomingReceived
	// DispatchStarted: the recipients were picked; until the dispatch is finished no watcher's input may be closed.
	// Args: watchers.
	DispatchStarted
	// DispatchBlocked: the first, non-blocking pass is over; the watchers that were full share the rest of the budget
	// (ms). Args: blocked, budget.
	DispatchBlocked
	// DispatchFinished: every recipient has the event or has been stopped; deferred stops were carried out.
	DispatchFinished
	// WatcherAdded: the starting point was chosen and the watcher registered, as one step. Args: capacity. Texts:
	// prefix, labels, fields.
	WatcherAdded
	// WatcherInterval: the watcher has sent everything up to its starting point. Args: n.
	WatcherInterval
	// WatcherForced: the watcher is closed: its input was still full when the dispatcher's time for slow watchers was
	// over.
	WatcherForced
	// WatcherLookedAt: from here on, the log has every moment of this watcher; input and result are the numbers of
	// events in its channels. Args: input, result.
	WatcherLookedAt
	// CrowdLookedAt: fill has, in base64, a byte for each of the oldest 5,000 watchers, in their order: 0 if the log
	// has all its moments, otherwise its level from 1 (empty) to 101 (full). Args: watchers, quiet. Texts: fill.
	CrowdLookedAt
	// WatcherRemoved: result is closed; the watcher sends nothing more.
	WatcherRemoved
	// InputBlocked: the input is full: the dispatcher waits for this watcher as long as the budget lasts.
	InputBlocked
	// InputSent: the event is in this watcher's input. Args: len, cap.
	InputSent
	// InputReceived: the watcher's goroutine took the event and will filter it. Args: len, cap.
	InputReceived
	// WatcherFiltered: neither the old nor the new object matches: nothing is sent.
	WatcherFiltered
	// ResultBlocked: the result is full: the watcher takes nothing from its input until its client reads.
	ResultBlocked
	// ResultSent: the converted event is in result, with the type and the object that the client will see. Args: len,
	// cap.
	ResultSent
	// ResultReceived: the WatchServer took the event and is about to encode it. Args: len, cap.
	ResultReceived
	// WireOpened: status 200 and the headers are on the wire: from here on no HTTP error is possible. Texts: agent,
	// path, query, version.
	WireOpened
	// FrameWritten: one frame was written; it is flushed if nothing else is queued. Args: bytes, queued.
	FrameWritten
	// WireFlushed: everything written so far is on its way to the client, and result is empty.
	WireFlushed
	// WireClosed: the response has ended. Texts: why.
	WireClosed
	// FrameDecoded: the client has decoded one frame into an event.
	FrameDecoded
	// StreamBlocked: the reflector does not take the event yet: nothing more is read from the wire.
	StreamBlocked
	// StreamEnded: the client's side of the stream has ended. Texts: why.
	StreamEnded
	// ReflectorListed: a list is in the reflector's store. Args: n.
	ReflectorListed
	// ReflectorWatching: a watch is open. Texts: what, version.
	ReflectorWatching
	// ReflectorReceived: an event was taken from the watch; the store does not have it yet.
	ReflectorReceived
	// ReflectorStoreFailed: the store could not take an event, and lacks it; the reflector goes on from the event's
	// version. Texts: error.
	ReflectorStoreFailed
	// ReflectorSynced: the streamed initial state is complete and in the reflector's store. Args: n.
	ReflectorSynced
	// ReflectorWatchEnded: the watch has ended; why is the cause. Texts: why, reason.
	ReflectorWatchEnded
	// ReflectorBackoff: the reflector is about to wait before it tries again. Args: ms. Texts: why.
	ReflectorBackoff
	// FIFOAdded: the delta is queued; no handler has been called for it. Args: len, cap.
	FIFOAdded
	// FIFOWaited: the queue is empty: its consumer releases the lock and sleeps.
	FIFOWaited
	// FIFOPopped: the delta has left the queue and is being processed. Args: len, cap.
	FIFOPopped
	// FIFOClosed: the queue takes nothing more; it still hands out what it holds.
	FIFOClosed
	// FIFOProcessed: the informer has applied what it took from the queue to the local store, and handed it to the
	// listeners; it holds no lock.
	FIFOProcessed
	// IndexerUpdated: the local store and its indices hold the new state; no handler has been called yet. Args: n.
	IndexerUpdated
	// IndexerHolds: the page has asked for the objects of the local store, because the log had only their number. Args:
	// n.
	IndexerHolds
	// Distributed: the notification was handed to every listener concerned. Args: listeners.
	Distributed
	// ListenerAdded: the listener is registered with this informer, and receives everything from here on. Texts:
	// informer.
	ListenerAdded
	// ListenerRemoved: the listener's goroutines have ended.
	ListenerRemoved
	// AddBlocked: pop is busy; it takes the notification soon, because it never waits for a handler.
	AddBlocked
	// AddReceived: pop has taken the notification from addCh, which is unbuffered: this also ends distribute's send;
	// the ring is empty, and the notification is next.
	AddReceived
	// PendingPushed: pop has taken the notification from addCh, and another is next: this one waits in the growing
	// ring. Args: len, cap.
	PendingPushed
	// PendingPopped: the oldest waiting notification is next. Args: len, cap.
	PendingPopped
	// HandlerCalled: run has taken the notification from nextCh, which is unbuffered, and calls the handler.
	HandlerCalled
	// HandlerReturned: the handler has returned.
	HandlerReturned
	// HandlerSlow: the handler has returned late, and more notifications wait than the pending ring had room for at
	// first. Texts: took.
	HandlerSlow
	// WorkAdded: the key is queued, or was queued or being worked on already. Args: len, cap.
	WorkAdded
	// WorkWaited: the queue is empty: a worker sleeps.
	WorkWaited
	// WorkWoken: the worker has been woken, and checks whether there is a key or the queue is shut down.
	WorkWoken
	// WorkGot: a worker holds the key; no other worker can get it. Args: len, cap.
	WorkGot
	// WorkDone: the worker has released the key.
	WorkDone
	// WorkRetry: the key comes back after a delay. Args: ms. Texts: why.
	WorkRetry
	// Reconciled: the controller has acted, or has found nothing to do. Args: wrote. Texts: did.
	Reconciled

	declared // the number of points
)

// The names of texts.
const (
	FieldAgent    Field = "agent"
	FieldDid      Field = "did"
	FieldError    Field = "error"
	FieldFields   Field = "fields"
	FieldFill     Field = "fill"
	FieldFrom     Field = "from"
	FieldHealth   Field = "health"
	FieldInformer Field = "informer"
	FieldLabels   Field = "labels"
	FieldMethod   Field = "method"
	FieldName     Field = "name"
	FieldPath     Field = "path"
	FieldPause    Field = "pause"
	FieldPrefix   Field = "prefix"
	FieldQuery    Field = "query"
	FieldReason   Field = "reason"
	FieldScope    Field = "scope"
	FieldTarget   Field = "target"
	FieldTook     Field = "took"
	FieldValue    Field = "value"
	FieldVersion  Field = "version"
	FieldWhat     Field = "what"
	FieldWhy      Field = "why"
)
