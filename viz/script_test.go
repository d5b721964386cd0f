//go:build !race

// The scripts' tests: one goroutine runs the page's own code in an engine, where the race detector finds nothing and
// takes ten times as long. `make test` runs this package with it and without.

package viz

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

// engine runs modules of the page that know no document, in a Go engine: no browser is needed to hold them against
// ours.
type engine struct {
	vm *goja.Runtime
}

// newEngine loads modules by room and name, each under the name it has in modules.
func newEngine(t *testing.T, modules map[string]string) *engine {
	t.Helper()
	var entry strings.Builder
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		fmt.Fprintf(&entry, "export * as %s from %q;\n", name, "./"+modules[name])
	}
	built := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: entry.String(), ResolveDir: "."},
		Bundle: true, Format: api.FormatIIFE, GlobalName: "page", Target: api.ES2017,
		Supported: map[string]bool{"bigint": true},
	})
	for _, problem := range built.Errors {
		t.Fatalf("%s: %+v", problem.Text, problem.Location)
	}
	e := &engine{vm: goja.New()}
	e.vm.SetFieldNameMapper(goja.UncapFieldNameMapper())
	_, err := e.vm.RunString(string(built.OutputFiles[0].Contents))
	require.NoError(t, err)
	return e
}

// run evaluates an expression, and returns what it came to as T.
func run[T any](t *testing.T, e *engine, expression string) T {
	t.Helper()
	value, err := e.vm.RunString(expression)
	require.NoError(t, err, "%.300s", expression)
	var into T
	require.NoError(t, e.vm.ExportTo(value, &into), "%.300s", expression)
	return into
}

// quote writes a text as a literal.
func quote(t *testing.T, text []byte) string {
	t.Helper()
	literal := require.Value(json.Marshal(string(text)))(t)
	return string(literal)
}

// twin is the page's fold beside ours.
type twin struct {
	*engine
	ours *fold.State
}

func newTwin(t *testing.T) *twin { return twinWith(t, map[string]string{"fold": "log/fold.js"}) }

func twinWith(t *testing.T, modules map[string]string) *twin {
	t.Helper()
	e := newEngine(t, modules)
	log, _ := newLog()
	answer := ask(show(log), "GET", "/viz/points", "")
	require.True(t, answer.Code == http.StatusOK, answer.Code)
	run[bool](t, e, `var twin = page.fold.newFold(JSON.parse(`+quote(t, answer.Body.Bytes())+
		`)), state = page.fold.newState(); true`)
	return &twin{engine: e, ours: fold.New()}
}

// begin makes both stand at a picture.
func (w *twin) begin(t *testing.T, state *fold.State) {
	t.Helper()
	w.ours = state.Clone()
	run[bool](t, w.engine, `state = page.fold.complete(JSON.parse(`+
		quote(t, require.Value(json.Marshal(state))(t))+`)); true`)
}

// apply folds records on both sides, ours straight and the page's as they arrive on its feed, and compares.
func (w *twin) apply(t *testing.T, records []probe.Record) {
	t.Helper()
	w.ours.Apply(records)
	got := run[string](t, w.engine, `twin.apply(state, JSON.parse(`+quote(t, feedOf(records))+`)); JSON.stringify(state)`)
	page, here := tree(t, []byte(got)), tree(t, require.Value(json.Marshal(w.ours))(t))
	require.True(t, reflect.DeepEqual(page, here),
		"after record %d the states differ (-page +here):\n%s", w.ours.Seq, cmp.Diff(page, here))
}

// tree returns JSON as values, with numbers digit by digit.
func tree(t *testing.T, written []byte) (tree any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&tree))
	return tree
}

func TestTheScriptsFoldIsOurs(t *testing.T) {
	t.Parallel()
	for _, take := range takes.All {
		t.Run(take.Name, func(t *testing.T) {
			state, records, err := take.Load()
			require.NoError(t, err)
			w := newTwin(t)
			w.begin(t, state)
			for part := range slices.Chunk(records, 97) {
				w.apply(t, part)
			}
		})
	}
}

