package lab

// builds are the labs in which the heart of a station is taken out.
var builds = []Lab{
	{
		ID: "build-the-ring", Title: "Write the ring", Chapter: "04-watchcache", Section: "How far back the ring reaches",
		Kind: Build, Stars: 2, Minutes: 20,
		Symptom: "`history.appendLocked` is empty: the cache has a state and no history.",
		Goal:    "An event takes the next slot; when there is no room the oldest gives way; positions count up for ever.",
		Look:    "Press *Change*: nothing enters the ring until you have written it.",
		Hints: []string{
			"`startIndex` and `endIndex` are absolute. Only the slot is taken modulo the capacity.",
			"`checkLocked` looks at the order for you. Then ask for a resize: it may make room, and then nothing is dropped.",
			"An event that is dropped has to be remembered (`removedEventSinceRelist`): a watch from the list's version can no longer be served. Report `probe.RingAppend` last, with start, end, capacity and `oldestLocked`: the stage draws the ring from it.",
		},
		Promise: "The ring holds the newest events, in order, without a gap.",
		Edits:   []Edit{{Dir: "chapters/04-watchcache", Symbol: "history.appendLocked", Body: "	// Write this function."}},
		Tests:   []Test{{"./chapters/04-watchcache", "Ring|History"}},
		Reason:  "got 0 events",
	},
	{
		ID: "build-the-table", Title: "Write the conversion table", Chapter: "05-cachewatcher", Section: "What it means",
		Kind: Build, Stars: 1, Minutes: 15,
		Symptom: "`convertToWatchEvent` drops every event.",
		Goal:    "From \"matched before\" and \"matches now\" follow ADDED, MODIFIED, DELETED, or nothing.",
		Look:    "Events reach a watcher's `input` and never its `result`.",
		Hints: []string{
			"A bookmark is no object: `convertBookmark` has it.",
			"A deleted object does not match now, whatever its labels say.",
			"For DELETED the client wants the object as it knew it, with the version of this change: `lastState`.",
		},
		Rule:   5,
		Edits:  []Edit{{Dir: "chapters/05-cachewatcher", Symbol: "CacheWatcher.convertToWatchEvent", Body: "	return watch.Event{}, false // write this function"}},
		Tests:  []Test{{"./chapters/05-cachewatcher", "TestTheTypeOfAnEventFollowsFromTheTwoMatchesAlone|TestAnObjectThatStopsMatching"}},
		Reason: "want ADDED",
	},
	{
		ID: "build-two-phases", Title: "Write the second phase", Chapter: "06-cacher", Section: "One event goes out",
		Kind: Build, Stars: 3, Minutes: 30,
		Symptom: "`waitForBlocked` closes every watcher that has no room, at once.",
		Goal:    "All full watchers of one event share one timer; the one for which it runs out is closed, and so is every later one that still has no room; unused time goes back.",
		Look:    "The story *A watcher that does not read is closed*: the battery is never used.",
		Hints: []string{
			"`budget.takeAvailable` gives everything there is. One timer serves all.",
			"`watcher.Add(event, expired)` waits for room or for the timer. A timer fires once: what do you hand to the next watcher after it has?",
			"A nil channel in a select is never ready; read what `Add` does with nil.",
		},
		Promise: "Slow watchers of one event are waited for together, no longer than the budget.",
		Edits: []Edit{{Dir: "chapters/06-cacher", Symbol: "Cacher.waitForBlocked", Body: `	for _, watcher := range blocked { // write this function: no watcher is waited for
		if !watcher.Add(event, nil) {
			c.nTerminated.Add(1)
		}
	}`}},
		Tests:  []Test{{"./chapters/06-cacher", "Slow|Budget"}},
		Reason: "closed before the budget was used up",
		Record: "does not keep up",
	},
	{
		ID: "build-watch-again", Title: "Write the table of ends", Chapter: "03-reflector", Section: "Following",
		Kind: Build, Stars: 2, Minutes: 20,
		Symptom: "After every end of a watch, whatever its reason, the reflector lists.",
		Goal:    "Each end of a watch is treated as the table above `Reflector.watch` says.",
		Look:    "*Knobs*, *Drop* beside listwatch-informer: it waits, and asks for a state not older than N, where it should ask at once for the changes after N.",
		Hints: []string{
			"An orderly end is no error. 410 is the one error that says something about the version.",
			"429 asks for patience (`backOff`), a 500 for stubbornness (`retry.ShouldRetry`, `sitOut`).",
		},
		Promise: "A reflector lists only when nothing less will do.",
		Edits:   []Edit{{Dir: "chapters/03-reflector", Symbol: "Reflector.watchAgain", Body: "	return false // write this function"}},
		Tests:   []Test{{"./chapters/03-reflector", "TestHowAWatchEndsDecidesWhatIsAskedNext"}},
		Reason:  "waited 1 times, want 0",
	},
	{
		ID: "build-pop", Title: "Write the pump", Chapter: "12-processor", Section: "The clerk at the door",
		Kind: Build, Stars: 3, Minutes: 30,
		Symptom: "`processorListener.pop` hands each notification on before it takes the next: one slow handler blocks the informer, and every other handler with it.",
		Goal:    "`pop` always takes what comes in, and offers the oldest to the handler meanwhile.",
		Look:    "Make one handler slow: the other handlers stop as well.",
		Hints: []string{
			"One goroutine, one select, two cases: a send and a receive.",
			"When there is nothing to send, the send must not be ready. A channel variable that is nil does that.",
			"What came in while the hand was full belongs behind what is in the ring already.",
		},
		Promise: "No handler holds up another, nor the informer.",
		Edits: []Edit{{Dir: "chapters/12-processor", Symbol: "processorListener.pop", Body: `	defer close(l.nextCh)
	defer close(l.done)
	for n := range l.addCh { // write this function: nothing may wait for the handler here
		l.nextCh <- n
	}`}},
		Tests:  []Test{{"./chapters/12-processor", "Slow|Pending|Ring|Handler"}},
		Reason: "told after",
	},
	{
		ID: "build-key-or-prefix", Title: "Write the choice of key or prefix", Chapter: "07-registry", Section: "A list or a watch",
		Kind: Build, Stars: 2, Minutes: 15,
		Symptom: "`keyFor` ignores the selector: `kubectl get pod a -w` makes the server look through every pod of the namespace.",
		Goal:    "A request that can only mean one object asks for its key; any other asks for the narrowest directory.",
		Look:    "`kubectl get pod a -w`: the lane's label ends in a slash, where the key of one pod belongs.",
		Hints: []string{
			"Ask the predicate: MatchesSingleNamespace and MatchesSingle say what its fields pin.",
			"The namespace of the path counts more than that of a selector, and a selector may hold what no namespace can be called.",
			"A name without a namespace makes no key for a pod, and does for a node: let `Resource.Key` say so.",
		},
		Promise: "One object is watched by its key, anything else by a prefix.",
		Edits: []Edit{{Dir: "chapters/07-registry", Symbol: "Store.keyFor", Body: `	if err := s.resource.checkNamespace(namespace); err != nil {
		return "", false, err
	}
	return s.resource.KeyRoot(namespace), true, nil // write the rest: when is it one key?`}},
		Tests:  []Test{{"./chapters/07-registry", "TestSelectorsAndNamespaceBecomeOneKey"}},
		Reason: "recursive true, <nil>; want /registry/",
	},
	{
		ID: "build-real-pop", Title: "Write what RealFIFO hands out", Chapter: "10-deltafifo", Section: "Something is taken out",
		Kind: Build, Stars: 2, Minutes: 25,
		Symptom: "`takeLocked` hands out one item at a time, and counts it before it is processed: batches are never used, and the informer has synced while its last object is still under way.",
		Goal:    "The n oldest are taken, processed once, and only then count towards the first list.",
		Look:    "The FIFO fills and never says that anything leaves it: no pop is reported.",
		Hints: []string{
			"Copy what you take: the array is used again. `clear` what you leave behind, or the objects stay alive.",
			"`poppedLocked` reports; `HasSynced` before processing says whether it is the first list; `whileProcessingLocked` lets writers in.",
			"`processedLocked` comes after the processing, and only if the queue was populated before it.",
		},
		Promise: "What is taken is processed once and in order; the queue has synced when its first list has been processed.",
		Edits: []Edit{{Dir: "chapters/10-deltafifo", Symbol: "RealFIFO.takeLocked", Body: `	oldest := f.items[0] // write this function
	f.items = f.items[1:]
	if f.populated {
		f.processedLocked(1)
	}
	return process(Deltas{oldest}, !f.HasSynced())`}},
		Tests:  []Test{{"./chapters/10-deltafifo", "TestSyncedWhenTheFirstListHasBeenProcessed|TestBatches|TestTheArrayLetsGoOfWhatWasTaken|TestWritersAreLetIn|TestWhatWasTakenBeforeTheFirstListIsNoPartOfIt|TestProbesTellWhatWaits"}},
		Reason: "synced true",
	},
	{
		ID: "build-tombstone", Title: "Write a handler's way to survive a tombstone", Chapter: "12-processor", Section: "The handler",
		Kind: Build, Stars: 1, Minutes: 15,
		Symptom: "After a laptop's nap the controller dies: `interface conversion: interface {} is deltafifo.DeletedFinalStateUnknown, not *v1.Pod`.",
		Goal:    "A typed handler is told of every deletion: with its last state, with a tombstone and an old state, or with a tombstone alone.",
		Look:    "Play the story *The deletion that no watch saw* with the scheduler running.",
		Hints: []string{
			"OnDelete is given an `any` for a reason. Which two types can it be?",
			"A tombstone's object may be nil: convert it only if it is there.",
		},
		Promise: "OnDelete is given the last state, or a tombstone with a key and perhaps an older state.",
		Edits: []Edit{{Dir: "chapters/12-processor", Symbol: "typedResourceEventHandler.OnDelete",
			Body: `	t.handler.OnDelete(DeletedObject[T]{OptionalObj: obj.(T)}) // write this function: it may be a tombstone`}},
		Tests:  []Test{{"./chapters/12-processor", "TestTypedHandlerIsSparedTombstones"}},
		Reason: "DeletedFinalStateUnknown",
	},
}
