package lab

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

const root = "../../.."

// tasks returns the labs that change source code.
func tasks() []Lab { return slices.DeleteFunc(All(), func(l Lab) bool { return l.Kind == Predict }) }

// TestBrokenVersionsFailForTheirReason checks broken versions, and requires that each check fails with the lab's
// message: for one Find and one Build, or with FULL=1 for all whose sources are in this module.
func TestBrokenVersionsFailForTheirReason(t *testing.T) {
	for _, each := range tasks() {
		if each.Dir != "" || os.Getenv("FULL") == "" && each.ID != "neighbours" && each.ID != "build-the-table" {
			continue
		}
		t.Run(each.ID, func(t *testing.T) {
			t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -overlay="+overlayOf(t, each))
			verdict := require.Value(Check(t.Context(), root, each, io.Discard))(t)
			says := strings.Join(verdict.Says, "\n")
			t.Log(says)
			require.True(t, !verdict.Solved, "the check passes though the sources are broken")
			assert.True(t, strings.HasPrefix(says, "Not yet.") && each.Fails != "" &&
				strings.Contains(says, each.Fails), "it does not fail for its reason, %q", each.Fails)
			assert.True(t, len(verdict.Says) <= maxLines+5 && !regexp.MustCompile(`goroutine \d`).MatchString(says),
				"it says %d lines, want a few and no stacks", len(verdict.Says))
		})
	}
}

// overlayOf writes the lab's changed file, and an overlay for the go command that puts it in place of the original.
func overlayOf(t *testing.T, l Lab) string {
	t.Helper()
	name, _, broken, err := l.Break(os.DirFS(root))
	require.NoError(t, err)
	original := require.Value(filepath.Abs(filepath.Join(root, filepath.FromSlash(name))))(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "broken.go"), string(broken))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: filepath.Join(dir, "broken.go")}})
	require.NoError(t, err)
	write(t, filepath.Join(dir, "overlay.json"), string(list))
	return filepath.Join(dir, "overlay.json")
}

// TestEveryBrokenVersionIsGo checks the types of every broken version. Its imports come from the build cache.
func TestEveryBrokenVersionIsGo(t *testing.T) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./chapters/...")
	list.Dir = root
	out := require.Value(list.Output())(t)
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		importPath, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[importPath] = file
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(importPath string) (io.ReadCloser, error) {
		return os.Open(exports[importPath])
	})
	for _, each := range slices.DeleteFunc(tasks(), func(l Lab) bool { return l.Dir != "" }) { // in another module
		name, before, after, err := each.Break(os.DirFS(root))
		if err != nil {
			t.Errorf("%s: %v", each.ID, err)
			continue
		}
		assert.True(t, string(before) != string(after), "%s changes nothing", each.ID)
		var files []*ast.File
		sources := require.Value(filepath.Glob(filepath.Join(root, each.dir(), "*.go")))(t)
		for _, source := range sources {
			var text any // nil lets the parser read the file
			if filepath.Base(source) == filepath.Base(name) {
				text = after
			}
			if strings.HasSuffix(source, "_test.go") {
				continue
			}
			file := require.Value(parser.ParseFile(fset, source, text, parser.SkipObjectResolution))(t)
			files = append(files, file)
		}
		config := types.Config{Importer: from}
		_, err = config.Check("listwatch/"+each.dir(), fset, files, nil)
		assert.True(t, err == nil, "%s does not compile: %v", each.ID, err)
	}
}

