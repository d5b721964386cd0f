package probe

// The points, in path order: the server half from the request to the wire, then the client half back to a write.
const (
	_ Point = iota
	// RequestReceived: a request has passed routing; nothing has been read or written yet.
	RequestReceived
	// RequestAnswered: the handler has returned; for a watch this is the end of the stream. Args: status.
	RequestAnswered
	// KnobTurned: a knob of the sandbox is turned; its effect follows.
	KnobTurned
	// CommandEnded: a command that was answered before its end is over; an error of it has no other reader. Args: command.
	CommandEnded
	// PredicateChosen: the registry has turned selectors, namespace and name into one key and one predicate.
	PredicateChosen
	// TxnCommitted: the optimistic transaction succeeded: the revision exists and is durable as etcd promises.
	TxnCommitted
	// TxnConflict: another writer wrote the key first: nothing was written.
	TxnConflict
	// RangeRead: one range of keys was read at one revision. Args: n.
	RangeRead
	// EtcdLookedAt: etcd's leader, the size of its database, or whether it refuses writes (refuses is 1) has changed since
	// the last check. Args: percent, kB, refuses.
	EtcdLookedAt
	// EtcdFailed: etcd has logged that it cannot continue; the program ends.
	EtcdFailed
	// ProgramStopped: the whole program runs again after a debugger or SIGSTOP had stopped it; its clocks have not counted
	// the pause.
	ProgramStopped
	// WatchChanOpened: the watchChan exists, its goroutines are about to start.
	WatchChanOpened
	// WatchChanClosed: all goroutines of the watchChan have ended and resultChan is closed.
	WatchChanClosed
	// WatchChanError: the watch cannot continue; it is about to send one ERROR event.
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
	// CacheLockWaited: another goroutine holds the watchCache's lock: the writer waits.
	CacheLockWaited
	// CacheLockTaken: the writer has the watchCache's lock.
	CacheLockTaken
	// RingAppend: the event is in the ring; the store does not have it yet; no reader can see either before the lock is
	// released. Args: start, end, capacity, oldest.
	RingAppend
	// RingResize: the events have moved into a ring of another size; their absolute positions are unchanged. Args: start,
	// end, capacity, oldest.
	RingResize
	// RVAdvanced: a bookmark moved the cache's resource version without an event.
	RVAdvanced
	// StoreUpdate: the keyed store holds the new state. Args: n.
	StoreUpdate
	// StoreHolds: the page has asked for the store's objects: until now it knew only how many there are. Args: n.
	StoreHolds
	// CacheReplaced: store and ring were replaced by a list; history before it is gone. Args: start, end, capacity, n.
	CacheReplaced
	// FreshnessWait: a reader waits until the cache has caught up with a resource version.
	FreshnessWait
	// FreshnessReady: the reader's resource version has been reached.
	FreshnessReady
	// FreshnessGivenUp: the reader has given up: its time is over, or its client has disconnected.
	FreshnessGivenUp
	// ListServed: a list was answered from the cache. Args: n.
	ListServed
	// CacherReady: the first list is in the cache: the cacher accepts reads and watches. Args: generation.
	CacherReady
	// CacherNotReady: the cacher has lost its source: it refuses watches and most reads with 429. Args: generation.
	CacherNotReady
	// IncomingBlocked: incoming is full: the one writer into the cache waits for the dispatcher.
	IncomingBlocked
	// IncomingSent: the event is in incoming; its sender does not hold the watchCache's lock. Args: len, cap.
	IncomingSent
	// IncomingReceived: the dispatcher took the event. Args: len, cap.
	IncomingReceived
	// CacherLockWaited: a goroutine that opens or closes a watch holds the Cacher's lock: the dispatcher waits.
	CacherLockWaited
	// CacherLockTaken: the dispatcher has the Cacher's lock.
	CacherLockTaken
	// DispatchStarted: the recipients were picked; until the dispatch is finished no watcher's input may be closed. Args:
	// watchers.
	DispatchStarted
	// DispatchBlocked: the first, non-blocking pass is over; the watchers that were full share the rest of the budget
	// (ms). Args: blocked, budget.
	DispatchBlocked
	// DispatchFinished: every recipient has the event or has been stopped; deferred stops were carried out.
	DispatchFinished
	// WatcherAdded: the starting point was chosen and the watcher registered, as one step. Args: capacity.
	WatcherAdded
	// WatcherInterval: the watcher has sent everything up to its starting point. Args: n.
	WatcherInterval
	// WatcherForced: the watcher's input was still full when the dispatcher's time for slow watchers was over: it closes
	// the watcher.
	WatcherForced
	// WatcherSummed: the watcher is one of many, and quiet; so many routine moments were counted and not reported since
	// its last sum. Args: InputSent, InputReceived, ResultSent, ResultReceived.
	WatcherSummed
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
	// ResultSent: the converted event is in result, with the type and the object that the client will see. Args: len, cap.
	ResultSent
	// ResultReceived: the WatchServer took the event and is about to encode it. Args: len, cap.
	ResultReceived
	// WireOpened: status 200 and the headers are on the wire: from here on no HTTP error is possible.
	WireOpened
	// FrameWritten: one frame was written; it is flushed if nothing else is queued. Args: bytes, queued.
	FrameWritten
	// WireFlushed: everything written so far is on its way to the client, and result is empty.
	WireFlushed
	// WireClosed: the response has ended.
	WireClosed
	// FrameDecoded: the client has decoded one frame into an event.
	FrameDecoded
	// StreamBlocked: the reflector does not take the event yet: nothing more is read from the wire.
	StreamBlocked
	// StreamEnded: the client's side of the stream has ended.
	StreamEnded
	// ReflectorListed: a list is in the reflector's store. Args: n.
	ReflectorListed
	// ReflectorWatching: a watch is open.
	ReflectorWatching
	// ReflectorReceived: an event was taken from the watch; the store does not have it yet.
	ReflectorReceived
	// ReflectorSynced: the streamed initial state is complete and in the reflector's store. Args: n.
	ReflectorSynced
	// ReflectorWatchEnded: the watch has ended; the text says why.
	ReflectorWatchEnded
	// ReflectorBackoff: the reflector is about to wait before it tries again. Args: ms.
	ReflectorBackoff
	// FIFOLockWaited: the consumer processes a delta under the lock of the queue: the writer waits.
	FIFOLockWaited
	// FIFOLockTaken: the writer of the queue has its lock.
	FIFOLockTaken
	// FIFOAdded: the delta is queued; no handler has been called for it. Args: len, cap.
	FIFOAdded
	// FIFOWaited: the queue is empty: its consumer releases the lock and sleeps.
	FIFOWaited
	// FIFOPopped: the delta has left the queue and is being processed. Args: len, cap.
	FIFOPopped
	// FIFOClosed: the queue takes nothing more; it still hands out what it holds.
	FIFOClosed
	// FIFOProcessed: the informer has applied to the local store what it took from the queue, and handed it to the
	// listeners; it holds no lock.
	FIFOProcessed
	// IndexerUpdated: the local store and its indices hold the new state; no handler has been called yet. Args: n.
	IndexerUpdated
	// IndexerHolds: the page has asked for the objects of the local store: until now it knew only how many there are.
	// Args: n.
	IndexerHolds
	// Distributed: the notification was handed to every listener concerned. Args: listeners.
	Distributed
	// ListenerAdded: the listener is registered and receives everything from here on; the text says with which informer.
	ListenerAdded
	// ListenerRemoved: the listener's goroutines have ended.
	ListenerRemoved
	// AddBlocked: pop is busy; it takes the notification soon, because it never waits for a handler.
	AddBlocked
	// AddReceived: pop has taken the notification from addCh, which is unbuffered: this is also the end of distribute's
	// send.
	AddReceived
	// PendingPushed: the handler is busy: the notification waits in the growing ring. Args: len, cap.
	PendingPushed
	// PendingPopped: the oldest waiting notification is next. Args: len, cap.
	PendingPopped
	// HandlerCalled: run has taken the notification from nextCh, which is unbuffered, and calls the handler.
	HandlerCalled
	// HandlerReturned: the handler has returned.
	HandlerReturned
	// HandlerSlow: the handler has returned late, and more notifications wait than the pending ring had places for at
	// first.
	HandlerSlow
	// WorkAdded: the key is queued, or was queued or being worked on already. Args: len, cap.
	WorkAdded
	// WorkWaited: the queue is empty: a worker sleeps.
	WorkWaited
	// WorkWoken: the worker has been woken, and looks whether there is a key or the queue is shut down.
	WorkWoken
	// WorkGot: a worker holds the key; no other worker can get it. Args: len, cap.
	WorkGot
	// WorkDone: the worker has released the key.
	WorkDone
	// WorkRetry: the key comes back after a delay. Args: ms.
	WorkRetry
	// Reconciled: the controller has acted, or has found nothing to do. Args: wrote.
	Reconciled
)

