package mutations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/require"
	"listwatch/internal/text/source"
)

// mutation is one place in the program, what is written there instead, and the test that must fail then.
type mutation struct {
	dir    string // below the root
	symbol string // "function" or "Type.method"
	old    string // found once in the symbol
	new    string
	test   string
}

const root = "../../../.."

// mutated returns the path of the file in which the symbol is, and the text with the mutation.
func (m mutation) mutated() (file string, text []byte, err error) {
	tree, err := source.Parse(os.DirFS(filepath.Join(root, m.dir)))
	if err != nil {
		return "", nil, err
	}
	declared, err := tree.In(".").Find(m.symbol, "")
	if err != nil {
		return "", nil, err
	}
	from, to, ok := declared.Body()
	if !ok {
		return "", nil, fmt.Errorf("%s has no body", m.symbol)
	}
	text = declared.File.Src
	if n := bytes.Count(text[from:to], []byte(m.old)); n != 1 {
		return "", nil, fmt.Errorf("%s holds %q %d times, want once", m.symbol, m.old, n)
	}
	body := bytes.Replace(text[from:to], []byte(m.old), []byte(m.new), 1)
	text, err = format.Source(bytes.Join([][]byte{text[:from], body, text[to:]}, nil))
	return filepath.Join(root, m.dir, declared.File.Path), text, err
}

// caught runs the test with the mutated file in the place of the other.
func (m mutation) caught(t *testing.T, file string, text []byte) {
	file, err := filepath.Abs(file)
	require.NoError(t, err)
	other, overlay := filepath.Join(t.TempDir(), "mutated.go"), filepath.Join(t.TempDir(), "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: other}})
	require.NoError(t, err)
	for name, text := range map[string][]byte{other: text, overlay: replace} {
		require.NoError(t, os.WriteFile(name, text, 0o600))
	}
	cmd := exec.Command("go", "test", "-vet=off", "-timeout=5m", "-overlay="+overlay, "-run=^"+m.test+"$", "./"+m.dir)
	cmd.Dir = root
	said, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "--- FAIL: "+m.test) {
		t.Errorf("%q in the place of %q: %s does not fail: %v\n%s", m.new, m.old, m.test, err, said)
	}
}

func TestEveryMutationIsCaught(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.symbol, func(t *testing.T) {
			file, text, err := m.mutated()
			require.NoError(t, err)
			declaration := "func " + m.test + "("
			if exec.Command("grep", "-rqF", "--include=*_test.go", declaration, filepath.Join(root, m.dir)).
				Run() != nil {
				t.Fatalf("%s has no test %s", m.dir, m.test)
			}
			if os.Getenv("FULL") != "" {
				m.caught(t, file, text)
			}
		})
	}
}

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
		"TestAnEventIsEncodedOnceForAllWatchersThatWantTheSameForm",
	},
	{
		"chapters/06-cacher", "Cacher.pickTriggerLocked", "previous != value", "previous == value",
		"TestAMoveReachesTheWatchersOfBothValuesAndNoOthers",
	},
	{
		"chapters/06-cacher", "CacheDelegator.shouldDelegateList", "withRev > 0, single",
		"withRev > 0, single, opts.Predicate.Limit > 0",
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
		"internal/server/etcdnode", "checkFolder", `"etcd-1"`, `"etcd-0"`,
		"TestAFolderThatThreeNodesMadeIsRefused",
	},
	{"chapters/09-listwatch", "withRetry.before", "!throttled ||", "true ||", "TestClientLimitsItself"},
	{
		"chapters/10-deltafifo", "dedupDeltas",
		"if _, unknown := deltas[n-2].Object.(DeletedFinalStateUnknown); unknown {", "if true {",
		"TestWhatIsSeenOfWhatHappenedWhileBusy",
	},
	{
		"chapters/10-deltafifo", "DeltaFIFO.unqueuedLocked", ", f.isQueuedLocked", ", func(string) bool { return false }",
		"TestWhatIsSeenOfWhatHappenedWhileBusy",
	},
	{"chapters/11-indexer", "index.remove", "len(keys) == 0", "false", "TestValuesOfDeletedObjectsVanish"},
	{"chapters/11-indexer", "Lister.List", "obj.GetNamespace() == l.namespace", "true", "TestLister"},
	{
		"chapters/12-processor", "SharedProcessor.handAround", "sync && !listener.syncing", "false",
		"TestUpdatesThatChangeNothingAreForListenersThatAreSyncing",
	},
	{
		"chapters/14-controllers", "DelayingQueue.insert", "entry.readyAt.Before(existing.readyAt)", "true",
		"TestTheEarlierOfTwoDelaysCountsAndFiresOnce",
	},
	// What a kubectl of 1.26 asks for, which only `make full` plays.
	{
		"internal/server/apiserver", "newOpenAPI", ", mediaTypeOpenAPIv2ProtoDeprecated: proto", "",
		"TestTheOlderDocumentIsToBeHadAsClientsAskForIt",
	},
	{
		"internal/server/apiserver", "discovery.add", "ShortNames: r.ShortNames, Categories: r.Categories})",
		"Categories: r.Categories})", "TestDiscoverySaysTheSameInBothForms",
	},
}
