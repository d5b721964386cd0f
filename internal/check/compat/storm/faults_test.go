package storm

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"listwatch/internal/check/bubble"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
	"listwatch/internal/observe/rules"
)

// fault is an action against the program while all clients are at work.
type fault struct {
	name  string
	often int // number of times in one deck
	do    func(s *storm)
}

// deck lists the faults, with the number of times that each occurs in one round. shuffled puts a round in random order.
var deck = []fault{
	{"restart of etcd", 2, func(s *storm) { s.knob("etcd.restart", "", "") }},
	{"compaction", 2, func(s *storm) { s.knob("etcd.compact", "", "") }},
	{"ring of 3 to 1000", 2, func(s *storm) { s.knob("ring.capacity", "configmaps", s.number(3, 1001)) }},
	{"ring that moves again", 1, func(s *storm) { s.knob("ring.capacity", "configmaps", "0") }},
	{"traffic", 2, func(s *storm) { s.knob("traffic.rate", "", s.number(0, 200)) }},
	{"dropped lines", 1, func(s *storm) { s.knob("line.drop", informerAgent, "") }},
	{"cut line", 1, func(s *storm) { s.forAWhile("line.cut", informerAgent, "true", "line.cut", "false") }},
	{"stalled line", 1, func(s *storm) { s.forAWhile("line.stall", informerAgent, "true", "line.stall", "false") }},
	{"handlers", 1, func(s *storm) { s.forAWhile("handler.add", "storm", "", "handler.remove", "") }},
	{"watchers of the page", 1, (*storm).addWatchers},
	{"switch of a mode", 2, func(s *storm) {
		mode := modes[s.random.IntN(len(modes))]
		s.knob("switch", mode[0], mode[1+s.random.IntN(2)])
	}},
	{"user who does not wait", 3, (*storm).leaveEarly},
	{"held world", 3, func(s *storm) { s.hold("") }},
	{"closed gate", 2, (*storm).closeGate},
	{"cut connections", 3, (*storm).cutConnections},
	{"SIGSTOP", 1, (*storm).stopProcess},
	{"reset", 1, func(s *storm) { s.command("POST", "/viz/reset", nil) }},
	{"kill -9", 1, func(s *storm) { s.promises(); s.viz.Kill(); s.start() }},
	{"Ctrl-C", 1, func(s *storm) { s.interrupt(patience); s.start() }},
}

// informerAgent is the User-Agent of the informer in the program's client half.
const informerAgent = "listwatch-informer"

// modes lists the switches, each with its two values, the default first.
var modes = [][3]string{
	{"fifo", "real", "delta"}, {"initial", "watchlist", "list"}, {"etcd-watcher", "etcd3", "etcd2"},
	{"dispatch", "two-phase", "sequential"},
}

// shuffled returns the deck in a random order.
func shuffled(random *rand.Rand) []fault {
	var faults []fault
	for _, each := range deck {
		for range each.often {
			faults = append(faults, each)
		}
	}
	random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	return faults
}

// number returns a random number in [from, to) as text.
func (s *storm) number(from, to int) string { return strconv.Itoa(from + s.random.IntN(to-from)) }

// moment returns a random duration from 0.2 to 1.2 seconds.
func (s *storm) moment() time.Duration {
	return time.Duration(200+s.random.IntN(1000)) * time.Millisecond
}

// ask sends a request over a connection of its own, because net/http would not repeat a command whose kept connection
// the program is just closing. A non-nil body is sent as JSON. Without a response, code is 0 and answer the error.
func (s *storm) ask(within time.Duration, method, path string, body any) (code int, answer []byte) {
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body) // our own types do not fail
	}
	request, err := http.NewRequest(method, "http://"+s.address+path, bytes.NewReader(data))
	if err != nil {
		return 0, []byte(err.Error())
	}
	request.Close = true
	response, err := (&http.Client{Timeout: within}).Do(request)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return response.StatusCode, answer
}

// command sends a request to which the program must respond soon, and not with a 5xx. After a switch of modes, the old
// halves may still refuse commands with 503, so command repeats the request until the new halves respond.
func (s *storm) command(method, path string, body any) (answer []byte) {
	code := 0
	eventually.Did(healsIn, func() bool {
		code, answer = s.ask(patience, method, path, body)
		return code != http.StatusServiceUnavailable
	})
	if code == 0 || code >= http.StatusInternalServerError {
		s.fault("%s %s %v: %d %.200s", method, path, body, code, answer)
	}
	return answer
}

