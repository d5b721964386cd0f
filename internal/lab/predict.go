package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"listwatch/internal/probe"
	"listwatch/internal/takes"
)

// answerFile is where the answer to a question is written in a working copy.
const answerFile = "ANSWER.txt"

// Question is what a Predict asks about a recording. The answer is worked out from its records each time, so that it
// stays right when the recording is made again.
type Question struct {
	Take   string // of internal/takes
	Text   string
	Answer func(records []probe.Record) (answer string, seq uint64) // and the record that proves it
}

// command shows the recording.
func (q *Question) command() string {
	return "go run ./cmd/viz -replay internal/takes/" + q.Take + takes.Suffix
}

// solve works the answer out.
func (q *Question) solve() (answer string, seq uint64, err error) {
	take, ok := takes.Find(q.Take)
	if !ok {
		return "", 0, fmt.Errorf("there is no recording %q", q.Take)
	}
	_, records, err := take.Load()
	if err != nil {
		return "", 0, err
	}
	answer, seq = q.Answer(records)
	return answer, seq, nil
}

// checkAnswer compares the copy's answer file with what the recording says.
func (l Lab) checkAnswer(dir string) Verdict {
	want, seq, err := l.Ask.solve()
	if err != nil {
		return Verdict{Says: []string{err.Error()}}
	}
	given := answerIn(dir)
	switch {
	case given == "":
		return Verdict{Says: []string{"Write your answer into " + filepath.Join(dir, answerFile) + "."}}
	case !strings.EqualFold(given, want):
		return Verdict{Says: []string{
			fmt.Sprintf("%q is not what happened. The answer is one word or one number.", given),
			fmt.Sprintf("Look at record %d: %s, then #seq=%d in the address.", seq, l.Ask.command(), seq),
		}}
	}
	return Verdict{Solved: true, Says: []string{fmt.Sprintf("%s: record %d shows it. %s", want, seq, l.promise())}}
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
	return fmt.Sprintf("# %s\n#\n# %s\n#\n# %s\n#\n# Write your answer below this line: the word or the number alone.\n", l.Title, l.Ask.Text, l.Ask.command())
}

// predictions are the labs in which a question is answered from a recording.
var predictions = []Lab{
	{
		ID: "predict-synced", Title: "What says that there is nothing?", Chapter: "03-reflector", Section: "A consistent start, the newer way",
		Kind: Predict, Stars: 1, Minutes: 10,
		Goal: "You can say which event ends the initial state of a watch-list.",
		Hints: []string{
			"The informer asks with sendInitialEvents=true, and there is no pod yet.",
			"An event that is about no object can only carry a version.",
		},
		Promise: "A watch-list ends its initial state with a bookmark.",
		Ask: &Question{Take: "start", Answer: firstToldInformer,
			Text: "The client half starts while there are no pods. Which type has the first event that the informer's reflector is sent?"},
	},
	{
		ID: "predict-first-told", Title: "Added, the second time", Chapter: "05-cachewatcher", Section: "What it means",
		Kind: Predict, Stars: 1, Minutes: 10,
		Goal: "You can say what a watcher with a selector is told, and why.",
		Hints: []string{
			"The kubelet watches pods whose spec.nodeName is its own node. A new pod has none.",
			"The type follows from \"matched before\" and \"matches now\", for this watcher.",
		},
		Rule: 5,
		Ask: &Question{Take: "life", Answer: firstToldKubelet,
			Text: "Pod a is created and then bound to node-1. The kubelet of node-1 watches with spec.nodeName=node-1. Which type and version has the first event that it receives about the pod? Write for example: MODIFIED 3"},
	},
	{
		ID: "predict-room", Title: "How much waits for a client that sleeps?", Chapter: "05-cachewatcher", Section: "Handing over",
		Kind: Predict, Stars: 3, Minutes: 15,
		Goal: "You can say where the events of a slow watcher wait.",
		Hints: []string{
			"`input` and `result` have room for ten each. Is that all?",
			"A goroutine that moves things from one channel to another has hands.",
		},
		Promise: "A watcher holds two full channels, ten each, and one event in the hand of its goroutine. The server's hand holds the initial ADDED, which the dispatcher did not send.",
		Ask: &Question{Take: "slow", Answer: roomOfAWatcher,
			Text: "A curl opens a watch and never reads. How many events does the dispatcher get into its watcher before the first one finds no room?"},
	},
	{
		ID: "predict-wait", Title: "How patient is the dispatcher?", Chapter: "06-cacher", Section: "One event goes out",
		Kind: Predict, Stars: 2, Minutes: 10,
		Goal: "You can say how long a slow watcher may hold up all others.",
		Hints: []string{
			"The time comes from a budget. It was not used for a minute.",
			"Look for the record in which the dispatcher blocks, and for the one in which the watcher is closed.",
		},
		Promise: "Slow watchers of one event are waited for together, no longer than the budget.",
		Ask: &Question{Take: "slow", Answer: patience,
			Text: "One watcher has no room left. For how many milliseconds does the dispatcher wait for it before it closes it?"},
	},
	{
		ID: "predict-deletion", Title: "How often is a pod deleted?", Chapter: "07-registry", Section: "Delete",
		Kind: Predict, Stars: 2, Minutes: 10,
		Goal: "You can say what happens between `kubectl delete` and DELETED.",
		Hints: []string{
			"The pod runs on a node. Its containers have to be stopped first: how does the kubelet hear of it?",
			"Read the function `deletion.mark` and ask when it changes the object. The kubelet's own request goes through it, too.",
		},
		Promise: "A running pod is marked first, and erased when its kubelet says so.",
		Ask: &Question{Take: "life", Answer: commitsOfADeletion,
			Text: "Pod a runs on node-1 and is deleted. How many transactions about it does etcd commit from the client's DELETE on?"},
	},
	{
		ID: "predict-status", Title: "410, and what HTTP says", Chapter: "08-handlers", Section: "Errors",
		Kind: Predict, Stars: 2, Minutes: 10,
		Goal: "You can say where a client finds the 410 of a watch.",
		Hints: []string{
			"Look at the last records: what is written to the client, and in which order?",
			"A status line cannot be taken back. When was it sent?",
		},
		Promise: "A watch whose version is gone is told 410 by an ERROR event in its stream.",
		Ask: &Question{Take: "ring", Answer: statusOfTheLateWatch,
			Text: "The ring holds ten events and has wrapped. A curl asks for a watch from version 2. Which HTTP status code has the answer?"},
	},
}

