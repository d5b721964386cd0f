package inspector

import "listwatch/internal/probe"

// placeText is what the inspector tells of a station or a queue in words.
type placeText struct {
	Title   string // of a queue; a station's stands in its box
	What    string // two sentences
	Why     string // why it exists
	Chapter string // folder
	Threads []thread
}

// thread is a discussion upstream that became a scenario here.
type thread struct {
	Ref   string // "kubernetes/kubernetes#125123"
	Words string
}

var stationTexts = map[probe.Station]placeText{
	probe.HTTP: {
		What:    "Every request to the API arrives here: from kubectl, from client-go, from the page's own buttons. The handler finds the resource, reads the body, and asks the registry. A watch stays here until its stream ends.",
		Why:     "It is the only way in: every client writes and watches over HTTP, the controllers of this program included.",
		Chapter: "08-handlers",
	},
	probe.Etcd: {
		What:    "The store of record: every committed write makes one new revision of the whole store. That revision is the object's resourceVersion everywhere from then on.",
		Why:     "One number orders every change to everything, so that “what have I missed since 1042?” has an exact answer.",
		Chapter: "02-etcd3",
		Threads: []thread{{"kubernetes/kubernetes#89802", "what is state and what is history"}},
	},
	probe.Etcd3: {
		What:    "The one watch that the cache holds on etcd. Events are read into incomingEventChan, decoded up to ten at a time, put back into order, and wait in resultChan.",
		Why:     "Decoding is the expensive part. It is done once here, for every watcher there will be, and in parallel without losing the order.",
		Chapter: "02-etcd3",
		Threads: []thread{{"kubernetes/kubernetes#123532", "the cacher's own watch is starved"}},
	},
	probe.Ring: {
		What:    "The newest events, in the order of their revisions. Positions only grow; the slot is the position modulo the capacity. A watch can no longer start from an event that was pushed out.",
		Why:     "A client that comes back asks for everything since the last version it saw. If the ring still reaches back that far, the server sends it; if not, it answers 410, and the client has to list.",
		Chapter: "04-watchcache",
		Threads: []thread{
			{"kubernetes/kubernetes#55230", "“too old resource version” is normal"},
			{"kubernetes/kubernetes#89802", "the history and the store are two things"},
		},
	},
	probe.Store: {
		What:    "The current state of every object, by key and in order. It has no limit, and it holds no past: that is the ring's part.",
		Why:     "Lists and the first state of a watch come from here instead of from etcd. A reader that needs a newer version waits, up to three seconds.",
		Chapter: "04-watchcache",
		Threads: []thread{
			{"kubernetes/kubernetes#59848", "stale reads"},
			{"kubernetes/kubernetes#107133", "“Too large resource version”, again and again"},
		},
	},
	probe.Incoming: {
		What:    "One channel of a hundred between the cache and the dispatcher. An event that is here is already in the ring and in the store.",
		Why:     "The cache must not wait for watchers while it holds its lock. This is where events queue when dispatching is slow.",
		Chapter: "06-cacher",
		Threads: []thread{{"kubernetes/kubernetes#125123", "“len(c.input) = 10, len(c.result) = 10”: what it means"}},
	},
	probe.Dispatch: {
		What:    "One goroutine picks the watchers that an event concerns and offers it to each without waiting. Then it waits for those that were full, within one small budget of time, and closes those that are still full when the budget is spent.",
		Why:     "One slow client must not stop the others for long. It costs them at most the budget, and then loses its stream. It resumes from the last version it saw, and loses no event that the ring still holds.",
		Chapter: "06-cacher",
		Threads: []thread{
			{"kubernetes/kubernetes#125123", "what the log line means"},
			{"kubernetes/kubernetes#141450", "what one slow watcher costs the others"},
			{"kubernetes/kubernetes#16916", "how it was mended at first"},
		},
	},
	probe.Watcher: {
		What:    "There is one for every open watch: a channel in, a goroutine that asks whether the object matched before the change and matches after it, and a channel out. The two answers alone decide between ADDED, MODIFIED, DELETED and nothing.",
		Why:     "Every client wants its own selection at its own speed. The two channels are the slack between one stream for all and one for each.",
		Chapter: "05-cachewatcher",
		Threads: []thread{
			{"kubernetes/kubernetes#129197", "a hundred thousand initial events, and the watcher is closed"},
			{"kubernetes/kubernetes#34725", "ten thousand initial events against buffers of ten"},
		},
	},
	probe.Wire: {
		What:    "HTTP: one response that does not end, one frame per event, flushed when nothing else is waiting. After the headers no HTTP error is possible; the server reports errors as ERROR events.",
		Why:     "Everything that passes between the halves passes here, so clients can be written in any language. If a client reads slowly, its result channel on the server fills.",
		Chapter: "08-handlers",
		Threads: []thread{{"kubernetes/kubernetes#141475", "let a slow client stall, or close it?"}},
	},
	probe.Reflector: {
		What:    "It lists once, or has the first state streamed, and then watches from there; when the watch ends it watches again, and after 410 it lists again. Whatever it gets goes into the store it was given, which here is a queue.",
		Why:     "It turns a stream that may break at any moment into a store that catches up again, unnoticed by the code above it.",
		Chapter: "03-reflector",
		Threads: []thread{
			{"kubernetes/kubernetes#89802", "why it has to list at all"},
			{"kubernetes/kubernetes#107133", "a list that can never be answered"},
		},
	},
	probe.FIFO: {
		What:    "What has changed and has not been processed. RealFIFO keeps every change in order; DeltaFIFO, which it replaced, kept one list of changes per object.",
		Why:     "The reflector must keep reading while a change is processed; otherwise the server's queues would fill. This is the client's first buffer.",
		Chapter: "10-deltafifo",
		Threads: []thread{
			{"kubernetes/kubernetes#115658", "an object that exists in the queue only"},
			{"kubernetes/kubernetes#83911", "Replace drops an Added"},
		},
	},
	probe.Indexer: {
		What:    "The client's own copy of the state, by key and by index. The informer changes it before it calls any handler.",
		Why:     "A handler looks up its key here. It finds the state of the notification or a newer one, or that the object is gone, and costs the server nothing.",
		Chapter: "11-indexer",
		Threads: []thread{{"kubernetes/kubernetes#59848", "what a stale copy can do"}},
	},
	probe.Processor: {
		What:    "It hands each notification to every listener, one after the other. It waits for each to take it, but never for a handler.",
		Why:     "Many controllers share one informer: one watch, one copy, one decoding, any number of handlers.",
		Chapter: "12-processor",
	},
	probe.Listener: {
		What:    "Two unbuffered channels with a ring between them that grows without limit. One goroutine moves notifications in and out of the ring, another calls the handler.",
		Why:     "A slow handler must not hold up other handlers. The price is memory: this is the one hop without backpressure.",
		Chapter: "12-processor",
		Threads: []thread{
			{"kubernetes/client-go#1326", "how full is pendingNotifications?"},
			{"kubernetes/kubernetes#137314", "slow handlers are reported"},
		},
	},
	probe.Handler: {
		What:    "Your function: OnAdd, OnUpdate or OnDelete. It is called one notification at a time, in order.",
		Why:     "All other stations exist to call it. It should be quick: put a key into a queue and return.",
		Chapter: "12-processor",
		Threads: []thread{
			{"grafana/grafana-app-sdk#1352", "OnDelete was given a tombstone"},
			{"rancher/steve#1256", "the same, elsewhere"},
		},
	},
	probe.Workqueue: {
		What:    "Keys of objects that a worker has to look at. The queue does not add a key that waits already, and does not give a key to a second worker while one holds it.",
		Why:     "It turns many changes of one object into one visit, and a failure into a later visit. What the worker then writes goes to the API, and the loop is closed.",
		Chapter: "14-controllers",
	},
}