func (s *storm) knob(name, target, value string) {
	s.command("POST", "/viz/knobs", map[string]string{"name": name, "target": target, "value": value})
}

// forAWhile turns a knob, waits a moment, and turns the knob that undoes it.
func (s *storm) forAWhile(name, target, value, undo, back string) {
	s.knob(name, target, value)
	time.Sleep(s.moment())
	s.knob(undo, target, back)
}

// addWatchers opens two watchers as a page does, and then removes watchers in half of the cases.
func (s *storm) addWatchers() {
	for range 2 {
		s.command("POST", "/viz/watchers", map[string]any{"resource": "configmaps", "bookmarks": true,
			"timeoutSeconds": 5})
	}
	time.Sleep(s.moment())
	if s.random.IntN(2) == 0 {
		s.knob("watchers.remove", "", "")
	}
}

// leaveEarly sends a command and waits 200 ms at most for the response. Whether or not the command takes effect, the
// program must go on.
func (s *storm) leaveEarly() {
	path := []string{"/viz/reset", "/viz/knobs"}[s.random.IntN(2)]
	s.ask(time.Duration(1+s.random.IntN(200))*time.Millisecond, "POST", path, map[string]string{"name": "etcd.restart"})
}

// hold holds the world, or the goroutines that reach one station, and turns knobs meanwhile. The knobs must still work.
func (s *storm) hold(station string) {
	s.command("POST", "/viz/hold", map[string]string{"do": "hold", "station": station, "unattended": "60s"})
	s.forAWhile("line.stall", informerAgent, "true", "line.stall", "false")
	if station == "" {
		s.command("POST", "/viz/hold", map[string]string{"do": "step"})
	}
	s.forAWhile("handler.add", "storm", "", "handler.remove", "")
	s.command("POST", "/viz/hold", map[string]string{"do": "release"})
}

func (s *storm) closeGate() {
	var world struct{ Stations []string }
	if json.Unmarshal(s.command("GET", "/viz/hold", nil), &world) != nil || len(world.Stations) == 0 {
		s.fault("GET /viz/hold: no station")
		return
	}
	s.hold(world.Stations[s.random.IntN(len(world.Stations))])
}

// cutConnections cuts every connection through the proxy and delays new requests for a while.
func (s *storm) cutConnections() {
	s.proxy.Cut()
	time.Sleep(s.moment() / 4)
	s.proxy.Release()
}

func (s *storm) stopProcess() {
	_ = s.viz.Cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(2 * s.moment())
	_ = s.viz.Cmd.Process.Signal(syscall.SIGCONT)
}

// raced is the exit status of a race build that has found a race.
const raced = 66

// interrupt ends the program as Ctrl-C does. The program must exit with 0, and must have waited for all goroutines.
func (s *storm) interrupt(within time.Duration) {
	s.promises()
	s.viz.Interrupt(s.t)
	code, late := s.viz.ExitCode(s.t, within), ""
	for _, line := range s.viz.Stderr.Lines() {
		if strings.Contains(line, "without waiting") {
			late = line
		}
	}
	if late != "" && bubble.Race && s.now != endOfStorm && code != raced {
		return // a busy race build may need more than three seconds to run every goroutine once
	}
	if code != 0 || late != "" {
		s.fault("Ctrl-C: exit status %d %s", code, late)
	}
}

// start starts the program on the storm's folder and port.
func (s *storm) start() {
	s.viz = program.StartViz(s.t, "-listen", s.address, "-data-dir", s.folder, "-demo=false")
}

// promises fetches the program's own check of its log, and reports each broken rule as a fault.
func (s *storm) promises() {
	var report rules.Report
	if json.Unmarshal(s.command("GET", "/viz/rules", nil), &report) != nil || report.Checked == 0 {
		s.fault("/viz/rules reports no check")
	}
	s.checked += int(report.Checked)
	for _, each := range report.Rules {
		if each.Count > 0 {
			s.fault("promise %d was broken %d times: %s %+v", each.Number, each.Count, each.Text, each.Breaches)
		}
	}
}
