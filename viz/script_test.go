//go:build !race

// The scripts' tests: one goroutine runs the page's own code in an engine, where the race detector finds nothing and
// makes the tests ten times slower. `make test` runs this package with and without the detector.

package viz

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
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
	"listwatch/internal/play/scenario"
	"listwatch/viz/book"
)

// engine runs, in Go, the modules of the page that do not use the document, to compare them with the Go code.
type engine struct {
	vm *goja.Runtime
}

// newEngine returns an engine with modules, a map of paths by name. Expressions use a module as page.NAME.
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
	require.NoError(t, e.vm.Set("atob", func(text string) (string, error) {
		decoded, err := base64.StdEncoding.DecodeString(text)
		runes := make([]rune, len(decoded)) // a rune for each byte, as in a browser
		for i, each := range decoded {
			runes[i] = rune(each)
		}
		return string(runes), err
	}))
	require.Value(e.vm.RunString("var structuredClone = (value) => JSON.parse(JSON.stringify(value));"))(t)
	require.Value(e.vm.RunString(string(built.OutputFiles[0].Contents)))(t)
	return e
}

// run evaluates an expression, and returns its value as T.
func run[T any](t *testing.T, e *engine, expression string) T {
	t.Helper()
	value, err := e.vm.RunString(expression)
	require.NoError(t, err, "%.300s", expression)
	var into T
	require.NoError(t, e.vm.ExportTo(value, &into), "%.300s", expression)
	return into
}

// quote returns a text as a JavaScript literal.
func quote(t *testing.T, text []byte) string {
	t.Helper()
	literal := require.Value(json.Marshal(string(text)))(t)
	return string(literal)
}

// points returns the answer of GET /viz/points, the table of all points, as a JavaScript expression.
func points(t *testing.T) string {
	t.Helper()
	log, _ := newLog()
	return `JSON.parse(` + quote(t, ask(show(log), "GET", "/viz/points", "").Body.Bytes()) + `)`
}

// twin is the page's fold beside the Go fold.
type twin struct {
	*engine
	ours *fold.State
}

func newTwin(t *testing.T) *twin { return twinWith(t, map[string]string{"fold": "log/fold.js"}) }

func twinWith(t *testing.T, modules map[string]string) *twin {
	t.Helper()
	e := newEngine(t, modules)
	run[bool](t, e, `var twin = page.fold.newFold(`+points(t)+`), state = page.fold.newState(); true`)
	return &twin{engine: e, ours: fold.New()}
}

// begin sets both folds to a picture.
func (w *twin) begin(t *testing.T, state *fold.State) {
	t.Helper()
	w.ours = state.Clone()
	run[bool](t, w.engine, `state = page.fold.complete(JSON.parse(`+
		quote(t, require.Value(json.Marshal(state))(t))+`)); true`)
}

// apply folds records on both sides, on the page's side as its feed delivers them, and compares the results.
func (w *twin) apply(t *testing.T, records []probe.Record) {
	t.Helper()
	w.ours.Apply(records)
	got := run[string](t, w.engine, `twin.apply(state, JSON.parse(`+quote(t, feedOf(records))+`));
		JSON.stringify(state)`)
	sameTree(t, []byte(got), w.ours)
}

// sameTree compares a state of the page, as JSON, with Go's.
func sameTree(t *testing.T, got []byte, ours *fold.State) {
	t.Helper()
	page, here := tree(t, got), tree(t, require.Value(json.Marshal(ours))(t))
	require.True(t, reflect.DeepEqual(page, here),
		"after record %d the states differ (-page +here):\n%s", ours.Seq, cmp.Diff(page, here))
}

// tree decodes JSON, and keeps all digits of numbers.
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

// TestTheScriptsFoldIsOursWhateverItIsFed expects equal states after records that a real run would rarely produce.
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

// TestEveryPointHasItsSentence expects the page and the program to fill in the same sentence for each point.
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

// reading returns an engine that reads recordings as the page does.
func reading(t *testing.T) *engine {
	t.Helper()
	e := newEngine(t, map[string]string{"fold": "log/fold.js", "recording": "log/recording.js", "tape": "log/tape.js"})
	run[bool](t, e, `var fold = page.fold.newFold(`+points(t)+`);
		var readAll = (text, tape = { put() {}, keep() {} }) => {
			const reader = new page.recording.Reader(fold, tape);
			for (const line of text.split("\n")) reader.line(line);
			return reader.end();
		}; true`)
	return e
}

