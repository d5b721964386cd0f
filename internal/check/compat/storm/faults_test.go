package storm

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
)

// fault is one thing that is done to the program while all clients are at work.
type fault struct {
	name  string
	often int // in one deck
	do    func(s *storm)
}

// deck is every fault, as often as it comes in one round of faults. A round is drawn in an order of its own.
var deck = []fault{
	{"restart of etcd", 2, func(s *storm) { s.knob("etcd.restart", "", "") }},
	{"two restarts of etcd at once", 1, (*storm).restartTwice},
	{"user who does not wait", 3, (*storm).leaveEarly},
	{"compaction", 2, func(s *storm) { s.knob("etcd.compact", "", "") }},
	{"ring of 3 to 1000", 2, func(s *storm) {
		s.knob("ring.capacity", "configmaps",
			strconv.Itoa(3+s.random.IntN(998)))
	}},
	{"ring that moves again", 1, func(s *storm) { s.knob("ring.capacity", "configmaps", "0") }},
	{"traffic", 2, func(s *storm) { s.knob("traffic.rate", "", strconv.Itoa(s.random.IntN(200))) }},
	{"dropped lines", 1, func(s *storm) { s.knob("line.drop", informerAgent, "") }},
	{"cut line", 1, func(s *storm) { s.forAWhile("line.cut") }},
	{"stalled line", 1, func(s *storm) { s.forAWhile("line.stall") }},
	{"handlers", 1, (*storm).changeHandlers},
	{"watchers of the page", 1, (*storm).addWatchers},
	{"switch of a mode", 2, (*storm).switchMode},
	{"held world", 2, (*storm).holdWorld},
	{"knobs in a held world", 1, (*storm).turnWhileHeld},
	{"closed gate", 2, (*storm).closeGate},
	{"cut connections", 3, (*storm).cutConnections},
	{"SIGSTOP", 1, (*storm).stopProcess},
	{"reset", 1, func(s *storm) { s.command("POST", "/viz/reset", nil) }},
	{"kill -9", 1, (*storm).killProcess},
	{"Ctrl-C", 1, (*storm).interruptProcess},
}

// informerAgent is what the informer of the program's client half calls itself.
const informerAgent = "listwatch-informer"

// modes are the switches and their values.
var modes = [][3]string{
	{"fifo", "real", "delta"}, {"initial", "watchlist", "list"}, {"etcd-watcher", "etcd3", "etcd2"},
	{"dispatch", "two-phase", "sequential"},
}

// shuffled returns a deck in an order drawn by random.
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

// moment is how long something lasts: some tenths of a second, or a second.
func (s *storm) moment() time.Duration {
	return time.Duration(200+s.random.IntN(1000)) * time.Millisecond
}

// command asks the program for something that it must answer soon, with anything but a 5xx. After the switch of a mode
// the halves that end may still be there to refuse a command, with 503: it is for those that come.
func (s *storm) command(method, path string, body any) reply {
	began, r := time.Now(), reply{}
	eventually.Did(healsIn, func() bool {
		r = s.page.do(method, path, body)
		return r.code != http.StatusServiceUnavailable
	})
	if took := time.Since(began); took > healsIn {
		s.fault("%s %s %v: answered after %v", method, path, body, took)
	}
	if r.err != nil || r.code >= http.StatusInternalServerError {
		s.fault("%s %s %v: %v", method, path, body, r)
	}
	return r
}

func (s *storm) knob(name, target, value string) {
	s.command("POST", "/viz/knobs", map[string]string{"name": name, "target": target, "value": value})
}

// forAWhile does something to the line of the program's informer, and mends it.
func (s *storm) forAWhile(knob string) {
	s.knob(knob, informerAgent, "true")
	time.Sleep(s.moment())
	s.knob(knob, informerAgent, "false")
}

func (s *storm) changeHandlers() {
	s.knob("handler.add", "storm", "")
	s.knob("handler.delay", "storm", "5ms")
	time.Sleep(s.moment())
	s.knob("handler.remove", "storm", "")
}

// addWatchers opens watchers as a page does, and takes some away.
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

