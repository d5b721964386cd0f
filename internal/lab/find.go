package lab

// finds are the labs in which something is broken.
var finds = []Lab{
	{
		ID: "neighbours", Title: "The watch that sees its neighbours", Chapter: "01-storage", Section: "A key is a path, and a prefix must end at a slash",
		Kind: Find, Stars: 1, Minutes: 10,
		Symptom: "A watch of namespace `web` is told of pods in namespace `web-staging`.",
		Goal:    "A watch of one namespace is told of that namespace only.",
		Look:    "Open a watch with `kubectl -n web get pods -w` and create a pod in `web-staging`: the event goes through that watcher's lane.",
		Hints: []string{
			"Two keys can begin with the same letters without one being a folder of the other.",
			"Which function turns the resource's prefix into the key that a list asks for? What does it do for a recursive request?",
			"Compare `/registry/pods/web` and `/registry/pods/web/` as prefixes of `/registry/pods/web-staging/a`.",
		},
		Promise: "A prefix selects whole path segments: /pods/web does not contain /pods/web-staging.",
		Edits: []Edit{{Dir: "chapters/01-storage", Symbol: "PrepareKey", Old: `	if recursive && !strings.HasSuffix(key, "/") {
		key += "/"
	}
`, New: ""}},
		Tests:  []Test{{"./chapters/01-storage", "PrepareKey"}},
		Reason: `want "/registry/pods/"`,
	},
	{
		ID: "wrong-type", Title: "An update that arrives as the wrong thing", Chapter: "02-etcd3", Section: "What happened is not what you see",
		Kind: Find, Stars: 1, Minutes: 15,
		Symptom: "`kubectl get events -w --field-selector type=Warning` never says DELETED: when an Event turns from Warning to Normal, the client goes on showing it.",
		Goal:    "A watcher is told DELETED when an object stops matching its selector.",
		Look:    "Events have no cache, so their watch ends in this chapter's watchChan. Watch them with a selector and patch one.",
		Hints: []string{
			"The type of an event follows from two questions, and neither is \"what did the client do?\".",
			"Did the object match before, and does it match now? Look for the place where both answers meet.",
		},
		Rule:   5,
		Edits:  []Edit{{Dir: "chapters/02-etcd3", Symbol: "stream.transform", Old: "	case wasMatch:\n", New: "	case wasMatch && e.isDeleted:\n"}},
		Tests:  []Test{{"./chapters/02-etcd3", "TestTheTypeOfAnEventFollowsFromTheTwoMatches"}},
		Reason: `want ["DELETED a 4 web"]`,
		Record: "Revision 4 of",
	},
	{
		ID: "forgets-its-place", Title: "A reflector that forgets its place", Chapter: "03-reflector", Section: "One event",
		Kind: Find, Stars: 1, Minutes: 10,
		Symptom: "Each time a watch is renewed, every five to ten minutes, the informer is sent all changes since its first list again.",
		Goal:    "A watch that ended in an orderly way is opened again from the last version seen.",
		Look:    "Press *Drop* for the informer's connection after a few changes, and read which version the next watch asks for.",
		Hints: []string{
			"The reflector remembers one string. Who writes it, and when?",
			"The version must be remembered after each event, and only after the store has the event.",
		},
		Promise: "A watch is resumed from the last version seen: nothing is missed, nothing comes twice.",
		Edits: []Edit{{Dir: "chapters/03-reflector", Symbol: "watchHandler.recordResourceVersion", Old: `	h.r.setLastSyncResourceVersion(resourceVersion)
`, New: ""}},
		Tests:  []Test{{"./chapters/03-reflector", "TestHowAWatchEndsDecidesWhatIsAskedNext"}},
		Reason: "watch rv=6",
	},
	{
		ID: "gone-and-again", Title: "410, and 410, and 410", Chapter: "03-reflector", Section: "Following",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "After a laptop wakes from sleep its controller asks the server for the same version several times a second, and each answer is 410.",
		Goal:    "A reflector whose version is gone lists, once, and goes on from there.",
		Look:    "The story *410: the ring has wrapped* never ends: the same watch is opened again and again.",
		Hints: []string{
			"Which ends of a watch say something about the client's version, and which do not?",
			"Read the table above `Reflector.watch` line by line and compare it with `watchAgain`.",
		},
		Promise: "410 means that the history is gone: only a list can bridge the gap.",
		Edits: []Edit{{Dir: "chapters/03-reflector", Symbol: "Reflector.watchAgain", Old: `	case isExpiredError(err):
		// The version is not marked as unavailable: a list at it is still answered, by something newer.
		return false
`, New: `	case isExpiredError(err):
		return r.backOff(ctx, err.Error())
`}},
		Tests:  []Test{{"./chapters/03-reflector", "TestHowAWatchEndsDecidesWhatIsAskedNext"}},
		Reason: "list rv=6",
	},
	{
		ID: "hole-in-history", Title: "A hole in the history", Chapter: "04-watchcache", Section: "A watch begins",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "A client that was away for an hour resumes without an error. It shows two pods that were deleted meanwhile.",
		Goal:    "A watch from a version that the ring no longer reaches is refused with 410.",
		Look:    "Start with `-ring-capacity=10`, note a version, make eleven changes, and watch from the noted version: no 410.",
		Hints: []string{
			"A watch from N needs every event after N. How does the ring know whether it still has the first of them?",
			"The oldest event the ring holds has a version. Compare it with the version that is asked for.",
		},
		Promise: "A watch from N is told every change after N, or 410.",
		Edits: []Edit{{Dir: "chapters/04-watchcache", Symbol: "history.intervalLocked", Old: `	case listRV > 0 && !h.removedEventSinceRelist:
		// Nothing after the list is missing, and the list itself is not an event.
`, New: `	case listRV > 0:
`}},
		Tests:  []Test{{"./chapters/04-watchcache", "TestAWatchMayResumeExactlyAsFarBackAsTheRingReaches"}},
		Reason: "want Expired",
	},
	{
		ID: "it-was-always-there", Title: "It was always there", Chapter: "05-cachewatcher", Section: "What it means",
		Kind: Find, Stars: 1, Minutes: 10,
		Symptom: "A kubelet is told MODIFIED for a pod that it has never heard of, and ignores it: the pod stays Pending on its node.",
		Goal:    "A watcher is told ADDED the first time an object matches.",
		Look:    "Create a pod with the controllers running. The scheduler binds it; the kubelet's lane shows a square where a circle with a plus belongs.",
		Hints: []string{
			"The scheduler's update changes `spec.nodeName`. What did the kubelet's watcher match before it, and what after?",
			"Two booleans, four cases. Write the table down before you read the code.",
		},
		Rule:   5,
		Edits:  []Edit{{Dir: "chapters/05-cachewatcher", Symbol: "CacheWatcher.convertToWatchEvent", Old: "watch.Event{Type: watch.Added,", New: "watch.Event{Type: watch.Modified,"}},
		Tests:  []Test{{"./chapters/05-cachewatcher", "TestTheTypeOfAnEventFollowsFromTheTwoMatchesAlone"}},
		Reason: "want ADDED",
	},
	{
		ID: "closed-under-the-sender", Title: "Closed under the sender", Chapter: "06-cacher", Section: "The end of a dispatch",
		Kind: Find, Stars: 2, Minutes: 20,
		Symptom: "Under load, whenever a client goes away at the wrong moment, the server dies: `panic: send on closed channel`.",
		Goal:    "A watcher's `input` is closed only when no dispatch can be sending to it.",
		Look:    "Add five watchers, turn the traffic to 500 a second, and remove them one by one.",
		Hints: []string{
			"Who sends on `input`, and who closes it? The sender does not hold the lock while it sends.",
			"The dispatcher says when it begins and when it ends. What may a stop do in between?",
		},
		Rule: 4,
		Edits: []Edit{{Dir: "chapters/06-cacher", Symbol: "Cacher.stopWatcherLocked", Old: `	if c.dispatching {
		c.watchersToStop = append(c.watchersToStop, watcher)
		return
	}
`, New: ""}},
		Tests:  []Test{{"./chapters/06-cacher", "Stopp"}},
		Reason: "send on closed channel",
	},
	{
		ID: "the-silent-hour", Title: "The silent hour", Chapter: "06-cacher", Section: "Bookmarks",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "A controller watches one namespace, where little happens. Whenever its connection breaks it lists everything again, though its neighbours do not.",
		Goal:    "A watcher that asked for bookmarks is sent one every minute, whether its events come or not.",
		Look:    "Open a watch with bookmarks and a selector that matches nothing, and move the clock on by two minutes.",
		Hints: []string{
			"The version of a client that sees no events moves by one thing only.",
			"Bookmarks are due in buckets of one second. Who takes them out, and what is done with what was taken?",
		},
		Promise: "A watcher that asked for bookmarks is sent one about every minute.",
		Edits: []Edit{{Dir: "chapters/06-cacher", Symbol: "Cacher.pickBookmarkWatchersLocked", Old: `		c.watchersBuffer = append(c.watchersBuffer, watcher)
`, New: ""}},
		Tests:  []Test{{"./chapters/06-cacher", "Bookmark"}},
		Reason: "want BOOKMARK 3",
	},
	{
		ID: "one-slow-all-slow", Title: "One is slow, all are slow", Chapter: "06-cacher", Section: "One event goes out",
		Kind: Find, Stars: 3, Minutes: 25,
		Symptom: "Since last week one slow client makes every watch of the cluster late by a tenth of a second for each event, for as long as it stays slow.",
		Goal:    "Slow watchers cost all others at most 5 % of the time.",
		Look:    "The story *A watcher that does not read is closed*: look at the dispatcher's battery. When is it filled again?",
		Hints: []string{
			"The budget is an account: time flows in slowly, and is spent on waiting.",
			"What is in the account directly after everything was taken out of it?",
		},
		Promise: "The time budget grows by 50 ms a second and holds at most 100 ms: what was spent is gone.",
		Edits:   []Edit{{Dir: "chapters/06-cacher", Symbol: "timeBudget.takeAvailable", Old: "	t.budget = 0\n", New: ""}},
		Tests:   []Test{{"./chapters/06-cacher", "Budget"}},
		Reason:  "what was spent is gone",
		Record:  "the dispatcher may wait up to",
	},
	{
		ID: "flushes-too-late", Title: "The last event is always missing", Chapter: "08-handlers", Section: "The stream",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "`kubectl get pods -w` is always one change behind: the newest appears only when the next one happens.",
		Goal:    "When no further event waits, everything written is on its way to the client.",
		Look:    "Watch with kubectl and press *Change* once.",
		Hints: []string{
			"Bytes that were written are not bytes that were sent. Who sends them?",
			"While there is a backlog the server gathers events in one packet. How does it know that there is none?",
		},
		Promise: "A stream is flushed whenever no further event waits.",
		Edits:   []Edit{{Dir: "chapters/08-handlers", Symbol: "WatchServer.send", Old: "	if len(events) > 0 {\n", New: "	if len(events) == 0 {\n"}},
		Tests:   []Test{{"./chapters/08-handlers", "Flush|Watch"}},
		Reason:  "want [headers flush write write write flush]",
	},
	{
		ID: "eof-is-an-error", Title: "A goodbye that sounds like an accident", Chapter: "09-listwatch", Section: "Ending",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "Every five to ten minutes every informer of the fleet lists everything. The server's log shows nothing but timeouts that the clients asked for.",
		Goal:    "A stream that the server ends in an orderly way ends without an ERROR event.",
		Look:    "Press *Drop* for a client's connection: a triangle enters its reflector, and a list follows.",
		Hints: []string{
			"A watch that ends cleanly is resumed; a watch that ends with an ERROR is not. Who makes the ERROR?",
			"Look for the function that tells the ends every stream has from those the consumer should hear of.",
		},
		Promise: "The end of a stream says nothing about the client's version: it is resumed, not listed again.",
		Edits:   []Edit{{Dir: "chapters/09-listwatch", Symbol: "StreamWatcher.isUnexpected", Old: "	return !isStreamEnd(err)\n", New: "	return true\n"}},
		Tests:   []Test{{"./chapters/09-listwatch", "Stream"}},
		Reason:  `got "ERROR 500`,
	},
	{
		ID: "ghost", Title: "The pod that would not leave", Chapter: "10-deltafifo", Section: "A list comes in",
		Kind: Find, Stars: 2, Minutes: 20,
		Symptom: "A pod was deleted while the controller was disconnected. The controller goes on counting it, until it is restarted.",
		Goal:    "After a list, what is known and not listed is deleted, with a tombstone.",
		Look:    "Start with `-fifo=delta` and play the story *The deletion that no watch saw*: no OnDelete comes.",
		Hints: []string{
			"A list says what is there. It does not say what is not there any more: the client has to work that out.",
			"The queue knows which keys the store holds. When does it ask?",
		},
		Promise: "A deletion that was missed is made up for at the next list.",
		Edits: []Edit{{Dir: "chapters/10-deltafifo", Symbol: "DeltaFIFO.deletionsLocked", Body: `	var deletions []DeletedFinalStateUnknown
	for _, key := range f.queue {
		if _, isListed := listed[key]; isListed {
			continue
		}
		obj := f.items[key].Newest().Object
		if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		deletions = append(deletions, DeletedFinalStateUnknown{Key: key, Obj: obj})
	}
	return deletions`}},
		Tests:  []Test{{"./chapters/10-deltafifo", "TestWhatIsSeenOfWhatHappenedWhileBusy"}},
		Reason: "Deleted a@1?",
	},
	{
		ID: "two-workers", Title: "Two workers, one key", Chapter: "14-controllers", Section: "A key goes in, a key comes out",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "With four workers the controller now and then creates a child object twice. With one worker it never does.",
		Goal:    "A key is in the hands of at most one worker.",
		Look:    "Look at the workqueue of the scheduler while pods are changed quickly: the same key is handed out twice.",
		Hints: []string{
			"A key that is being worked on and is added again must not be lost, and must not be handed out.",
			"There are three sets. Which one does Add ask before it appends to the queue?",
		},
		Promise: "A key is never processed by two workers at once.",
		Edits: []Edit{{Dir: "chapters/14-controllers", Symbol: "Queue.addLocked", Old: `		// A key that is being worked on only becomes dirty. Were it queued too, a second worker could take it, and the two
		// would act on one object at once; so its Done queues it.
		if !q.processing.Has(key) {
			q.queue = append(q.queue, key)
			q.cond.Signal()
		}
`, New: `		q.queue = append(q.queue, key)
		q.cond.Signal()
`}},
		Tests:  []Test{{"./chapters/14-controllers", "TestNoKeyIsInTwoHandsAtOnce|TestAddsWhileWorking"}},
		Reason: "a second worker could take it",
	},
	{
		ID: "lost-wish", Title: "The change that was never reconciled", Chapter: "14-controllers", Section: "A key goes in, a key comes out",
		Kind: Find, Stars: 1, Minutes: 10,
		Symptom: "Some new pods stop half-way, for no reason in any log. What changes while it is being reconciled has no effect until the next resync.",
		Goal:    "A key that was added while a worker held it is worked on once more.",
		Look:    "Create six pods. One or two stay ContainerCreating: the kubelet's own write came back while it was still at work.",
		Hints: []string{
			"A worker that is at work has read the cache already. What must happen to an Add that comes now?",
			"Done is more than letting go.",
		},
		Promise: "Every Add is followed by a reconciliation that begins after it.",
		Edits: []Edit{{Dir: "chapters/14-controllers", Symbol: "Queue.Done", Old: `	if q.dirty.Has(key) {
		q.dirty.Delete(key)
		q.addLocked(key)
		return
	}
`, New: "	q.dirty.Delete(key)\n"}},
		Tests:  []Test{{"./chapters/14-controllers", "TestAddsWhileWorkingAreExactlyOneMoreRun"}},
		Reason: "queue is empty",
	},
	{
		ID: "last-writer-wins", Title: "The update that was written over", Chapter: "07-registry", Section: "Update",
		Kind: Find, Stars: 1, Minutes: 10,
		Symptom: "Two people run `kubectl edit` on the same pod. Both are told that it was edited, and one of the two changes is gone.",
		Goal:    "A PUT that names an older version than the stored one is answered with 409.",
		Look:    "Save the output of `kubectl get pod a -o yaml`, press *Change*, then `kubectl replace` with what you saved: a commit, where a refusal belongs.",
		Hints: []string{
			"A resource version in a PUT is a claim: \"I have seen this state\". Where is the claim checked?",
			"The update is a function of the stored object. It is handed both versions.",
		},
		Promise: "A writer that names a version writes only over that version.",
		Edits: []Edit{{Dir: "chapters/07-registry", Symbol: "update.checkVersion", Old: `	if accessor.GetResourceVersion() == "" {
		accessor.SetResourceVersion(old.GetResourceVersion())
		return nil
	}
	if accessor.GetResourceVersion() != old.GetResourceVersion() {
		return apierrors.NewConflict(resource, u.name, errors.New(optimisticLockErrorMsg))
	}
`, New: `	accessor.SetResourceVersion(old.GetResourceVersion())
`}},
		Tests:  []Test{{"./chapters/07-registry", "TestUpdateOfAnOldVersionConflicts|TestUpdateWithoutAVersionOverwrites"}},
		Reason: "want a status 409 Conflict",
	},
	{
		ID: "value-left-behind", Title: "The pod that is on two nodes", Chapter: "11-indexer", Section: "An object is written",
		Kind: Find, Stars: 1, Minutes: 10,
		Symptom: "A controller counts pods by label through an index. After `kubectl label --overwrite` a pod is counted under its old value and under its new one.",
		Goal:    "An object is found under the values that it has now, and under no other.",
		Look:    "The indexer's sets in the client half: change a pod's label and look for its key.",
		Hints: []string{
			"An index maps a value to a set of keys. An update may change the value.",
			"The store knows the old object and the new one. What is done with the values of each?",
		},
		Promise: "Every index equals one that is built from the stored objects.",
		Edits: []Edit{{Dir: "chapters/11-indexer", Symbol: "storeIndex.updateSingle", Old: `	for _, value := range oldValues {
		idx.remove(value, key)
	}
`, New: ""}},
		Tests:  []Test{{"./chapters/11-indexer", "TestIndicesFollowEveryWrite"}},
		Reason: "default/b",
	},
	{
		ID: "empty-sets", Title: "Memory that grows with the past", Chapter: "11-indexer", Section: "An object is written",
		Kind: Find, Stars: 2, Minutes: 10,
		Symptom: "A controller indexes pods by the name of their job. Jobs come and go, there are never more than a hundred, and the controller's memory grows for weeks.",
		Goal:    "A value without objects takes no room in an index.",
		Look:    "Nothing on the stage: the store answers every question correctly. Ask the index for its values.",
		Hints: []string{
			"No answer is wrong. What else does a map hold than answers?",
			"When the last key leaves a set, what remains?",
		},
		Promise: "No set in an index is empty.",
		Edits: []Edit{{Dir: "chapters/11-indexer", Symbol: "index.remove", Old: `	if len(keys) == 0 {
		delete(i, value)
	}
`, New: ""}},
		Tests:  []Test{{"./chapters/11-indexer", "TestValuesOfDeletedObjectsVanish"}},
		Reason: "node-7",
	},
	{
		ID: "forgets-its-ring", Title: "The handler that is told half of it", Chapter: "12-processor", Section: "The clerk at the door",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "A handler that takes a second for each pod is told of the first pod of a deployment and of the last ones. It never hears of those in between.",
		Goal:    "A handler is told everything, in order, however long it takes.",
		Look:    "Close the gate at *handler* and change pods: the listener's ring fills. Open the gate: what becomes of the ring?",
		Hints: []string{
			"What arrives while the handler is busy goes into the ring. Which line takes it out again?",
			"pop has one notification in hand. Where does the next one come from, once the handler has taken it?",
		},
		Promise: "What waits in a listener's ring reaches its handler, in order.",
		Edits:   []Edit{{Dir: "chapters/12-processor", Symbol: "processorListener.pop", Old: "			inHand = l.readPending()\n", New: "			inHand = nil\n"}},
		Tests:   []Test{{"./chapters/12-processor", "TestASleepingHandlerDelaysNobodyElse"}},
		Reason:  "want 100",
	},
	{
		ID: "told-too-early", Title: "The handler is ahead of the store", Chapter: "13-informer", Section: "What a delta means",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "A controller's handler is told of a pod and puts its key into the workqueue. Now and then the worker asks the lister for that key and is told NotFound.",
		Goal:    "When a handler is told of a change, the store holds it, or something newer.",
		Look:    "Follow one change in the client half: does the indexer's record come before the handler's? The promises panel says the same.",
		Hints: []string{
			"Two things happen to every delta. In which order?",
			"A transaction says afterwards what was there before. It has to run before anything is told.",
		},
		Rule: 8,
		Edits: []Edit{{Dir: "chapters/13-informer", Symbol: "deltaProcessor.processDeltasInBatch", Old: `	p.clientState.Transaction(p.txns)
	for i := range p.txns {
		p.notify(&p.txns[i], isInInitialList)
	}
`, New: `	for i := range p.txns {
		p.txns[i].Old, p.txns[i].Existed, _ = p.clientState.GetByKey(p.txns[i].Key)
		p.notify(&p.txns[i], isInInitialList)
	}
	p.clientState.Transaction(p.txns)
`}},
		Tests:  []Test{{"./chapters/13-informer", "TestTheStoreComesFirst|TestStoreIsNeverBehindTheHandler"}},
		Reason: "told of a@1, the store does not hold it yet",
	},
	{
		ID: "told-twice", Title: "Told twice, or not at all", Chapter: "13-informer", Section: "A handler comes",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "A handler that is added while pods come and go is sometimes told OnAdd twice for one pod, and sometimes never hears of another.",
		Goal:    "A late handler is told what the store holds and every change after that: each thing once.",
		Look:    "Nothing on the stage: the moment is too short for a human. The check makes it long: it adds a handler when the store has changed and no handler has been told.",
		Hints: []string{
			"A late handler gets a copy of the store, and from then on every change. Is there a moment between the two?",
			"Who may change the store while the copy is made? Look at what handleDeltas holds while it works.",
		},
		Promise: "Reading the store and adding the listener are one step.",
		Edits: []Edit{{Dir: "chapters/13-informer", Symbol: "SharedIndexInformer.AddEventHandlerWithOptions", Old: `	// From here until the listener is added the store stands still: what it holds now and what is distributed from
	// then on is everything, once.
	s.deltasMu.Lock()
	defer s.deltasMu.Unlock()
	return s.processor.AddListener(`, New: `	return s.processor.AddListener(`}},
		Tests:  []Test{{"./chapters/13-informer", "TestAHandlerThatComesBetweenStoreAndTellingHearsEverythingOnce|TestLateHandlersKnowWhatTheStoreHolds|TestTheStoreStandsStillUntilAHandlerIsAdded"}},
		Reason: "was told OnAdd 2 times for a",
	},
	{
		ID: "places-of-the-dead", Title: "The places of the dead", Chapter: "14-controllers", Section: "The scheduler",
		Kind: Find, Stars: 2, Minutes: 15,
		Symptom: "The scheduler was cut off for a minute, and all pods of node-1 were deleted meanwhile. Since then it puts every new pod on node-2, though node-1 is empty.",
		Goal:    "A pod whose deletion the scheduler missed gives its place back.",
		Look:    "Play the story *The deletion that no watch saw* and read the scheduler's counts in its inspector afterwards.",
		Hints: []string{
			"A deletion that was missed is told with a tombstone. What does a tombstone hold for certain?",
			"Who frees a place on a node, and for which kinds of deletion?",
		},
		Promise: "A handler treats a tombstone as a deletion: the key is all it needs.",
		Edits: []Edit{{Dir: "chapters/14-controllers", Symbol: "Scheduler.OnDelete", Old: `	s.cache.remove(deleted.GetKey())
`, New: `	if deleted.FinalStateUnknown == nil {
		s.cache.remove(podKey(deleted.OptionalObj))
	}
`}},
		Tests:  []Test{{"./chapters/14-controllers", "TestASchedulerFreesThePlaceOfAPodWhoseDeletionItMissed"}},
		Reason: "nodes hold",
	},
}