// TestThePageBoundsPicturesAsTheProgramDoes compares the limits, and checks that the page refuses or cuts the excess.
func TestThePageBoundsPicturesAsTheProgramDoes(t *testing.T) {
	e := reading(t)
	got := [2]int{run[int](t, e, "page.recording.maxResources"), run[int](t, e, "page.recording.maxParts")}
	want := [2]int{fold.MaxResources, fold.MaxParts}
	assert.True(t, got == want, "got %v, want %v", got, want)
	many := `{"format":"listwatch recording","version":1}`
	for i := range 600 {
		many += fmt.Sprintf("\n"+`{"seq":%d,"point":"RingAppend","resource":"r%[1]d","args":[0,1,100,1]}`, i+1)
	}
	pictured := `{"format":"listwatch recording","version":1,"keyframe":{"resources":{"r":{}`
	for i := range 600 {
		pictured += fmt.Sprintf(`,"r%d":{}`, i)
	}
	pictured += `}}}`
	long := `{"format":"listwatch recording","version":1,"keyframe":{"resources":{"` + strings.Repeat("a", 5000) +
		`":{}}}}`
	for text, want := range map[string]string{many: "512 resources", pictured: "512 resources",
		long: "does not begin with a picture"} {
		said := run[string](t, e, `(() => { try { readAll(`+quote(t, []byte(text))+
			`); return "shown"; } catch (problem) { return problem.message; } })()`)
		assert.True(t, strings.Contains(said, want), "got %q, want %q", said, want)
	}
	cut := `{"format":"listwatch recording","version":1}` + "\n" + `{"seq":1,"point":"RingAppend","texts":{"why":"` +
		strings.Repeat("é", 1000) + `"}}`
	n := run[int](t, e, `readAll(`+quote(t, []byte(cut))+`).records[0].texts.why.length`)
	assert.True(t, n == probe.MaxText, "a text of %d, want %d", n, probe.MaxText)
}