// TestTheScriptsFoldIsOursWhateverItIsFed feeds both with what no run would produce soon;
// internal/check/compat/e2e does so for longer, in a browser.
func TestTheScriptsFoldIsOursWhateverItIsFed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		w := newTwin(t)
		anything := newAnything(seed)
		for range 15 {
			w.apply(t, anything.records(50))
		}
	}
}

// TestEveryPointHasItsSentence: what the page says of a record is what the program says.
func TestEveryPointHasItsSentence(t *testing.T) {
	w := newTwin(t)
	for i, point := range probe.Points() {
		r := probe.Record{Seq: uint64(i + 1), Point: point, Resource: "pods", Subject: "w3", Type: "MODIFIED",
			Key: "/registry/pods/default/a", RV: 41, Args: [4]int{1, 2, 3, 4},
			Texts: probe.TextsOf(point, "a reason", "it", "is", "so")}
		said := run[string](t, w.engine, `((r) => page.fold.sentence(twin.infos.get(r.point), r))(`+
			string(fold.AppendRecord(nil, &r))+`)`)
		assert.Equal(t, r.Sentence(), said, point)
		assert.False(t, strings.ContainsAny(said, "{}") || len(said) < 12, "%s says %q", point, said)
	}
}

// TestTheStepBeforeIsTheSameSubjects holds the biography of an object: a step takes as long as its subject had the
// revision, and the first step of a subject begins where the revision was last.
func TestTheStepBeforeIsTheSameSubjects(t *testing.T) {
	e := newEngine(t, map[string]string{"follow": "timeline/follow.js"})
	const records = `[{rv: 7, t: 1}, {rv: 7, t: 2, subject: "w1"}, {t: 3}, {rv: 8, t: 4}, {rv: 7, t: 5, ` +
		`subject: "w2"}, {rv: 7, t: 9, subject: "w1"}]`
	got := run[string](t, e, `[...page.follow.waysOf(`+records+
		`)].map(([rv, way]) => rv + ": " + way.map((h) => h.from + "-" + h.r.t).join(" ")).join(", ")`)
	want := "7: 1-1 1-2 2-5 2-9, 8: 4-4"
	assert.True(t, got == want, "got  %s\nwant %s", got, want)
}

// reading is an engine that reads recordings as the page does.
func reading(t *testing.T) *engine {
	t.Helper()
	e := newEngine(t, map[string]string{"fold": "log/fold.js", "recording": "log/recording.js"})
	log, _ := newLog()
	points := ask(show(log), "GET", "/viz/points", "").Body.Bytes()
	run[bool](t, e, `var fold = page.fold.newFold(JSON.parse(`+quote(t, points)+`));
		var readAll = (text) => {
			const reader = new page.recording.Reader(fold, { put() {}, keep() {} });
			for (const line of text.split("\n")) reader.line(line);
			return reader.end();
		}; true`)
	return e
}

// TestThePageBoundsPicturesAsTheProgramDoes: what one shows, the other shows, too.
func TestThePageBoundsPicturesAsTheProgramDoes(t *testing.T) {
	e := reading(t)
	got := [2]int{run[int](t, e, "page.recording.maxResources"), run[int](t, e, "page.recording.maxParts")}
	if want := [2]int{fold.MaxResources, fold.MaxParts}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	many := `{"format":"listwatch recording","version":1}`
	for i := range 600 {
		many += fmt.Sprintf("\n"+`{"seq":%d,"point":"RingAppend","resource":"r%[1]d","args":[0,1,100,1]}`, i+1)
	}
	pictured := `{"format":"listwatch recording","version":1,"keyframe":{"resources":{` +
		strings.TrimSuffix(strings.Repeat(`"a":{},`, 600), ",") + `}}}`
	long := `{"format":"listwatch recording","version":1,"keyframe":{"resources":{"` + strings.Repeat("a", 5000) +
		`":{}}}}`
	for text, want := range map[string]string{many: "512 resources", pictured: "512 resources", long: "4096 bytes"} {
		said := run[string](t, e, `(() => { try { readAll(`+quote(t, []byte(text))+
			`); return "shown"; } catch (problem) { return problem.message; } })()`)
		assert.True(t, strings.Contains(said, want), "got %q, want %q", said, want)
	}
	cut := `{"format":"listwatch recording","version":1}` + "\n" + `{"seq":1,"point":"RingAppend","texts":{"why":"` +
		strings.Repeat("é", 1000) + `"}}`
	n := run[int](t, e, `readAll(`+quote(t, []byte(cut))+`).records[0].texts.why.length`)
	assert.True(t, n == probe.MaxText, "a text of %d, want %d", n, probe.MaxText)
}

