package takes

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/check/sandboxtest"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/play/scenario"
)

// signatures are the points without which a take does not tell its story.
var signatures = map[string][]probe.Point{
	"start": {probe.WatchChanOpened, probe.CacheReplaced, probe.CacherReady, probe.WatcherAdded,
		probe.ReflectorWatching, probe.ReflectorSynced},
	"life": {probe.RequestReceived, probe.TxnCommitted, probe.Etcd3IncomingSent, probe.RingAppend, probe.StoreUpdate,
		probe.IncomingReceived, probe.DispatchStarted, probe.InputSent, probe.FrameWritten, probe.FrameDecoded,
		probe.HandlerCalled, probe.HandlerReturned},
	"busy": {probe.RingAppend, probe.DispatchStarted, probe.ResultBlocked, probe.WorkDone,
		probe.HandlerReturned},
	"ring":                  {probe.RingAppend, probe.TxnCommitted},
	"slow":                  {probe.DispatchBlocked, probe.WatcherForced, probe.InputBlocked},
	"lab-hole-in-history":   {probe.RingAppend, probe.WatcherAdded},
	"lab-build-the-table":   {probe.InputReceived, probe.ResultSent},
	"lab-one-slow-all-slow": {probe.DispatchBlocked, probe.ResultSent},
	"lab-build-replace":     {probe.ReflectorWatchEnded, probe.ReflectorSynced, probe.IndexerUpdated},
	"lab-build-pop":         {probe.HandlerCalled, probe.HandlerReturned},
	"lab-lost-wish":         {probe.WorkAdded, probe.WorkGot, probe.WorkDone},
}

// check holds what every take must be: small, without a gap, and true to its title.
func check(t *testing.T, take Take, file []byte) {
	t.Helper()
	assert.True(t, len(file) < 130_000, "%d bytes, want less than 130 kB", len(file))
	rec := require.Value(recording.Read(t.Context(), bytes.NewReader(file)))(t)
	records := rec.Records
	rec.Start.Apply(records)
	assert.Equal(t, 0, rec.Start.Lost, "lost")
	seen := map[probe.Point]bool{}
	anomalies, keyed := 0, false
	for i := range records {
		seen[records[i].Point] = true
		keyed = keyed || records[i].Key != "" && probe.ObjectKey(records[i].Key) == take.Key
		if records[i].Anomaly() {
			anomalies++
		}
	}
	isStory := strings.HasPrefix(take.Name, StoryPrefix)
	for _, point := range signatures[take.Name] {
		assert.True(t, seen[point], "%s does not happen in it", point)
	}
	wantAnomaly := slices.Contains([]string{"ring", "slow", LabPrefix + "one-slow-all-slow",
		LabPrefix + "build-replace"}, take.Name)
	assert.False(t, !isStory && wantAnomaly != (anomalies > 0), "%d anomalies", anomalies)
	assert.True(t, keyed || take.Key == "" || take.Name == "start", "nothing happens to %s", take.Key)
	t.Logf("%s: %d records, %d bytes", take.Name, len(records), len(file))
}

func TestEveryTakeOfTheRepositoryStillReplays(t *testing.T) {
	for _, take := range Every() {
		t.Run(take.Name, func(t *testing.T) {
			check(t, take, take.File())
			found, ok := Find(take.Name)
			assert.True(t, ok && found == take, "found is %v", found)
			_, scripted := scripts[take.Name]
			played := strings.HasPrefix(take.Name, StoryPrefix)
			assert.True(t, scripted != played, "it has no script, or no story")
			assert.True(t, take.Title != "" || strings.HasPrefix(take.Name, StoryPrefix), "it has no title")
		})
	}
	assert.Equal(t, len(All)+len(scenario.All)+len(Broken), len(Every()), "files")
}

// shootStory plays a story on a whole pipeline in a bubble, and returns the recording: it ends where the last beat
// rests.
func shootStory(t *testing.T, story *scenario.Story) (file []byte) {
	sandboxtest.Run(t, 1<<16, func(t *testing.T, w *sandboxtest.Fixture) {
		world := &scenario.Env{Pipeline: w.Pipeline, Sandbox: w.Sandbox, Log: w.Log, Probe: w.Probe, Clock: w.Clock}
		if story.Alone != "" {
			world.Operator = w
		}
		seen := require.Value(world.Play(t.Context(), story.ID))(t)
		require.Equal(t, "", seen.Untold)
		synctest.Wait()
		file = sandboxtest.Develop(t, w.Log, seen.From, seen.Beats[len(seen.Beats)-1].To)
	})
	return file
}

// TestMakeStories holds that every story has its take. With -update it makes them again and keeps them, in the heavy
// form it only makes them: that every story can be played in a bubble, and has its beats, is what the tests of
// internal/play/scenario hold.
func TestMakeStories(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.ID, func(t *testing.T) {
			take, ok := Find(StoryPrefix + each.ID)
			require.True(t, ok, "the story %q has no take", each.Title)
			if !*update && os.Getenv("FULL") == "" {
				return
			}
			file := shootStory(t, &each)
			check(t, take, file)
			if *update {
				require.NoError(t, os.WriteFile(take.Name+Suffix, file, 0o644))
			}
		})
	}
}

// TestEveryBeatStandsInItsTake finds the beats of every story in the take that the program brings along.
func TestEveryBeatStandsInItsTake(t *testing.T) {
	size := 0
	for _, take := range Every() {
		size += len(take.File())
		id, ok := strings.CutPrefix(take.Name, StoryPrefix)
		if !ok {
			continue
		}
		story := scenario.Find(id)
		_, records, err := take.Load()
		require.True(t, story != nil && err == nil, "the story of the take %s: %v, %v", id, story, err)
		_, err = story.Locate(records)
		assert.NoError(t, cmp.Or(err, story.Shows(records)))
	}
	assert.True(t, size <= 600_000, "all takes together: %d bytes, want at most 600 kB", size)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
