package mutations

// mutations are mistakes that a change could make, each with the test that is there to find it.
var mutations = []mutation{
	{
		"chapters/02-etcd3", "nextLimit", "min(2*limit, maxLimit)", "limit",
		"TestPagesDoubleUntilARareObjectIsFound",
	},
	{
		"chapters/02-etcd3", "nextLimit", "min(2*limit, maxLimit)", "2*limit",
		"TestLimitsGrowToTheBoundOnly",
	},
	{
		"chapters/02-etcd3", "stream.sync", "response.Revision < s.initialRev", "false",
		"TestInitialStateFromTheFutureIsTooLarge",
	},
	{
		"chapters/03-reflector", "watchHandler.veryShort", "h.eventCount > 0", "false",
		"TestHowAWatchEndsDecidesWhatIsAskedNext",
	},
	{
		"chapters/03-reflector", "Reflector.pageSize", ` && resourceVersion != "0"`, "",
		"TestHowAWatchEndsDecidesWhatIsAskedNext",
	},
	{
		"chapters/04-watchcache", "history.resizeLocked", "capacity/4", "capacity/3",
		"TestTheRingKeepsItsSizeWhileTheNewestQuarterIsFresh",
	},
	{
		"chapters/04-watchcache", "history.resizeLocked", "capacity/4", "capacity/5",
		"TestTheRingIsHalvedWhenTheNewestQuarterReachesBackFarEnough",
	},
	{
		"chapters/04-watchcache", "history.intervalLocked", "rv < oldest-1", "rv < oldest",
		"TestAWatchMayResumeExactlyAsFarBackAsTheRingReaches",
	},
	{
		"chapters/04-watchcache", "history.intervalLocked", " && !h.removedEventSinceRelist", "",
		"TestTheListsVersionIsTheBoundUntilSomethingIsDropped",
	},
	{
		"chapters/05-cachewatcher", "CacheWatcher.sendResult", "return false", "return true",
		"TestWhatIsDeliveredIsAPrefix",
	},
	{
		"chapters/05-cachewatcher", "CacheWatcher.isDue", "event.ResourceVersion > w.floor",
		"event.ResourceVersion >= w.floor",
		"TestAnEventThatIsInTheIntervalAndInInputIsSentOnce",
	},
	{
		"chapters/05-cachewatcher", "CacheWatcher.convertToWatchEvent", "case now && before:", "case now:",
		"TestTheTypeOfAnEventFollowsFromTheTwoMatchesAlone",
	},
	{
		"chapters/06-cacher", "Cacher.dispatchEvent",
		"if event.Type != watch.Bookmark {", "if event.Type != watch.Bookmark && len(c.watchersBuffer) >= 2 {",
		"TestAnEventForOneWatcherKeepsItsEncodingsToo",
	},
	{
		"chapters/06-cacher", "Cacher.pickTriggerLocked", "previous != value", "previous == value",
		"TestAMoveReachesTheWatchersOfBothValuesAndNoOthers",
	},
	{
		"chapters/06-cacher", "CacheDelegator.shouldDelegateList", "pred.Limit > 0 && rv > 0", "pred.Limit > 0",
		"TestWhoAnswersAList",
	},
	{
		"chapters/08-handlers", "watchEncoder.dropHeaders", "|| e.options.NoHeaders", "|| true",
		"TestOnlyTheFirstTableHasHeadersAndErrorsAreNoTables",
	},
	{
		"chapters/08-handlers", "WatchServer.send", "len(events) > 0", "false",
		"TestABacklogIsFlushedOnce",
	},
	{
		"chapters/09-listwatch", "withRetry.decide", "w.attempts > maxRetries", "w.attempts > maxRetries+1",
		"TestRetries",
	},
	{
		"chapters/15-pipeline", "Pipeline.Run", "p.runClient", "p.Client.Run",
		"TestNoClientIsSentAwayAtTheStart",
	},
	{
		"internal/server/etcdnode", "checkNodes", "made == 1 && !lone", "true",
		"TestAFolderOfAnotherNumberOfNodesIsRefused",
	},
	{"chapters/09-listwatch", "withRetry.before", "!throttled ||", "true ||", "TestClientLimitsItself"},
	{
		"chapters/10-deltafifo", "dedupDeltas",
		"if _, unknown := deltas[n-2].Object.(DeletedFinalStateUnknown); unknown {", "if true {",
		"TestWhatIsSeenOfWhatHappenedWhileBusy",
	},
	{
		"chapters/10-deltafifo", "RealFIFO.deletionsLocked", " || last[key].Type == Deleted", "",
		"TestWhatIsSeenOfWhatHappenedWhileBusy",
	},
	{"chapters/11-indexer", "index.remove", "len(keys) == 0", "false", "TestValuesOfDeletedObjectsVanish"},
	{"chapters/11-indexer", "appendMatching", "accessor.GetNamespace() == namespace", "true", "TestLister"},
	{
		"chapters/12-processor", "SharedProcessor.handAround", "sync && !listener.syncing", "false",
		"TestUpdatesThatChangeNothingAreForListenersThatAreSyncing",
	},
	{
		"chapters/14-controllers", "DelayingQueue.insert", "entry.readyAt.Before(waiting.readyAt)", "true",
		"TestTheEarlierOfTwoDelaysCountsAndFiresOnce",
	},
}