// TestADroppedRecordingIsShownOrRefusedWithASentence is about log/recording.js; the program's -replay is as strict
// (internal/observe/recording).
func TestADroppedRecordingIsShownOrRefusedWithASentence(t *testing.T) {
	e := reading(t)
	header, good := `{"format":"listwatch recording","version":1}`,
		`{"seq":1,"t":1,"point":"RingAppend","args":[0,1,100,1]}`
	keyframe := func(written string) string {
		return `{"format":"listwatch recording","version":1,"keyframe":` + written + `}`
	}
	for name, test := range map[string]struct{ text, want string }{
		"good":                       {header + "\n" + good + "\n", "1 records"},
		"no time":                    {header + "\n" + `{"seq":1,"point":"RingAppend"}`, "1 records"},
		"a picture that says little": {keyframe(`{"seq":0,"resources":{"pods":{}}}`) + "\n" + good, "1 records"},
		"another version, readable":  {`{"format":"listwatch recording","version":7}` + "\n" + good, "1 records"},
		"another version": {`{"format":"listwatch recording","version":7}` + "\n" +
			`{"seq":1,"point":7}`, "the recording is of version 7, and this page, which knows version 1, cannot " +
			"read it: record 1 names no point"},
		"time beyond 2^53": {header + "\n" + `{"seq":1,"t":9007199254740993,"point":"RingAppend"}`,
			"record 1 has no time that can be counted with"},
		"negative time": {header + "\n" + `{"seq":1,"t":-1,"point":"RingAppend"}`, "record 1 has no time " +
			"that can be counted with"},
		"time goes back": {header + "\n" + good + "\n" + `{"seq":2,"t":0,"point":"RingAppend"}`,
			"record 2 is earlier than the one before it"},
		"half a record": {header + "\n" + `{"seq":1.5,"t":1,"point":"RingAppend"}`, "line 2 has no sequence " +
			"number that can be counted with"},
		"a gap": {header + "\n" + good + "\n" + `{"seq":3,"t":2,"point":"RingAppend"}`,
			"record 2 is missing"},
		"huge args": {header + "\n" + `{"seq":1,"t":1,"point":"RingAppend","args":[1e300]}`,
			"record 1 has args that cannot be counted with"},
		"args of texts": {header + "\n" + `{"seq":1,"t":1,"point":"RingAppend","args":["<b>"]}`,
			"record 1 has args that cannot be counted with"},
		"args of many": {header + "\n" + `{"seq":1,"t":1,"point":"RingAppend","args":[1,2,3,4,5]}`,
			"record 1 has args that cannot be counted with"},
		"a version of letters": {header + "\n" + `{"seq":1,"t":1,"point":"RingAppend","rv":"abc"}`,
			"record 1 has no resource version"},
		"a key that is none": {header + "\n" + `{"seq":1,"t":1,"point":"RingAppend","key":7}`,
			"the key of record 1 is not text"},
		"null": {header + "\nnull", "line 2 of the recording is not a record: the file is cut off, " +
			"or was not written by this program"},
		"picture later": {keyframe(`{"seq":1000000}`) + "\n" + good, "the recording's picture is of record " +
			"1000000, but its records begin with 1"},
		"picture of nonsense": {keyframe(`{"resources":{"pods":{"ring":{"capacity":-5,"cells":[]}}}}`) + "\n" +
			good, "the recording does not begin with a picture"},
		"picture without tokens": {
			keyframe(`{"resources":{"pods":{"subjects":{"w1":{"queues":{"input":{"tokens":7}}}}}}}`) + "\n" + good,
			"the recording does not begin with a picture"},
		"a token without a key": {
			keyframe(`{"resources":{"pods":{"subjects":{"w1":{"queues":{"input":{"tokens":[{"rv":"1"}]}}}}}}}`) +
				"\n" + good, "the recording does not begin with a picture"},
		"no recording": {"{}", "the file is not a recording of this program"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run[string](t, e, `(() => {
				try {
					return readAll(`+quote(t, []byte(test.text))+`).records.length + " records";
				} catch (problem) {
					return problem.message;
				}
			})()`)
			assert.Equal(t, test.want, got)
		})
	}
	for _, take := range takes.All { // and ours fit
		t.Run(take.Name, func(t *testing.T) {
			unzipped := require.Value(gzip.NewReader(bytes.NewReader(take.File())))(t)
			text := require.Value(io.ReadAll(unzipped))(t)
			n := run[int](t, e, `readAll(`+quote(t, text)+`).records.length`)
			assert.True(t, n >= 50, "%d records", n)
		})
	}
}

