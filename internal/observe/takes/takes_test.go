package takes

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/check/sandboxtest"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/play/scenario"
)

// check fails the test unless the take is small, has no gap, shows its object, and has the expected anomalies.
func check(t *testing.T, take Take, file []byte) {
	t.Helper()
	assert.True(t, len(file) < 145_000, "%d bytes, want less than 145 kB", len(file))
	rec := require.Value(recording.Read(t.Context(), bytes.NewReader(file)))(t)
	records := rec.Records
	rec.Start.Apply(records)
	assert.Equal(t, 0, rec.Start.Lost, "lost")
	anomalies, keyed := 0, false
	for i := range records {
		keyed = keyed || records[i].Key != "" && probe.ObjectKey(records[i].Key) == take.Key
		if records[i].Anomaly() {
			anomalies++
		}
	}
	isStory := strings.HasPrefix(take.Name, StoryPrefix)
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

// shootStory plays a story on a whole pipeline in a bubble, and returns the recording up to the last beat's rest.
func shootStory(t *testing.T, story *scenario.Story) (file []byte) {
	sandboxtest.Run(t, 1<<16, func(t *testing.T, w *sandboxtest.Fixture) {
		world := &scenario.Env{Pipeline: w.Pipeline, Sandbox: w.Sandbox, Log: w.Log, Probe: w.Probe, Clock: w.Clock}
		if story.Alone != "" {
			world.Operator = w
		}
		seen := require.Value(world.Play(t.Context(), story.ID))(t)
		require.Equal(t, "", seen.Untold)
		synctest.Wait()
		file = develop(t, w.Log, seen.From, seen.Beats[len(seen.Beats)-1].To)
	})
	return file
}

// TestMakeStories checks that every story has its take. With -update it makes the takes and keeps them. With FULL set
// it makes them and keeps nothing. Otherwise it makes none, because tests of internal/play/scenario play every story.
func TestMakeStories(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.ID, func(t *testing.T) {
			take, ok := Find(StoryPrefix + each.ID)
			require.True(t, ok || *update, "the story %q has no take: go test ./internal/observe/takes "+
				"-run TestMakeStories/%s -update", each.Title, each.ID)
			take.Name = StoryPrefix + each.ID
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	numbersHeading = "### The story in numbers\n"
	numbersTable   = "| station | what happens |\n|---|---|\n"
	numbersVersion = 9 // the version of the first pod's binding
)

// numbersPoints are the points of one change that the table shows, in path order.
var numbersPoints = []probe.Point{probe.TxnCommitted, probe.RingAppend, probe.DispatchStarted, probe.ReflectorReceived,
	probe.IndexerUpdated}

// numbersOrder returns a record's place in the table. The cache's own reflector has the same place as etcd's commit.
func numbersOrder(r probe.Record) int {
	if r.Subject == "cacher" && r.Point == probe.ReflectorReceived {
		return slices.Index(numbersPoints, probe.TxnCommitted)
	}
	return slices.Index(numbersPoints, r.Point)
}

// playNumbers creates a pod, and returns the moments of its binding as a Markdown table, in the order of the path.
func playNumbers(t *testing.T) string {
	var out strings.Builder
	out.WriteString(numbersTable)
	sandboxtest.Run(t, 1<<16, func(t *testing.T, w *sandboxtest.Fixture) {
		first := w.Log.Last()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}}}
		client := w.Pipeline.Client.NewClient("kubectl", nil)
		require.NoError(t, client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
		time.Sleep(4 * time.Second) // long enough for the pod to be bound and to run
		synctest.Wait()
		records, _ := w.Log.Since(nil, first, 1<<16)
		told := slices.DeleteFunc(slices.Clone(records), func(r probe.Record) bool {
			return r.Resource != "pods" || r.RV != numbersVersion || !slices.Contains(numbersPoints, r.Point)
		})
		slices.SortStableFunc(told, func(a, b probe.Record) int {
			return cmp.Or(cmp.Compare(numbersOrder(a), numbersOrder(b)), cmp.Compare(a.Subject, b.Subject))
		})
		for _, r := range told {
			fmt.Fprintf(&out, "| %s | %s |\n", r.Point.Info().Station, r.Sentence())
		}
	})
	return out.String()
}

// TestTheStoryInNumbersIsOfThisProgram compares the numbers in chapter 15 with a run. With -update it writes them.
func TestTheStoryInNumbersIsOfThisProgram(t *testing.T) {
	table := playNumbers(t)
	assert.Equal(t, table, playNumbers(t), "another time")
	file := filepath.Join("..", "..", "..", "chapters", "15-pipeline", "README.md")
	text := string(require.Value(os.ReadFile(file))(t))
	before, rest, titled := strings.Cut(text, numbersHeading)
	lead, rest, begun := strings.Cut(rest, numbersTable)
	_, rest, ended := strings.Cut(rest, "\n\n")
	require.True(t, titled && begun && ended && !strings.Contains(lead, "\n## "), "no table below %q", numbersHeading)
	want := before + numbersHeading + lead + table + "\n" + rest
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	assert.True(t, *update || want == text, "%s is stale: go test ./internal/observe/takes -run Numbers -update\n%s",
		file, table)
}

// TestTheTakesShowWhatTheyShowed compares every take with takes.sum: a hash of the picture at each keyframe, and the
// record at which each beat of its story rests. A change to writing, folding or searching records must not change
// these. With -update it writes the file again, for takes that were recorded again or should look different.
func TestTheTakesShowWhatTheyShowed(t *testing.T) {
	const file = "takes.sum"
	var sum strings.Builder
	size := 0
	for _, take := range Every() {
		size += len(take.File())
		state, records, err := take.Load()
		require.NoError(t, err)
		frames := fold.NewKeyframes(uint64(max(50, len(records)/20)))
		last := uint64(0)
		for i := range records {
			frames.Fold(state, records[i:i+1])
			if frame, _ := frames.At(records[i].Seq); frame.Seq != last {
				last = frame.Seq
				fmt.Fprintln(&sum, take.Name, "picture", last, hashOf(t, frame.State))
			}
		}
		if story := scenario.Find(strings.TrimPrefix(take.Name, StoryPrefix)); story != nil {
			beats := require.Value(story.Locate(records))(t)
			assert.NoError(t, story.Shows(records))
			for i, beat := range beats {
				fmt.Fprintln(&sum, take.Name, "beat", i+1, "rests at", beat.To, "because of", beat.Behind)
			}
		}
	}
	assert.True(t, size <= 600_000, "all takes together: %d bytes, want at most 600 kB", size)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(sum.String()), 0o644))
	}
	want := require.Value(os.ReadFile(file))(t)
	assert.NoDiff(t, strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n"),
		strings.Split(sum.String(), "\n"),
		"%s is of other takes: if yours are meant, go test ./internal/observe/takes -run TestTheTakesShow -update",
		file)
}

// hashOf returns the beginning of the hash of a picture's JSON without its texts, whose wording may change.
func hashOf(t *testing.T, written []byte) string {
	t.Helper()
	var picture any
	require.NoError(t, json.Unmarshal(written, &picture))
	var strip func(node any)
	strip = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			delete(node, "text")
			delete(node, "texts")
			for _, each := range node {
				strip(each)
			}
		case []any:
			for _, each := range node {
				strip(each)
			}
		}
	}
	strip(picture)
	hash := sha256.Sum256(require.Value(json.Marshal(picture))(t))
	return fmt.Sprintf("%x", hash[:6])
}
