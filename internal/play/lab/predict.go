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
		_, first := log.find(0, func(r probe.Record) bool {
			return r.Point == probe.ReflectorReceived && r.Subject == "informer"
		})
		return first.Type, first
	},
	"predict-first-told": func(log records) (string, probe.Record) {
		_, first := log.find(0, func(r probe.Record) bool {
			return r.Point == probe.ReflectorReceived && r.Subject == "kubelet-node-1" && r.Key == "default/a"
		})
		return fmt.Sprintf("%s %d", first.Type, first.RV), first
	},
	"predict-room": func(log records) (string, probe.Record) {
		end, full := log.find(0, func(r probe.Record) bool { return r.Point == probe.InputBlocked })
		sent := log[:end].count(func(r probe.Record) bool {
			return r.Point == probe.InputSent && r.Subject == full.Subject
		})
		return fmt.Sprint(sent), full
	},
	"predict-wait": func(log records) (string, probe.Record) {
		from, began := log.find(0, func(r probe.Record) bool { return r.Point == probe.DispatchBlocked })
		_, ended := log.find(from, func(r probe.Record) bool { return r.Point == probe.WatcherForced })
		return fmt.Sprint((ended.Time - began.Time).Milliseconds()), ended
	},
	"predict-deletion": func(log records) (string, probe.Record) {
		from, asked := log.find(0, func(r probe.Record) bool {
			return r.Point == probe.RequestReceived && strings.HasPrefix(r.Text, "DELETE ")
		})
		commits := log[from:].count(func(r probe.Record) bool {
			return r.Point == probe.TxnCommitted && probe.ObjectKey(r.Key) == "default/a"
		})
		return fmt.Sprint(commits), asked
	},
	"predict-status": func(log records) (string, probe.Record) {
		_, answered := log.find(0, func(r probe.Record) bool {
			return r.Point == probe.RequestAnswered && strings.HasSuffix(r.Text, "resourceVersion=2")
		})
		return fmt.Sprint(answered.Args[0]), answered
	},
}

// records are those of one recording.
type records []probe.Record

// find returns the first record from the given position on that is the one, and its position: len(r) if there is none.
func (r records) find(from int, is func(probe.Record) bool) (int, probe.Record) {
	for i := from; i < len(r); i++ {
		if is(r[i]) {
			return i, r[i]
		}
	}
	return len(r), probe.Record{}
}

func (r records) count(is func(probe.Record) bool) (n int) {
	for _, each := range r {
		if is(each) {
			n++
		}
	}
	return n
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