// TestEveryLabNamesWhatThereIs checks each lab's section, tests and fields, and that chapters 01 to 14 have labs.
func TestEveryLabNamesWhatThereIs(t *testing.T) {
	for _, each := range All() {
		other, err := ByID(each.ID)
		assert.True(t, err == nil && other.Chapter == each.Chapter, "there are two labs %s", each.ID)
		readme, err := os.ReadFile(filepath.Join(root, "chapters", each.Chapter, "README.md"))
		assert.True(t, err == nil && regexp.MustCompile(`(?m)^##+ `+regexp.QuoteMeta(each.Section)+
			`(:.*)?$`).Match(readme), "%s: %s has no section %q", each.ID, each.Chapter, each.Section)
		assert.True(t, strings.Contains(string(readme), "`"+each.ID+"`"),
			"%s: the README of %s does not name it at the end of its section Try it", each.ID, each.Chapter)
		if n := len(each.Hints); n != 3 || each.Title == "" || each.Goal == "" || each.promise() == "" ||
			each.Minutes < 10 || each.Minutes > 30 || each.Stars < 1 || each.Stars > 3 {
			t.Errorf("%s: has %d hints, goal %q, promise %q, %d minutes, %d stars",
				each.ID, n, each.Goal, each.promise(), each.Minutes, each.Stars)
		}
		if each.Kind == Predict {
			assert.True(t, each.Take != "" && each.Ask != "", "%s asks %q of %q", each.ID, each.Ask, each.Take)
			continue
		}
		names := testsOf(t, each.dir())
		for _, pattern := range each.Tests {
			assert.True(t, slices.ContainsFunc(names, regexp.MustCompile(pattern).MatchString),
				"%s: no test of %s is called %q", each.ID, each.Chapter, pattern)
		}
		assert.True(t, (each.Kind == Find || each.Kind == Build) && len(each.Tests) != 0 && each.Symptom != "" &&
			each.Look != "", "%s: %q, tests %q, symptom %q, see it %q", each.ID, each.Kind, each.Tests, each.Symptom,
			each.Look)
	}
	for n := 1; n <= 14; n++ {
		prefix := fmt.Sprintf("%02d-", n)
		has := slices.ContainsFunc(All(), func(l Lab) bool { return strings.HasPrefix(l.Chapter, prefix) })
		assert.True(t, has, "chapter %02d has no lab", n)
	}
}

