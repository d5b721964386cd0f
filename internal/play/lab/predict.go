package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

// answerFile is where the answer to a question is written in a working copy.
const answerFile = "ANSWER.txt"

// answers work out the answer to each question from the records of its recording, and the record that proves it. So an
// answer stays right when the recording is made again.
var answers = map[string]func(log records) (answer string, proof probe.Record){
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
		sent := log[:len(log)-len(full)].count(probe.InputSent, func(r probe.Record) bool {
			return r.Subject == full[0].Subject
		})
		return sent, full[0]
	},
	"predict-wait": func(log records) (string, probe.Record) {
		wait := log.from(probe.DispatchBlocked, every)
		ended := wait.from(probe.WatcherForced, every)[0]
		return fmt.Sprint((ended.Time - wait[0].Time).Milliseconds()), ended
	},
	"predict-deletion": func(log records) (string, probe.Record) {
		deletes := func(r probe.Record) bool { return strings.HasPrefix(r.Text, "DELETE ") }
		asked := log.from(probe.RequestReceived, deletes)
		ofA := func(r probe.Record) bool { return probe.ObjectKey(r.Key) == "default/a" }
		return asked.count(probe.TxnCommitted, ofA), asked[0]
	},
	"predict-status": func(log records) (string, probe.Record) {
		answered := log.from(probe.RequestAnswered, func(r probe.Record) bool {
			return strings.HasSuffix(r.Text, "resourceVersion=2")
		})[0]
		return fmt.Sprint(answered.Args[0]), answered
	},
}

// records are those of one recording.
type records []probe.Record

func every(probe.Record) bool { return true }

// from returns the records from the first of a point on that is the one; a zero record if there is none.
func (r records) from(point probe.Point, is func(probe.Record) bool) records {
	for i, each := range r {
		if each.Point == point && is(each) {
			return r[i:]
		}
	}
	return records{{}}
}

// count returns how many records of a point there are.
func (r records) count(point probe.Point, is func(probe.Record) bool) string {
	n := 0
	for _, each := range r {
		if each.Point == point && is(each) {
			n++
		}
	}
	return fmt.Sprint(n)
}

// replay is the command that shows the lab's recording.
func (l Lab) replay() string {
	return "go run ./cmd/viz -replay internal/observe/takes/" + l.Take + takes.Suffix
}

// answer works the answer out, and which record proves it.
func (l Lab) answer() (answer string, seq uint64, err error) {
	take, found := takes.Find(l.Take)
	solve := answers[l.ID]
	if !found || solve == nil {
		return "", 0, fmt.Errorf("the question %s has no recording %q, or no code that answers it", l.ID, l.Take)
	}
	_, log, err := take.Load()
	if err != nil {
		return "", 0, err
	}
	answer, proof := solve(log)
	return answer, proof.Seq, nil
}

// checkAnswer compares the copy's answer file with what the recording says.
func (l Lab) checkAnswer(dir string) (Verdict, error) {
	want, seq, err := l.answer()
	if err != nil {
		return Verdict{}, err
	}
	given := answerIn(dir)
	switch {
	case given == "":
		return Verdict{Says: []string{"Write your answer into " + filepath.Join(dir, answerFile) + "."}}, nil
	case !strings.EqualFold(given, want):
		return Verdict{Says: []string{
			fmt.Sprintf("%q is not what happened. The answer is one word or one number.", given),
			fmt.Sprintf("Look at record %d: %s, then #seq=%d in the address.", seq, l.replay(), seq),
		}}, nil
	}
	return Verdict{Solved: true, Says: []string{fmt.Sprintf("%s: record %d shows it. %s", want, seq, l.promise())}}, nil
}

// answerIn returns the first line of the answer file that is not a comment.
func answerIn(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, answerFile)) // no file: no answer
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

// form is the answer file as it is handed out.
func (l Lab) form() string {
	return fmt.Sprintf(
		"# %s\n#\n# %s\n#\n# %s\n#\n# Write your answer below this line: the word or the number alone.\n",
		l.Title, l.Ask, l.replay())
}