// TestADroppedRecordingIsShownOrRefusedWithASentence expects a file's number of records, or the reason for its refusal.
func TestADroppedRecordingIsShownOrRefusedWithASentence(t *testing.T) {
	e := reading(t)
	header, good := `{"format":"listwatch recording","version":1}`,
		`{"seq":1,"t":1,"point":"RingAppend","args":[0,1,100,1]}`
	with := header + "\n" + `{"seq":1,"t":1,"point":"RingAppend",`
	keyframe := func(written string) string {
		return `{"format":"listwatch recording","version":1,"keyframe":` + written + `}`
	}
	invalid := func(field string) string {
		return "line 2 of the recording is not a record with a valid " + field + ": the file is cut off, or was not " +
			"written by this program"
	}
	for name, test := range map[string]struct{ text, want string }{
		"good":                       {header + "\n" + good + "\n", "1 records"},
		"no time":                    {header + "\n" + `{"seq":1,"point":"RingAppend"}`, "1 records"},
		"a picture that says little": {keyframe(`{"seq":0,"resources":{"pods":{}}}`) + "\n" + good, "1 records"},
		"another version": {`{"format":"listwatch recording","version":7}` + "\n" + good,
			"the recording is of version 7, and this page reads version 1"},
		"time beyond 2^53":     {header + "\n" + `{"seq":1,"t":9007199254740993,"point":"RingAppend"}`, invalid("t")},
		"negative time":        {header + "\n" + `{"seq":1,"t":-1,"point":"RingAppend"}`, invalid("t")},
		"half a record":        {header + "\n" + `{"seq":1.5,"t":1,"point":"RingAppend"}`, invalid("seq")},
		"no point":             {header + "\n" + `{"seq":1,"t":1}`, invalid("point")},
		"huge args":            {with + `"args":[1e300]}`, invalid("args")},
		"args of texts":        {with + `"args":["<b>"]}`, invalid("args")},
		"args of many":         {with + `"args":[1,2,3,4,5]}`, invalid("args")},
		"a version of letters": {with + `"rv":"abc"}`, invalid("rv")},
		"a key that is none":   {with + `"key":7}`, invalid("key")},
		"texts of numbers":     {with + `"texts":{"why":7}}`, invalid("texts")},
		"null":                 {header + "\nnull", invalid("seq")},
		"time goes back": {header + "\n" + good + "\n" + `{"seq":2,"t":0,"point":"RingAppend"}`,
			"record 2 is earlier than the one before it"},
		"a gap": {header + "\n" + good + "\n" + `{"seq":3,"t":2,"point":"RingAppend"}`,
			"record 2 is missing"},
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
}

// TestEveryMomentOfADroppedRecordingIsOurs expects Go's state at four moments of each take from the page's tape.
func TestEveryMomentOfADroppedRecordingIsOurs(t *testing.T) {
	t.Parallel()
	for _, take := range takes.All {
		t.Run(take.Name, func(t *testing.T) {
			start, records, err := take.Load()
			require.NoError(t, err)
			e := reading(t)
			text := require.Value(io.ReadAll(require.Value(gzip.NewReader(bytes.NewReader(take.File())))(t)))(t)
			run[any](t, e, `var tape = new page.tape.Tape(fold, null), seen; readAll(`+quote(t, text)+`, tape);`)
			for part := range 4 {
				state := start.Clone()
				state.Apply(records[:len(records)*part/3])
				run[any](t, e, fmt.Sprintf(`tape.stateAt(%d).then((state) => (seen = JSON.stringify(state)));`,
					state.Seq))
				sameTree(t, []byte(run[string](t, e, "seen")), state)
			}
		})
	}
}

func TestALinkThatDoesNotFitSaysSo(t *testing.T) {
	e := newEngine(t, map[string]string{"recording": "log/recording.js"})
	for link, want := range map[string]string{
		`{ at: 7, log: "here" }`:       "",
		`{ at: 7, log: "OTHER" }`:      "of another run of the program",
		`{ at: 3, log: "here" }`:       "has left the log",
		`{ at: 77, log: "here" }`:      "no record 77 yet",
		`{ at: 7, recording: "0123" }`: "drop its file onto the page",
	} {
		got := run[string](t, e, `page.recording.misfit(`+link+`, { log: "here", recording: "", oldest: 5, head: 9 })`)
		assert.True(t, strings.Contains(got, want) && (got == "") == (want == ""), "%s: %s", link, got)
	}
}

// TestADroppedRecordingOfAnotherTableIsRead has an old table: args must be in today's order, an old point Unknown.
func TestADroppedRecordingOfAnotherTableIsRead(t *testing.T) {
	got := run[string](t, reading(t), `JSON.stringify(readAll(`+quote(t, []byte(
		`{"format":"listwatch recording","version":1,"table":{"AddSent":"len cap","RingAppend":"oldest colour start"}}`+
			"\n"+`{"seq":1,"t":5,"point":"AddSent","resource":"pods","args":[1,10],"texts":{"a":"x"}}`+"\n"+
			`{"seq":2,"t":6,"point":"RingAppend","resource":"pods","rv":"7","args":[3,99,1]}`))+`).records)`)
	assert.Equal(t, `[{"seq":1,"t":5,"point":"Unknown","resource":"pods","args":[],"texts":{"name":"AddSent"}},`+
		`{"seq":2,"t":6,"point":"RingAppend","resource":"pods","rv":"7","args":[1,0,0,3]}]`, got)
}

// TestThePageKeepsNoMoreThanTheLog expects a tape to keep the log's 4096 records, up to 1024 more, and their pictures.
func TestThePageKeepsNoMoreThanTheLog(t *testing.T) {
	e := newEngine(t, map[string]string{"tape": "log/tape.js"})
	got := run[[4]int](t, e, `const t = new page.tape.Tape(null, page.tape.serverSource("log", 4096));
		for (let seq = 1; seq <= 1e4; seq++) t.put([{ seq }]), seq % 1e3 || t.keep({ seq, resources: {} }, true);
		[t.between(1, 1e5).length, +t.holds(5905, 10_001), t.frames.length, t.put([{ seq: 2e4 }]) ?? t.records.size];`)
	assert.Equal(t, [4]int{4096 + 1024, 1, 6, 1}, got, "records, all of the log's, pictures, records after a gap")
}

// TestTheTimelineHasFewMarksWhateverTimesARecordClaims expects at most 200 marks, even where t + step is t.
func TestTheTimelineHasFewMarksWhateverTimesARecordClaims(t *testing.T) {
	e := newEngine(t, map[string]string{"clock": "lib/texts.js"})
	for name, test := range map[string]struct {
		from, to string
		want     string // "" to check only the number of marks
	}{
		"half a minute":    {"0", "30e9", "[0,5000000000,10000000000,15000000000,20000000000,25000000000]"},
		"from the midst":   {"2.5e9", "4.9e9", "[3000000000,4000000000]"},
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

// TestWhatPeopleLookForIsAmongTheFirstThree expects a wanted place among the results of each query in queries.txt.
func TestWhatPeopleLookForIsAmongTheFirstThree(t *testing.T) {
	answer := httptest.NewRecorder()
	book.New(scenario.All).ServeHTTP(answer, httptest.NewRequest("GET", "/book/index.json", nil))
	e := newEngine(t, map[string]string{"rank": "book/rank.js"})
	run[bool](t, e, `var index = new page.rank.Index(JSON.parse(`+quote(t, answer.Body.Bytes())+`)); true`)
	var ours strings.Builder // the search's sources, in which no query may be
	for _, file := range strings.Fields("rank.js search.js book.go called.txt ../../internal/text/book/places.go") {
		ours.Write(require.Value(os.ReadFile("book/" + file))(t))
	}
	for line := range strings.Lines(string(require.Value(os.ReadFile("book/called.txt"))(t))) {
		at, _, _ := strings.Cut(line, " ")
		assert.True(t, at[0] != '/' || strings.Contains(answer.Body.String(), `["`+at+`",`), "no %s", at)
	}
	asked := 0
	for line := range strings.Lines(string(require.Value(os.ReadFile("book/testdata/queries.txt"))(t))) {
		query, want, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok {
			continue
		}
		asked++
		found := run[[]string](t, e, `index.search(`+quote(t, []byte(query))+`, 3).map(([at]) => at)`)
		hit := false
		for _, prefix := range strings.Split(want, "|") {
			for _, at := range found {
				hit = hit || strings.HasPrefix(at, prefix)
			}
		}
		assert.True(t, hit, "%s: found %q, want %s", query, found, want)
		assert.False(t, strings.Contains(ours.String(), query), "the search itself knows %q", query)
		if testing.Verbose() {
			t.Logf("%s: %q", query, found)
		}
	}
	assert.True(t, asked >= 25, "%d queries", asked)
}

// TestThePageMeansTheSameRecords checks that queries select the same records of a take on the page and in the program.
func TestThePageMeansTheSameRecords(t *testing.T) {
	t.Parallel()
	fields := func(name probe.Field, is string) map[probe.Field]string { return map[probe.Field]string{name: is} }
	queries := []probe.Query{
		{}, {Points: []probe.Point{probe.InputSent, probe.ResultSent}}, {Station: probe.Watcher},
		{Resource: "pods", Subject: "w*|cacher"}, {Type: "ADDED|BOOKMARK"}, {Key: "default/my-pod"}, {RV: 40},
		{Fields: fields(probe.FieldAgent, "listwatch-page*")}, {Fields: fields(probe.FieldAgent, "*")},
		{Fields: fields("len", "10")}, {Fields: fields("status", "20*")}, {Subject: "w5"},
		{Fields: fields(probe.FieldVersion, "")}, {Resource: "none"},
	}
	take, _ := takes.Find(takes.StoryPrefix + "tour")
	_, records, err := take.Load()
	require.NoError(t, err)
	written := require.Value(json.Marshal(records))(t)
	table := require.Value(json.Marshal(fold.Points()))(t)
	e := newEngine(t, map[string]string{"query": "log/query.js"})
	run[any](t, e, fmt.Sprintf("globalThis.records = JSON.parse(%s); globalThis.infos = new Map(JSON.parse(%s)"+
		".map((each) => [each.name, each])); 0", quote(t, written), quote(t, table)))
	for _, q := range queries {
		want := []uint64{}
		for i := range records {
			if q.Matches(&records[i]) {
				want = append(want, records[i].Seq)
			}
		}
		text := require.Value(json.Marshal(q))(t)
		got := run[[]uint64](t, e, fmt.Sprintf("records.filter((r) => page.query.matches(%s, r, infos.get(r.point)))"+
			".map((r) => r.seq)", text))
		assert.EqualSlices(t, want, got, "%s", text)
	}
}