// find returns the first record from the given one on for which is says yes, and its position; len(records) if there is none.
func find(records []probe.Record, from int, is func(*probe.Record) bool) (int, probe.Record) {
	for i := from; i < len(records); i++ {
		if is(&records[i]) {
			return i, records[i]
		}
	}
	return len(records), probe.Record{}
}

func firstToldInformer(records []probe.Record) (string, uint64) {
	_, r := find(records, 0, func(r *probe.Record) bool {
		return r.Point == probe.ReflectorReceived && r.Subject == "informer"
	})
	return r.Type, r.Seq
}

func firstToldKubelet(records []probe.Record) (string, uint64) {
	_, r := find(records, 0, func(r *probe.Record) bool {
		return r.Point == probe.ReflectorReceived && r.Subject == "kubelet-node-1" && r.Key == "default/a"
	})
	return fmt.Sprintf("%s %d", r.Type, r.RV), r.Seq
}

func roomOfAWatcher(records []probe.Record) (string, uint64) {
	end, full := find(records, 0, func(r *probe.Record) bool { return r.Point == probe.InputBlocked })
	n := 0
	for _, r := range records[:end] {
		if r.Point == probe.InputSent && r.Subject == full.Subject {
			n++
		}
	}
	return fmt.Sprint(n), full.Seq
}

func patience(records []probe.Record) (string, uint64) {
	from, began := find(records, 0, func(r *probe.Record) bool { return r.Point == probe.DispatchBlocked })
	_, ended := find(records, from, func(r *probe.Record) bool { return r.Point == probe.WatcherForced })
	return fmt.Sprint((ended.Time - began.Time).Milliseconds()), ended.Seq
}

func commitsOfADeletion(records []probe.Record) (string, uint64) {
	from, asked := find(records, 0, func(r *probe.Record) bool {
		return r.Point == probe.RequestReceived && strings.HasPrefix(r.Text, "DELETE ")
	})
	n := 0
	for _, r := range records[from:] {
		if r.Point == probe.TxnCommitted && probe.ObjectKey(r.Key) == "default/a" {
			n++
		}
	}
	return fmt.Sprint(n), asked.Seq
}

func statusOfTheLateWatch(records []probe.Record) (string, uint64) {
	_, r := find(records, 0, func(r *probe.Record) bool {
		return r.Point == probe.RequestAnswered && strings.HasSuffix(r.Text, "resourceVersion=2")
	})
	return fmt.Sprint(r.Args[0]), r.Seq
}