var points = [...]Info{
	RequestReceived: {
		Name: "RequestReceived", Station: HTTP, Op: Mark,
		Fact: "a request has passed routing; nothing has been read or written yet",
		Says: "Request {text}.",
	},
	RequestAnswered: {
		Name: "RequestAnswered", Station: HTTP, Op: Mark, Args: "status",
		Fact: "the handler has returned; for a watch this is the end of the stream",
		Says: "Answered {text} with {status}.",
	},
	KnobTurned: {
		Name: "KnobTurned", Station: HTTP, Op: Mark,
		Passes: "the sandbox's goroutine is never held: the effects of a knob are",
		Fact:   "a knob of the sandbox is turned; its effect follows",
		Says:   "A knob is turned: {text}.",
	},
	CommandEnded: {
		Name: "CommandEnded", Station: HTTP, Op: Mark, Args: "command",
		Passes: "the sandbox's goroutine is never held: the effects of a knob are",
		Fact:   "a command that was answered before its end is over; an error of it has no other reader",
		Says:   "Command {command} ends: {text}.",
	},
	PredicateChosen: {
		Name: "PredicateChosen", Station: HTTP, Op: Mark,
		Passes: "a request that only reads is never held",
		Fact:   "the registry has turned selectors, namespace and name into one key and one predicate",
		Says:   "The registry watches {text}.",
	},
	TxnCommitted: {
		Name: "TxnCommitted", Station: Etcd, Op: Mark,
		Fact: "the optimistic transaction succeeded: the revision exists and is durable as etcd promises",
		Says: "etcd commits {type} {key} as revision {rv}.",
	},
	TxnConflict: {
		Name: "TxnConflict", Station: Etcd, Op: Mark,
		Fact: "another writer wrote the key first: nothing was written",
		Says: "The transaction on {key} found revision {rv} instead of the one it expected, and starts again.",
	},
	RangeRead: {
		Name: "RangeRead", Station: Etcd, Op: Mark, Args: "n",
		Passes: "a request that only reads is never held",
		Fact:   "one range of keys was read at one revision",
		Says:   "etcd reads {n key} at revision {rv}.",
	},
	EtcdLookedAt: {
		Name: "EtcdLookedAt", Station: Etcd, Op: Mark, Args: "percent kB refuses",
		Passes: "the goroutine that checks etcd is not part of the path",
		Fact:   "etcd's leader, the size of its database, or whether it refuses writes (refuses is 1) has changed since the last check",
		Says:   "The database of etcd is {percent} % full ({kB} kB): {text}.",
	},
	EtcdFailed: {
		Name: "EtcdFailed", Station: Etcd, Op: Mark, Anomaly: true,
		Passes: "the program is about to end",
		Fact:   "etcd has logged that it cannot continue; the program ends",
		Says:   "The program ends: {text}.",
	},
	ProgramStopped: {
		Name: "ProgramStopped", Station: HTTP, Op: Mark, Anomaly: true,
		Passes: "the goroutine that notices is not part of the path",
		Fact:   "the whole program runs again after a debugger or SIGSTOP had stopped it; its clocks have not counted the pause",
		Says:   "The program was stopped for {text}; its clock did not count the pause.",
	},
	WatchChanOpened: {
		Name: "WatchChanOpened", Station: Etcd3, Op: Open, Opens: "watchchan",
		Fact: "the watchChan exists, its goroutines are about to start",
		Says: "An etcd3 watch begins: {text}.",
	},
	WatchChanClosed: {
		Name: "WatchChanClosed", Station: Etcd3, Op: Close,
		Fact: "all goroutines of the watchChan have ended and resultChan is closed",
		Says: "The etcd3 watch has ended.",
	},
	WatchChanError: {
		Name: "WatchChanError", Station: Etcd3, Op: Mark, Anomaly: true,
		Fact: "the watch cannot continue; it is about to send one ERROR event",
		Says: "The etcd3 watch fails: {text}.",
	},
	Etcd3IncomingBlocked: {
		Name: "Etcd3IncomingBlocked", Station: Etcd3, Op: Mark, Lane: "watchChan.startWatching etcdWatcher.etcdWatch",
		Waits: ForRoom, On: "etcd3-incoming", Until: "Etcd3IncomingSent",
		Fact: "incomingEventChan is full: the watchChan reads nothing more from etcd",
		Says: "incomingEventChan is full: revision {rv} of {key} waits, and so does etcd.",
	},
	Etcd3IncomingSent: {
		Name: "Etcd3IncomingSent", Station: Etcd3, Op: Send, Queue: "etcd3-incoming", Args: "len cap",
		Fact: "an etcd event has been parsed and queued for decoding",
		Says: "Revision {rv} of {key} enters incomingEventChan.",
	},
	Etcd3IncomingReceived: {
		Name: "Etcd3IncomingReceived", Station: Etcd3, Op: Recv, Queue: "etcd3-incoming", Args: "len cap",
		Fact: "the event has left incomingEventChan and is about to be decoded",
		Says: "Revision {rv} of {key} leaves incomingEventChan to be decoded.",
	},
	Etcd3ResultBlocked: {
		Name: "Etcd3ResultBlocked", Station: Etcd3, Op: Mark, Lane: "watchChan.collectEventProcessing etcdWatcher.translate",
		Waits: ForRoom, On: "etcd3-result", Holds: "etcd3-incoming", Until: "Etcd3ResultSent",
		Fact: "resultChan is full: at most ten more events are decoded",
		Says: "resultChan is full: {type} {key} at {rv} waits.",
	},
	Etcd3ResultSent: {
		Name: "Etcd3ResultSent", Station: Etcd3, Op: Send, Queue: "etcd3-result", Args: "len cap",
		Fact: "the event has been decoded and is in resultChan, in the order in which it came",
		Says: "{type} {key} at {rv} is decoded and enters resultChan.",
	},
	CacheLockWaited: {
		Name: "CacheLockWaited", Station: Ring, Op: Mark, Lane: "cacher.startCaching", Waits: ForLock, Holds: "etcd3-result", Until: "CacheLockTaken",
		Fact: "another goroutine holds the watchCache's lock: the writer waits",
		Says: "The writer waits for the watchCache's lock.",
	},
	CacheLockTaken: {
		Name: "CacheLockTaken", Station: Ring, Op: Mark, Lane: "cacher.startCaching", Locked: true,
		Fact: "the writer has the watchCache's lock",
		Says: "The writer has the watchCache's lock.",
	},
	RingAppend: {
		Name: "RingAppend", Station: Ring, Op: Mark, Args: "start end capacity oldest", Locked: true,
		Fact: "the event is in the ring; the store does not have it yet; no reader can see either before the lock is released",
		Says: "The ring takes {type} {key} at {rv}; its next position is {end}, its capacity {capacity}.",
	},
	RingResize: {
		Name: "RingResize", Station: Ring, Op: Mark, Args: "start end capacity oldest", Locked: true, Anomaly: true,
		Fact: "the events have moved into a ring of another size; their absolute positions are unchanged",
		Says: "The ring is resized to {capacity}: {text}.",
	},
	RVAdvanced: {
		Name: "RVAdvanced", Station: Ring, Op: Mark, Locked: true,
		Fact: "a bookmark moved the cache's resource version without an event",
		Says: "The cache is now at {rv}; no object has changed.",
	},
	StoreUpdate: {
		Name: "StoreUpdate", Station: Store, Op: Mark, Args: "n", Locked: true,
		Fact: "the keyed store holds the new state",
		Says: "The store applies {type} {key}; it holds {n object}.",
	},
	StoreHolds: {
		Name: "StoreHolds", Station: Store, Op: Mark, Args: "n", Lane: "viz.ui", Locked: true,
		Fact: "the page has asked for the store's objects: until now it knew only how many there are",
		Says: "The store holds {key} at {rv}, one of {n object}.",
	},
	CacheReplaced: {
		Name: "CacheReplaced", Station: Store, Op: Mark, Args: "start end capacity n", Locked: true,
		Fact: "store and ring were replaced by a list; history before it is gone",
		Says: "The cache is replaced by a list at {rv}: {n object}, empty history.",
	},
	FreshnessWait: {
		Name: "FreshnessWait", Station: Store, Op: Mark, Locked: true, Waits: ForVersion, Until: "FreshnessReady FreshnessGivenUp",
		Fact: "a reader waits until the cache has caught up with a resource version",
		Says: "A reader waits until the cache reaches {rv}.",
	},
	FreshnessReady: {
		Name: "FreshnessReady", Station: Store, Op: Mark, Locked: true,
		Fact: "the reader's resource version has been reached",
		Says: "The cache has reached {rv}; the reader continues.",
	},
	FreshnessGivenUp: {
		Name: "FreshnessGivenUp", Station: Store, Op: Mark, Locked: true,
		Fact: "the reader has given up: its time is over, or its client has disconnected",
		Says: "A reader no longer waits for {rv}: {text}.",
	},
	ListServed: {
		Name: "ListServed", Station: Store, Op: Mark, Args: "n",
		Passes: "a request that only reads is never held",
		Fact:   "a list was answered from the cache",
		Says:   "A list of {n object} is served from the cache at {rv}.",
	},
	CacherReady: {
		Name: "CacherReady", Station: Incoming, Op: Mark, Args: "generation", Locked: true,
		Fact: "the first list is in the cache: the cacher accepts reads and watches",
		Says: "The cacher is ready, generation {generation}.",
	},
	CacherNotReady: {
		Name: "CacherNotReady", Station: Incoming, Op: Mark, Args: "generation", Anomaly: true,
		Fact: "the cacher has lost its source: it refuses watches and most reads with 429",
		Says: "The cacher is not ready: {text}.",
	},
	IncomingBlocked: {
		Name: "IncomingBlocked", Station: Incoming, Op: Mark, Lane: "cacher.startCaching", Waits: ForRoom, On: "incoming", Holds: "etcd3-result", Until: "IncomingSent",
		Fact: "incoming is full: the one writer into the cache waits for the dispatcher",
		Says: "incoming is full: {type} {key} at {rv} waits, and so does the reflector.",
	},
	IncomingSent: {
		Name: "IncomingSent", Station: Incoming, Op: Send, Queue: "incoming", Args: "len cap",
		Fact: "the event is in incoming; its sender does not hold the watchCache's lock",
		Says: "{type} {key} at {rv} enters incoming.",
	},
	IncomingReceived: {
		Name: "IncomingReceived", Station: Incoming, Op: Recv, Queue: "incoming", Args: "len cap", Lane: "cacher.dispatchEvents",
		Fact: "the dispatcher took the event",
		Says: "The dispatcher takes {type} {key} at {rv}.",
	},
	CacherLockWaited: {
		Name: "CacherLockWaited", Station: Dispatch, Op: Mark, Lane: "cacher.dispatchEvents", Waits: ForLock, Holds: "incoming", Until: "CacherLockTaken",
		Fact: "a goroutine that opens or closes a watch holds the Cacher's lock: the dispatcher waits",
		Says: "The dispatcher waits for the Cacher's lock.",
	},
	CacherLockTaken: {
		Name: "CacherLockTaken", Station: Dispatch, Op: Mark, Lane: "cacher.dispatchEvents", Locked: true,
		Fact: "the dispatcher has the Cacher's lock",
		Says: "The dispatcher has the Cacher's lock.",
	},
	DispatchStarted: {
		Name: "DispatchStarted", Station: Dispatch, Op: Mark, Args: "watchers", Lane: "cacher.dispatchEvents", Locked: true,
		Fact: "the recipients were picked; until the dispatch is finished no watcher's input may be closed",
		Says: "The dispatcher picks {watchers watcher} for {type} {key} at {rv}.",
	},
	DispatchBlocked: {
		Name: "DispatchBlocked", Station: Dispatch, Op: Mark, Args: "blocked budget", Lane: "cacher.dispatchEvents", Anomaly: true,
		Fact: "the first, non-blocking pass is over; the watchers that were full share the rest of the budget (ms)",
		Says: "{blocked watcher} had no room; the dispatcher may wait up to {budget} ms.",
	},
	DispatchFinished: {
		Name: "DispatchFinished", Station: Dispatch, Op: Mark, Lane: "cacher.dispatchEvents", Locked: true,
		Fact: "every recipient has the event or has been stopped; deferred stops were carried out",
		Says: "The dispatcher is done with {rv}: each watcher it picked has the event, or is being closed.",
	},
	WatcherAdded: {
		Name: "WatcherAdded", Station: Watcher, Op: Open, Opens: "watcher", Args: "capacity", Locked: true,
		Fact: "the starting point was chosen and the watcher registered, as one step",
		Says: "Watcher {subject} is registered from {rv}: {text}.",
	},
	WatcherInterval: {
		Name: "WatcherInterval", Station: Watcher, Op: Mark, Args: "n", Lane: "cacheWatcher.processInterval",
		Fact: "the watcher has sent everything up to its starting point",
		Says: "{subject} has sent {n initial event}, up to {rv}.",
	},
	WatcherForced: {
		Name: "WatcherForced", Station: Watcher, Op: Mark, Anomaly: true,
		Fact: "the watcher's input was still full when the dispatcher's time for slow watchers was over: it closes the watcher",
		Says: "{subject} does not keep up and is closed; its client resumes from the last version it saw.",
	},
	WatcherSummed: {
		Name: "WatcherSummed", Station: Watcher, Op: Sum, Args: "InputSent InputReceived ResultSent ResultReceived",
		Passes: "nothing happens: it is reported about a watcher, under the lock of all lanes",
		Fact:   "the watcher is one of many, and quiet; so many routine moments were counted and not reported since its last sum",
		Says:   "{subject} is one of many: {InputSent event} went into its input and {ResultReceived} to its client without being reported.",
	},
	WatcherRemoved: {
		Name: "WatcherRemoved", Station: Watcher, Op: Close, Lane: "cacheWatcher.processInterval",
		Fact: "result is closed; the watcher sends nothing more",
		Says: "Watcher {subject} is gone.",
	},
	InputBlocked: {
		Name: "InputBlocked", Station: Watcher, Op: Mark, Lane: "cacher.dispatchEvents", Waits: ForRoom, On: "input", Holds: "incoming", Until: "InputSent WatcherForced",
		Fact: "the input is full: the dispatcher waits for this watcher as long as the budget lasts",
		Says: "The input of {subject} is full: the dispatcher waits with {type} {key} at {rv}.",
	},
	InputSent: {
		Name: "InputSent", Station: Watcher, Op: Send, Routine: "InputSent", Queue: "input", Args: "len cap", Lane: "cacher.dispatchEvents",
		Fact: "the event is in this watcher's input",
		Says: "{type} {key} at {rv} enters the input of {subject}.",
	},
	InputReceived: {
		Name: "InputReceived", Station: Watcher, Op: Recv, Routine: "InputReceived", Queue: "input", Args: "len cap", Lane: "cacheWatcher.processInterval",
		Fact: "the watcher's goroutine took the event and will filter it",
		Says: "{subject} takes {type} {key} at {rv} from its input.",
	},
	WatcherFiltered: {
		Name: "WatcherFiltered", Station: Watcher, Op: Mark, Routine: "InputReceived", Lane: "cacheWatcher.processInterval",
		Fact: "neither the old nor the new object matches: nothing is sent",
		Says: "{subject} sends nothing for {key} at {rv}: its selector does not match.",
	},
	ResultBlocked: {
		Name: "ResultBlocked", Station: Watcher, Op: Mark, Lane: "cacheWatcher.processInterval", Waits: ForRoom, On: "result", Holds: "input", Until: "ResultSent",
		Fact: "the result is full: the watcher takes nothing from its input until its client reads",
		Says: "The result of {subject} is full: {type} {key} at {rv} waits.",
	},
	ResultSent: {
		Name: "ResultSent", Station: Watcher, Op: Send, Routine: "ResultSent", Queue: "result", Args: "len cap", Lane: "cacheWatcher.processInterval",
		Fact: "the converted event is in result, with the type and the object that the client will see",
		Says: "{type} {key} at {rv} enters the result of {subject}.",
	},
	ResultReceived: {
		Name: "ResultReceived", Station: Wire, Op: Recv, Routine: "ResultReceived", Queue: "result", Args: "len cap", Lane: "handlers.WatchServer",
		Waits: ForClient, Holds: "result", Until: "ResultReceived WireFlushed WireClosed WatcherSummed",
		Fact: "the WatchServer took the event and is about to encode it",
		Says: "The WatchServer takes {type} {key} at {rv} from {subject}.",
	},
	WireOpened: {
		Name: "WireOpened", Station: Wire, Op: Mark, Lane: "handlers.WatchServer",
		Fact: "status 200 and the headers are on the wire: from here on no HTTP error is possible",
		Says: "{subject} streams to {text}.",
	},
	FrameWritten: {
		Name: "FrameWritten", Station: Wire, Op: Mark, Routine: "ResultReceived", Args: "bytes queued", Lane: "handlers.WatchServer",
		Fact: "one frame was written; it is flushed if nothing else is queued",
		Says: "{type} {key} at {rv} is written as {bytes} bytes; result still holds {queued}.",
	},
	WireFlushed: {
		Name: "WireFlushed", Station: Wire, Op: Mark, Routine: "ResultReceived", Lane: "handlers.WatchServer",
		Fact: "everything written so far is on its way to the client, and result is empty",
		Says: "Everything for {subject} is on its way.",
	},
	WireClosed: {
		Name: "WireClosed", Station: Wire, Op: Mark, Lane: "handlers.WatchServer",
		Fact: "the response has ended",
		Says: "The stream of {subject} ends: {text}.",
	},
	FrameDecoded: {
		Name: "FrameDecoded", Station: Wire, Op: Mark, Lane: "StreamWatcher.receive",
		Fact: "the client has decoded one frame into an event",
		Says: "The client decodes {type} {key} at {rv}.",
	},
	StreamBlocked: {
		Name: "StreamBlocked", Station: Wire, Op: Mark, Lane: "StreamWatcher.receive", Waits: ForTaker, On: "stream", Holds: "wire", Until: "ReflectorReceived StreamEnded",
		Fact: "the reflector does not take the event yet: nothing more is read from the wire",
		Says: "{subject} is not ready for {type} {key} at {rv}.",
	},
	StreamEnded: {
		Name: "StreamEnded", Station: Wire, Op: Mark, Lane: "StreamWatcher.receive",
		Fact: "the client's side of the stream has ended",
		Says: "The client sees the end of the stream: {text}.",
	},
	ReflectorListed: {
		Name: "ReflectorListed", Station: Reflector, Op: Mark, Args: "n",
		Fact: "a list is in the reflector's store",
		Says: "{subject} has listed {n object} at {rv}.",
	},
	ReflectorWatching: {
		Name: "ReflectorWatching", Station: Reflector, Op: Mark,
		Fact: "a watch is open",
		Says: "{subject} watches {text}.",
	},
	ReflectorReceived: {
		Name: "ReflectorReceived", Station: Reflector, Op: Mark,
		Fact: "an event was taken from the watch; the store does not have it yet",
		Says: "{subject} receives {type} {key} at {rv}.",
	},
	ReflectorSynced: {
		Name: "ReflectorSynced", Station: Reflector, Op: Mark, Args: "n",
		Fact: "the streamed initial state is complete and in the reflector's store",
		Says: "{subject} has received the whole state at {rv}: {n object}.",
	},
	ReflectorWatchEnded: {
		Name: "ReflectorWatchEnded", Station: Reflector, Op: Mark,
		Fact: "the watch has ended; the text says why",
		Says: "The watch of {subject} ended: {text}.",
	},
	ReflectorBackoff: {
		Name: "ReflectorBackoff", Station: Reflector, Op: Mark, Args: "ms", Anomaly: true,
		Fact: "the reflector is about to wait before it tries again",
		Says: "{subject} waits {ms} ms before trying again: {text}.",
	},
	FIFOLockWaited: {
		Name: "FIFOLockWaited", Station: FIFO, Op: Mark, Lane: "reflector.Run", Waits: ForLock, On: "fifo", Holds: "stream", Until: "FIFOLockTaken",
		Fact: "the consumer processes a delta under the lock of the queue: the writer waits",
		Says: "The queue is locked while a delta is processed: {subject} waits.",
	},
	FIFOLockTaken: {
		Name: "FIFOLockTaken", Station: FIFO, Op: Mark, Lane: "reflector.Run", Locked: true,
		Fact: "the writer of the queue has its lock",
		Says: "{subject} has the lock of the queue.",
	},
	FIFOAdded: {
		Name: "FIFOAdded", Station: FIFO, Op: Push, Queue: "fifo", Args: "len cap", Locked: true,
		Fact: "the delta is queued; no handler has been called for it",
		Says: "{type} {key} is queued for {subject}; {len} in line.",
	},
	FIFOWaited: {
		Name: "FIFOWaited", Station: FIFO, Op: Mark, Lane: "informer informer.Run", Locked: true, Waits: ForWork, On: "fifo", Until: "FIFOWaited FIFOPopped FIFOClosed",
		Fact: "the queue is empty: its consumer releases the lock and sleeps",
		Says: "The queue is empty: {subject} waits.",
	},
	FIFOPopped: {
		Name: "FIFOPopped", Station: FIFO, Op: Pop, Queue: "fifo", Args: "len cap", Locked: true,
		Fact: "the delta has left the queue and is being processed",
		Says: "{type} {key} is taken from the queue of {subject}; {len} in line.",
	},
	FIFOClosed: {
		Name: "FIFOClosed", Station: FIFO, Op: Mark, Locked: true,
		Fact: "the queue takes nothing more; it still hands out what it holds",
		Says: "The queue is closed.",
	},
	FIFOProcessed: {
		Name: "FIFOProcessed", Station: FIFO, Op: Mark,
		Fact: "the informer has applied to the local store what it took from the queue, and handed it to the listeners; it holds no lock",
		Says: "{subject} is done with what it took, and turns to the queue again.",
	},
	IndexerUpdated: {
		Name: "IndexerUpdated", Station: Indexer, Op: Mark, Args: "n", Locked: true,
		Fact: "the local store and its indices hold the new state; no handler has been called yet",
		Says: "The local store of {subject} applies {type} {key}; it holds {n object}.",
	},
	IndexerHolds: {
		Name: "IndexerHolds", Station: Indexer, Op: Mark, Args: "n", Lane: "viz.ui", Locked: true,
		Fact: "the page has asked for the objects of the local store: until now it knew only how many there are",
		Says: "The local store of {subject} holds {key} at {rv}, one of {n object}.",
	},
	Distributed: {
		Name: "Distributed", Station: Processor, Op: Mark, Args: "listeners",
		Passes: "the informer holds deltasMu while it distributes",
		Fact:   "the notification was handed to every listener concerned",
		Says:   "{type} {key} is handed to {listeners listener} of {subject}.",
	},
	ListenerAdded: {
		Name: "ListenerAdded", Station: Listener, Op: Open, Opens: "listener", Locked: true,
		Fact: "the listener is registered and receives everything from here on; the text says with which informer",
		Says: "Listener {subject} is added to {text}.",
	},
	ListenerRemoved: {
		Name: "ListenerRemoved", Station: Listener, Op: Close,
		Fact: "the listener's goroutines have ended",
		Says: "Listener {subject} is removed.",
	},
	AddBlocked: {
		Name: "AddBlocked", Station: Listener, Op: Mark, Lane: "informer informer.Run", Waits: ForTaker, On: "add", Holds: "fifo", Until: "AddReceived",
		Fact: "pop is busy; it takes the notification soon, because it never waits for a handler",
		Says: "{subject} is not ready to take {type} {key}.",
	},
	AddReceived: {
		Name: "AddReceived", Station: Listener, Op: Mark, Lane: "processorListener.pop",
		Fact: "pop has taken the notification from addCh, which is unbuffered: this is also the end of distribute's send",
		Says: "{type} {key} is handed to {subject}.",
	},
	PendingPushed: {
		Name: "PendingPushed", Station: Listener, Op: Push, Queue: "pending", Args: "len cap", Lane: "processorListener.pop",
		Fact: "the handler is busy: the notification waits in the growing ring",
		Says: "{type} {key} waits in the pending ring of {subject}: {len} of {cap}.",
	},
	PendingPopped: {
		Name: "PendingPopped", Station: Listener, Op: Pop, Queue: "pending", Args: "len cap", Lane: "processorListener.pop",
		Fact: "the oldest waiting notification is next",
		Says: "{type} {key} leaves the pending ring of {subject}; {len} in line.",
	},
	HandlerCalled: {
		Name: "HandlerCalled", Station: Handler, Op: Mark, Lane: "processorListener.run",
		Waits: ForReturn, Holds: "next pending", Until: "HandlerReturned",
		Fact: "run has taken the notification from nextCh, which is unbuffered, and calls the handler",
		Says: "The handler of {subject} runs for {type} {key}.",
	},
	HandlerReturned: {
		Name: "HandlerReturned", Station: Handler, Op: Mark, Lane: "processorListener.run",
		Fact: "the handler has returned",
		Says: "The handler of {subject} is done with {type} {key}.",
	},
	HandlerSlow: {
		Name: "HandlerSlow", Station: Handler, Op: Mark, Lane: "processorListener.run", Anomaly: true,
		Fact: "the handler has returned late, and more notifications wait than the pending ring had places for at first",
		Says: "The handler of {subject} is slow: {text} for {key}.",
	},
	WorkAdded: {
		Name: "WorkAdded", Station: Workqueue, Op: Push, Queue: "workqueue", Args: "len cap", Locked: true,
		Fact: "the key is queued, or was queued or being worked on already",
		Says: "{key} is in the workqueue of {subject}; {len} in line.",
	},
	WorkWaited: {
		Name: "WorkWaited", Station: Workqueue, Op: Mark, Lane: "scheduler.worker kubelet.worker namespaces.worker", Locked: true, Waits: ForWork, On: "workqueue", Until: "WorkWoken",
		Fact: "the queue is empty: a worker sleeps",
		Says: "A worker of {subject} has nothing to do.",
	},
	WorkWoken: {
		Name: "WorkWoken", Station: Workqueue, Op: Mark, Lane: "scheduler.worker kubelet.worker namespaces.worker", Locked: true,
		Fact: "the worker has been woken, and looks whether there is a key or the queue is shut down",
		Says: "A worker of {subject} wakes.",
	},
	WorkGot: {
		Name: "WorkGot", Station: Workqueue, Op: Pop, Queue: "workqueue", Args: "len cap", Locked: true,
		Lane: "scheduler.worker kubelet.worker namespaces.worker", Waits: ForReturn, Holds: "workqueue", Until: "WorkDone",
		Fact: "a worker holds the key; no other worker can get it",
		Says: "A worker of {subject} takes {key}; {len} in line.",
	},
	WorkDone: {
		Name: "WorkDone", Station: Workqueue, Op: Mark, Locked: true,
		Fact: "the worker has released the key",
		Says: "{subject} is done with {key}.",
	},
	WorkRetry: {
		Name: "WorkRetry", Station: Workqueue, Op: Mark, Args: "ms",
		Fact: "the key comes back after a delay",
		Says: "{subject} will try {key} again in {ms} ms: {text}.",
	},
	Reconciled: {
		Name: "Reconciled", Station: Workqueue, Op: Mark, Args: "wrote",
		Fact: "the controller has acted, or has found nothing to do",
		Says: "{subject}: {text}.",
	},
}
