package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestEveryBrokenVersionFailsForItsReason makes each broken version and sees its check fail, and say why.
func TestEveryBrokenVersionFailsForItsReason(t *testing.T) {
	for _, each := range All() {
		if each.Kind == Predict {
			continue
		}
		t.Run(each.ID, func(t *testing.T) {
			verdict, err := checking{limit: checkLimit, progress: t.Output(), overlay: overlayOf(t, each)}.check(t.Context(), root, each)
			if err != nil {
				t.Fatal(err)
			}
			says := strings.Join(verdict.Says, "\n")
			t.Log(says)
			if verdict.Solved {
				t.Fatal("the check passes though the sources are broken")
			}
			if strings.Contains(says, "[build failed]") || strings.Contains(says, "no tests to run") || each.Reason == "" || !strings.Contains(says, each.Reason) {
				t.Errorf("it does not fail for its reason, %q", each.Reason)
			}
			if each.Record != "" && !strings.Contains(says, "The record that shows it: ") {
				t.Errorf("it does not show its record, %q", each.Record)
			}
			if len(verdict.Says) > maxLines+5 || regexp.MustCompile(`goroutine \d`).MatchString(says) {
				t.Errorf("it says %d lines, want a few and no stacks", len(verdict.Says))
			}
		})
	}
}

// overlayOf writes the changed files of a lab and the file that tells the go command of them.
func overlayOf(t *testing.T, lab Lab) string {
	t.Helper()
	changed, err := Apply(os.DirFS(root), lab.Edits)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, src := range changed {
		original, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		replacement := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replacement, src, 0o644); err != nil {
			t.Fatal(err)
		}
		replace[original] = replacement
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o644); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// TestEveryLabNamesWhatThereIs: the section that it tells to read, and the tests that check it.
func TestEveryLabNamesWhatThereIs(t *testing.T) {
	ids := map[string]bool{}
	for _, each := range All() {
		if ids[each.ID] {
			t.Errorf("there are two labs %s", each.ID)
		}
		ids[each.ID] = true
		readme, err := os.ReadFile(filepath.Join(root, "chapters", each.Chapter, "README.md"))
		if err != nil || !regexp.MustCompile(`(?m)^##+ `+regexp.QuoteMeta(each.Section)+`(:.*)?$`).Match(readme) {
			t.Errorf("%s: %s has no section %q", each.ID, each.Chapter, each.Section)
		}
		if !strings.Contains(string(readme), "`"+each.ID+"`") {
			t.Errorf("%s: the README of %s does not name it at the end of its section Try it", each.ID, each.Chapter)
		}
		if n := len(each.Hints); n < 2 || n > 3 || each.Goal == "" || each.promise() == "" || each.Minutes < 10 || each.Minutes > 30 || each.Stars < 1 || each.Stars > 3 {
			t.Errorf("%s: has %d hints, goal %q, promise %q, %d minutes, %d stars", each.ID, n, each.Goal, each.promise(), each.Minutes, each.Stars)
		}
		for _, test := range each.Tests {
			names := testsOf(t, test.Package)
			for _, alternative := range strings.Split(test.Run, "|") {
				if !slices.ContainsFunc(names, regexp.MustCompile(alternative).MatchString) {
					t.Errorf("%s: no test of %s is called %q", each.ID, test.Package, alternative)
				}
			}
		}
	}
	for n := 1; n <= 14; n++ {
		if !slices.ContainsFunc(All(), func(l Lab) bool { return strings.HasPrefix(l.Chapter, fmt.Sprintf("%02d-", n)) }) {
			t.Errorf("chapter %02d has no lab", n)
		}
	}
}

// testsOf returns the names of a package's tests.
func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", dir, err)
	}
	var names []string
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`).FindAllSubmatch(src, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names
}

// TestEveryQuestionIsAnsweredByItsRecording: the answers are those that the questions are written for. If one of them changes,
// the question has to be read again.
func TestEveryQuestionIsAnsweredByItsRecording(t *testing.T) {
	want := map[string]string{
		"predict-synced": "BOOKMARK", "predict-first-told": "ADDED 9", "predict-room": "21",
		"predict-wait": "100", "predict-deletion": "3", "predict-status": "200",
	}
	for _, each := range All() {
		if each.Ask == nil {
			continue
		}
		t.Run(each.ID, func(t *testing.T) {
			answer, seq, err := each.Ask.solve()
			if err != nil || answer != want[each.ID] || seq == 0 {
				t.Errorf("got %q by record %d, %v; want %q", answer, seq, err, want[each.ID])
			}
			dir := t.TempDir()
			for given, solved := range map[string]bool{each.form(): false, each.form() + "no idea\n": false, each.form() + answer + "\n": true} {
				if err := os.WriteFile(filepath.Join(dir, answerFile), []byte(given), 0o644); err != nil {
					t.Fatal(err)
				}
				if verdict, err := Check(t.Context(), dir, each, t.Output()); err != nil || verdict.Solved != solved {
					t.Errorf("%q: solved %v, %v; want %v", given, verdict.Solved, err, solved)
				}
			}
		})
	}
}