// testsOf returns the names of the tests and fuzz tests in a folder of the checkout.
func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	require.True(t, err == nil && len(files) != 0, "%s has no tests: %v", dir, err)
	var names []string
	for _, file := range files {
		src := require.Value(os.ReadFile(file))(t)
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`).FindAllSubmatch(src, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names
}

// TestALabThatIsMalformedIsNamed checks that the error names the file and the fault.
func TestALabThatIsMalformedIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"title: [":                            "01-storage/labs/x.txtar: ",
		"titel: X\n":                          "titel",
		"title: X\n-- olde: Key --\n":         `section "olde: Key"`,
		"title: X\nstars: many\n":             "stars",
		"title: X\n-- old: Key --\n--new--\n": "",
	} {
		_, err := Load(fstest.MapFS{"01-storage/labs/x.txtar": {Data: []byte(text)}})
		assert.False(t, (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want),
			"%q: got %v, want %q", text, err, want)
	}
}

// TestALabWhosePlaceIsGoneIsAnError breaks sources that do not fit the lab, and expects an error with the reason.
func TestALabWhosePlaceIsGoneIsAnError(t *testing.T) {
	sources := fstest.MapFS{"chapters/01-storage/x.go": {Data: []byte("package storage\n\nfunc key() { a(); a() " +
		"}\n\ntype T struct{}\n")}}
	for want, l := range map[string]Lab{
		"x.Gone":               {Symbol: "x.Gone"},
		"occurs in it 0 times": {Symbol: "key", Old: "b()"},
		"occurs in it 2 times": {Symbol: "key", Old: "a()"},
		"it has no body":       {Symbol: "T", New: "a()"},
		"file does not exist":  {Symbol: "key", Chapter: "02-etcd3"},
		"missing condition":    {Symbol: "key", New: "if {"},
	} {
		if l.Chapter == "" {
			l.Chapter = "01-storage"
		}
		_, _, _, err := l.Break(sources)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %q", err, want)
	}
}

// proofs maps each question to a function that finds, in the recording, the answer and the record that shows it.
var proofs = map[string]func(log records) (answer string, proof probe.Record){
	"predict-synced": func(log records) (string, probe.Record) {
		first := log.from(probe.ReflectorReceived, func(r probe.Record) bool { return r.Subject == "informer" })[0]
		return first.Type, first
	},
	"predict-first-told": func(log records) (string, probe.Record) {
		first := log.from(probe.ReflectorReceived, func(r probe.Record) bool {
			return r.Subject == "kubelet-node-1" && r.Key == "default/a"
		})[0]
		return fmt.Sprintf("%s %d", first.Type, first.RV), first
	},
	"predict-room": func(log records) (string, probe.Record) {
		full := log.from(probe.InputBlocked, every)
		return log[:len(log)-len(full)].count(probe.InputSent, func(r probe.Record) bool {
			return r.Subject == full[0].Subject
		}), full[0]
	},
	"predict-wait": func(log records) (string, probe.Record) {
		wait := log.from(probe.DispatchBlocked, every)
		ended := wait.from(probe.WatcherForced, every)[0]
		return fmt.Sprint((ended.Time - wait[0].Time).Milliseconds()), ended
	},
	"predict-deletion": func(log records) (string, probe.Record) {
		asked := log.from(probe.RequestReceived, func(r probe.Record) bool {
			return r.Field(probe.FieldMethod) == "DELETE"
		})
		return asked.count(probe.TxnCommitted, func(r probe.Record) bool {
			return probe.ObjectKey(r.Key) == "default/a"
		}), asked[0]
	},
	"predict-status": func(log records) (string, probe.Record) {
		answered := log.from(probe.RequestAnswered, func(r probe.Record) bool {
			return r.Field(probe.FieldVersion) == "2"
		})[0]
		return fmt.Sprint(answered.Args[0]), answered
	},
}

// records are the records of one recording.
type records []probe.Record

func every(probe.Record) bool { return true }

// The method from drops all records before the first accepted one at the point. Without one, it returns a zero record.
func (r records) from(point probe.Point, is func(probe.Record) bool) records {
	i := slices.IndexFunc(r, func(each probe.Record) bool { return each.Point == point && is(each) })
	if i < 0 {
		return records{{}}
	}
	return r[i:]
}

// count returns the number of records at the point that the filter accepts, as text.
func (r records) count(point probe.Point, is func(probe.Record) bool) string {
	return fmt.Sprint(len(slices.DeleteFunc(slices.Clone(r), func(each probe.Record) bool {
		return each.Point != point || !is(each)
	})))
}

var update = flag.Bool("update", false, "write which record shows an answer, and docs/LABS.md")

// TestEveryAnswerIsWhatItsRecordingShows compares the answers in the labs' files with the recordings; Check must accept
// only them. After a recording was made again, -update writes the numbers of the records that show the answers. If an
// answer changes, review the question, too.
func TestEveryAnswerIsWhatItsRecordingShows(t *testing.T) {
	asked := slices.DeleteFunc(All(), func(l Lab) bool { return l.Kind != Predict })
	assert.Equal(t, len(proofs), len(asked), "questions and proofs")
	for _, each := range asked {
		t.Run(each.ID, func(t *testing.T) {
			take, found := takes.Find(each.Take)
			require.True(t, found, "there is no recording %q", each.Take)
			_, log, err := take.Load()
			require.NoError(t, err)
			answer, proof := proofs[each.ID](log)
			if file := filepath.Join(root, each.dir(), "labs", each.ID+".txtar"); *update {
				text := require.Value(os.ReadFile(file))(t)
				was, is := fmt.Sprintf("answer: %d ", each.Proof), fmt.Sprintf("answer: %d ", proof.Seq)
				write(t, file, strings.Replace(string(text), was, is, 1))
				return
			}
			assert.True(t, each.Answer == answer && each.Proof == proof.Seq && proof.Seq != 0,
				"the file says %q by record %d; want answer: %d, %s", each.Answer, each.Proof, proof.Seq, answer)
			dir := t.TempDir()
			for given, solved := range map[string]bool{
				each.form(): false, each.form() + "no idea\n": false, each.form() + answer + "\n": true,
			} {
				write(t, filepath.Join(dir, answerFile), given)
				verdict, err := Check(t.Context(), dir, each, io.Discard)
				assert.True(t, err == nil && verdict.Solved == solved, "%q: solved %v", given, verdict.Solved)
			}
		})
	}
}

// TestASolutionIsADiffThatPointsAtNoBug forbids values that a broken source computes and drops: they would reveal the
// bug.
func TestASolutionIsADiffThatPointsAtNoBug(t *testing.T) {
	for _, each := range tasks() {
		diff, err := Solution(root, each.ID)
		assert.True(t, err == nil && strings.Contains(diff, "\n+") && !strings.Contains(each.New, "\t_ = "),
			"%s: %v\n%s", each.ID, err, diff)
	}
}

func TestTheTableOfLabsIsFresh(t *testing.T) {
	const generated = "go test ./internal/play/lab -run Fresh -update -->\n"
	file := filepath.Join(root, "docs", "LABS.md")
	text := strings.ReplaceAll(string(require.Value(os.ReadFile(file))(t)), "\r\n", "\n") // Windows may have CRLF
	head, _, found := strings.Cut(text, generated)
	want := head + generated + "\n| lab | | minutes | |\n|---|---|---:|---|\n"
	for _, l := range All() {
		want += fmt.Sprintf("| [%s](../chapters/%s/labs/%s.txtar) | %s %d | %d | %s |\n", l.ID, l.Chapter, l.ID,
			strings.TrimSuffix(string(l.Kind), " it"), l.Stars, l.Minutes, l.Title)
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	assert.True(t, found && (*update || text == want), "docs/LABS.md is stale: run make generate and commit the result")
}