// TestADroppedRecordingOfAnotherTableIsRead is TestARecordingOfAnotherTableIsRead (internal/observe/recording) in the
// page.
func TestADroppedRecordingOfAnotherTableIsRead(t *testing.T) {
	got := run[string](t, reading(t), `JSON.stringify(readAll(`+quote(t, []byte(
		`{"format":"listwatch recording","version":1,"table":{"AddSent":"len cap","RingAppend":"oldest colour start"}}`+
			"\n"+`{"seq":1,"t":5,"point":"AddSent","resource":"pods","args":[1,10],"texts":{"a":"x"}}`+"\n"+
			`{"seq":2,"t":6,"point":"RingAppend","resource":"pods","rv":"7","args":[3,99,1]}`))+`).records)`)
	assert.Equal(t, `[{"seq":1,"t":5,"point":"Unknown","resource":"pods","args":[],"texts":{"name":"AddSent"}},`+
		`{"seq":2,"t":6,"point":"RingAppend","resource":"pods","rv":"7","args":[1,0,0,3]}]`, got)
}

// TestThePageKeepsNoMoreThanTheLog: as the log goes on, what it drops leaves the page's tape.
func TestThePageKeepsNoMoreThanTheLog(t *testing.T) {
	e := newEngine(t, map[string]string{"tape": "log/tape.js"})
	got := run[[]int](t, e, `const tape = new page.tape.Tape(null, page.tape.serverSource("log", 4096));
		for (let seq = 1; seq <= 10_000; seq++) tape.put([{ seq }]);
		[tape.between(1, 10_001).length, tape.holds(5905, 10_001) ? 1 : 0];`)
	assert.True(t, got[0] <= 4096+1024 && got[1] == 1, "records kept, and all of the log's are: got %v", got)
}

// TestTheTimelineHasFewMarksWhateverTimesARecordClaims is about lib/times.js: beyond 2^53 a step leads nowhere, and a
// loop up to the last mark would not end.
func TestTheTimelineHasFewMarksWhateverTimesARecordClaims(t *testing.T) {
	e := newEngine(t, map[string]string{"clock": "lib/times.js"})
	for name, test := range map[string]struct {
		from, to string
		want     string // "": a bound on how many is all
	}{
		"half a minute":    {"0", "30e9", "[0,5000000000,10000000000,15000000000,20000000000,25000000000]"},
		"from the midst":   {"2.5e9", "5e9", "[3000000000,4000000000,5000000000]"},
		"nothing":          {"7e9", "7e9", "[]"},
		"backwards":        {"9e9", "7e9", "[]"},
		"days":             {"0", "1e15", ""},
		"beyond 2^53":      {"9e18", "9e18 + 4e12", ""},
		"far beyond 2^53":  {"0", "9e300", ""},
		"the largest step": {"9e300", "9.1e300", ""},
		"infinity":         {"0", "Infinity", ""},
		"no time at all":   {"Infinity - Infinity", "Infinity", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := run[int](t, e, `page.clock.marks(`+test.from+`, `+test.to+`).length`)
			assert.True(t, n <= 200, "%d marks", n)
			if test.want == "" {
				return
			}
			got := run[string](t, e, `JSON.stringify(page.clock.marks(`+test.from+`, `+test.to+`))`)
			assert.True(t, got == test.want, "got %s, want %s", got, test.want)
		})
	}
}