// restartTwice asks for a second restart of etcd while the first is under way.
func (s *storm) restartTwice() {
	restart := func() reply { return s.page.do("POST", "/viz/knobs", map[string]string{"name": "etcd.restart"}) }
	other := make(chan reply, 1) // sent once, below
	go func() { other <- restart() }()
	for _, r := range []reply{restart(), <-other} {
		if r.code != http.StatusOK && r.code != http.StatusConflict {
			s.fault("one of two restarts of etcd: %v", r)
		}
	}
}

// leaveEarly gives a command and does not wait for the answer. The command is done, or it is not: the program goes on.
func (s *storm) leaveEarly() {
	user := newPage(s.page.base, time.Duration(1+s.random.IntN(200))*time.Millisecond)
	switch s.random.IntN(4) {
	case 0:
		user.do("POST", "/viz/reset", nil)
	case 1:
		user.do("POST", "/viz/knobs", map[string]string{"name": "switch", "target": "fifo", "value": modes[0][1+
			s.random.IntN(2)]})
	default:
		user.do("POST", "/viz/knobs", map[string]string{"name": "etcd.restart"})
	}
}

// turnWhileHeld turns knobs while every goroutine of the pipeline stands. They are answered all the same.
func (s *storm) turnWhileHeld() {
	s.command("POST", "/viz/hold", map[string]string{"do": "hold", "unattended": "60s"})
	s.knob("ring.capacity", "configmaps", strconv.Itoa(100+s.random.IntN(900)))
	s.forAWhile("line.stall")
	s.changeHandlers()
	s.command("POST", "/viz/hold", map[string]string{"do": "release"})
}

// switchMode changes one mode. Both halves end and start again.
func (s *storm) switchMode() {
	mode := modes[s.random.IntN(len(modes))]
	s.knob("switch", mode[0], mode[1+s.random.IntN(2)])
}

func (s *storm) holdWorld() {
	s.command("POST", "/viz/hold", map[string]string{"do": "hold", "unattended": "10s"})
	time.Sleep(s.moment())
	s.command("POST", "/viz/hold", map[string]string{"do": "step"})
	time.Sleep(s.moment())
	s.command("POST", "/viz/hold", map[string]string{"do": "release"})
}

// closeGate holds those who come to one station.
func (s *storm) closeGate() {
	var world struct{ Stations []string }
	if s.command("GET", "/viz/hold", nil).read(&world) != nil || len(world.Stations) == 0 {
		s.fault("GET /viz/hold: no station")
		return
	}
	gate := map[string]string{"do": "hold", "station": world.Stations[s.random.IntN(len(world.Stations))],
		"unattended": "10s"}
	s.command("POST", "/viz/hold", gate)
	time.Sleep(s.moment())
	s.command("POST", "/viz/hold", map[string]string{"do": "release"})
}

// cutConnections cuts every connection that goes over the proxy, and keeps new ones waiting for a while.
func (s *storm) cutConnections() {
	s.proxy.Cut()
	time.Sleep(s.moment() / 4)
	s.proxy.Release()
}

func (s *storm) stopProcess() {
	s.viz.Pause()
	time.Sleep(2 * s.moment())
	s.viz.Resume()
}

func (s *storm) killProcess() {
	s.promises()
	s.viz.Kill()
	s.look()
	s.start()
}

func (s *storm) interruptProcess() {
	s.interrupt(patience)
	s.start()
}

// interrupt is Ctrl-C.
func (s *storm) interrupt(within time.Duration) {
	s.promises()
	s.viz.Interrupt(s.t)
	if code := s.viz.ExitCode(s.t, within); code != 0 {
		s.fault("Ctrl-C: exit status %d", code)
	}
	s.look()
}

// look counts what a program that has ended wrote to stderr. Where it has put a recording is not asked.
func (s *storm) look() {
	for _, line := range s.viz.Stderr.Lines() {
		line, _, _ = strings.Cut(line, " The last ")
		if len(s.stderr) < 20 || s.stderr[line] > 0 {
			s.stderr[line]++
		}
	}
}

// start starts the program on the folder and the port of the one before.
func (s *storm) start() {
	s.viz = program.StartViz(s.t, "-listen", s.address, "-data-dir", s.folder, "-demo=false")
}

// fault notes what the program must not do.
func (s *storm) fault(format string, args ...any) {
	at := fmt.Sprintf("%s, at %v: ", s.now, time.Since(s.began).Round(time.Millisecond))
	s.add("%s", at+fmt.Sprintf(format, args...))
}