var queueTexts = map[string]placeText{
	"etcd3-incoming": {Title: "incomingEventChan", Chapter: "02-etcd3",
		What: "A channel of a hundred between reading etcd's responses and decoding them. The events here have been parsed, not decoded.",
		Why:  "etcd sends in bursts; decoding has its own pace."},
	"etcd3-result": {Title: "resultChan", Chapter: "02-etcd3",
		What: "A channel of a hundred behind the decoders. Its order is that of the revisions again.",
		Why:  "The cacher's reflector takes from here; when it is slow, decoding stops, then reading, then etcd's own watch: backpressure goes all the way."},
	"incoming": {Title: "incoming", Chapter: "06-cacher",
		What:    "A channel of a hundred into the one dispatching goroutine. The reflector does not hold the watchCache's lock while it waits here.",
		Why:     "It takes up what comes while the dispatcher waits for blocked watchers.",
		Threads: []thread{{"kubernetes/kubernetes#125123", "what its length says"}}},
	"input": {Title: "input", Chapter: "05-cachewatcher",
		What:    "A watcher's first channel. Its size comes from the resource: about a second of its events, at least ten.",
		Why:     "It absorbs a burst while the watcher converts and sends. When it is full the dispatcher has to wait for this watcher, or close it.",
		Threads: []thread{{"kubernetes/kubernetes#125123", "“len(c.input) = 10”"}}},
	"result": {Title: "result", Chapter: "05-cachewatcher",
		What:    "A watcher's second channel, as large as the first. The events here are filtered and have the type that the client will see.",
		Why:     "It keeps the connection busy while the next event is converted, and lets the WatchServer flush once for several.",
		Threads: []thread{{"kubernetes/kubernetes#125123", "“len(c.result) = 10”"}}},
	"fifo": {Title: "the FIFO's items", Chapter: "10-deltafifo",
		What:    "The deltas that wait to be processed, under one lock. It has no limit.",
		Why:     "Between the reflector, which must keep reading, and the one goroutine that applies changes.",
		Threads: []thread{{"kubernetes/kubernetes#115658", "an object that exists here only"}}},
	"add": {Title: "addCh", Chapter: "12-processor",
		What: "An unbuffered channel into a listener. The processor waits here until the listener's pop has taken the notification.",
		Why:  "pop takes at once, whatever the handler does, because what it cannot pass on goes into the pending ring."},
	"pending": {Title: "pendingNotifications", Chapter: "12-processor",
		What:    "A ring that grows: a thousand and twenty-four places at first, twice as many whenever it is full. The listener has these notifications, the handler does not yet.",
		Why:     "It keeps a slow handler from holding up the informer. Nothing pushes back: if the handler stays slower than the stream, memory grows.",
		Threads: []thread{{"kubernetes/client-go#1326", "how to see it"}}},
	"next": {Title: "nextCh", Chapter: "12-processor",
		What: "An unbuffered channel from pop to the goroutine that calls the handler. The hand-over happens when the handler has returned.",
		Why:  "It is how pop learns that the handler is free."},
	"workqueue": {Title: "the workqueue's keys", Chapter: "14-controllers",
		What: "Keys in the order in which they were first added, each at most once.",
		Why:  "A worker takes one key at a time and looks at the newest state of that object, however often it has changed."},
}
