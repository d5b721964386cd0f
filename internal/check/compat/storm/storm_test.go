package storm

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
)

var (
	lasts = flag.Duration("storm", time.Minute, "how long the storm lasts, 1s to 1h; what follows takes another minute")
	seed  = flag.Uint64("seed", 0, "seed of all faults; 0: a new one, which is printed")
)

const (
	namespace = "storm"
	patience  = 90 * time.Second // for what is sure to happen when the storm is over: client-go tries again after up to half a minute
	healsIn   = time.Minute      // longest time in which no write goes through, after a fault is over
)

func TestMain(m *testing.M) {
	flag.Parse()
	// What the real client-go says about streams that end is not about our program.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// storm is one run.
type storm struct {
	// Set by newStorm, never changed.
	t       *testing.T
	random  *rand.Rand // the faults'
	seeds   *rand.Rand // of all others
	folder  string
	address string
	page    *api // for commands and questions; waits long
	proxy   *program.Proxy
	began   time.Time

	// Owned by the goroutine of the test.
	viz     *program.Viz
	now     string // the fault that is being done
	count   map[string]int
	longest time.Duration // from a fault until a write went through
	after   string        // which fault
	faults  faults
	stderr  map[string]int // lines that the program wrote to it
	phases  []string       // when what was over

	ledger    ledger
	writers   []*writer
	watchers  []*watcher
	informers []*informer
	pagers    []*pager
	pages     []*page
	sleepers  []*sleeper
	counter   *counter
}

// TestStorm does everything at once to the program that a user, a network, an operator and a kernel may do, and then
// expects that every watcher was told exactly what was written, and that the program is at rest again.
func TestStorm(t *testing.T) {
	if *lasts < time.Second || *lasts > time.Hour {
		t.Fatalf("-storm %v: want 1s to 1h", *lasts)
	}
	s := newStorm(t)
	before := s.atRest(resources{})
	s.over("start")
	s.rage()
	s.over("watchers settled")
	s.promises()
	s.atRest(before)
	s.over("at rest")
	s.renew()
	after := s.atRest(before)
	s.over("at rest, renewed")
	s.judge()
	s.viz.Interrupt(t)
	if code := s.viz.ExitCode(t, program.EndsWithin); code != 0 {
		s.fault("Ctrl-C after the storm: exit status %d", code)
	}
	s.look()
	t.Logf("\n%s", s.table(before, after))
	for _, fault := range s.allFaults() {
		t.Error(fault)
	}
	if s.ledger.nWrites == 0 || s.count[lookedFor] == 0 || s.counter.nConflicts == 0 {
		t.Error("nothing was written, looked for, or in conflict")
	}
}

// lookedFor is counted for each write that has to have come to a raw watch.
const lookedFor = "writes looked for at raw watches"

// over notes when something was.
func (s *storm) over(what string) {
	s.phases = append(s.phases, fmt.Sprintf("%s %v", what, time.Since(s.began).Round(time.Second)))
}

// newStorm starts the program.
func newStorm(t *testing.T) *storm {
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("seed %d", n)
	s := &storm{
		t: t, random: rand.New(rand.NewPCG(n, 1)), seeds: rand.New(rand.NewPCG(n, 2)), folder: t.TempDir(),
		count: map[string]int{}, stderr: map[string]int{}, began: time.Now(), now: "start",
	}
	s.address = freeAddress(t, s.seeds)
	s.page = newAPI("http://" + s.address)
	s.page.client.Timeout = patience
	// A command that meets a connection which the program is just closing is not sent again.
	s.page.client.Transport = &http.Transport{DisableKeepAlives: true}
	s.start()
	s.proxy = program.StartProxy(t, s.viz)
	for _, each := range []string{namespace, "counter", "probe"} {
		if r := s.page.do("POST", "/api/v1/namespaces", configMap{Metadata: metadata{Name: each}}); r.code != http.StatusCreated {
			t.Fatalf("create namespace %s: %v", each, r)
		}
	}
	return s
}

// freeAddress returns an address of loopback below the ports that the kernel gives to clients: one of ours that knocks
// while the program is away would be given its port, and the program could not start again.
func freeAddress(t *testing.T, random *rand.Rand) string {
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+random.IntN(10000)))
		if err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// rage lets the clients in and draws faults until the time is over.
func (s *storm) rage() {
	writing, stopWriting := context.WithCancel(s.t.Context())
	watching, stopWatching := context.WithCancel(s.t.Context())
	var writers, watchers sync.WaitGroup
	defer watchers.Wait()
	defer stopWatching()
	defer writers.Wait()
	defer stopWriting()
	s.letIn()
	for _, each := range s.writers {
		writers.Go(func() { each.run(writing) })
	}
	writers.Go(func() { s.counter.run(writing) })
	for _, each := range s.watchers {
		watchers.Go(func() { each.run(watching) })
	}
	for _, each := range s.informers {
		watchers.Go(func() { each.shared.RunWithContext(watching) })
	}
	for _, each := range s.pagers {
		watchers.Go(func() { each.run(watching) })
	}
	for _, each := range s.pages {
		watchers.Go(func() { each.run(watching) })
	}
	for _, each := range s.sleepers {
		watchers.Go(func() { each.run(watching) })
	}

	end := time.Now().Add(*lasts)
	for time.Now().Before(end) {
		for _, each := range shuffled(s.random) {
			if time.Now().After(end) {
				break
			}
			s.strike(each)
		}
	}
	s.over("storm")
	s.now = "end of the storm"
	s.tidy()
	stopWriting()
	writers.Wait()
	s.settle()
}

// letIn makes the clients.
func (s *storm) letIn() {
	direct, cut := "http://"+s.address, s.proxy.URL
	random := func() *rand.Rand { return rand.New(rand.NewPCG(s.seeds.Uint64(), 3)) }
	for id := range nWriters {
		s.writers = append(s.writers, &writer{id: id, api: newAPI([]string{direct, cut}[id%2]), random: random(), ledger: &s.ledger})
	}
	for i := range 10 {
		w := &watcher{lister: newAPI([]string{direct, cut}[i%2]), random: random(), cuts: i%3 == 0}
		var selects selection
		if i >= 6 {
			selects, w.selector = inTurns, "turn=true"
		}
		if i%5 == 4 {
			w.slow = 20 * time.Millisecond
		}
		w.view = newView(fmt.Sprintf("watcher %d", i), selects)
		s.watchers = append(s.watchers, w)
	}
	for i := range 4 {
		typed, slow := i%2 == 0, time.Duration(i%2)*time.Millisecond
		each, err := newInformer(fmt.Sprintf("informer %d (typed %v)", i, typed), []string{cut, direct}[i/3], typed, slow)
		if err != nil {
			s.t.Fatal(err)
		}
		s.informers = append(s.informers, each)
	}
	s.pagers = append(s.pagers, &pager{api: newAPI(direct), random: random()}, &pager{api: newAPI(cut), random: random()})
	s.pages = append(s.pages, &page{base: direct}, &page{base: cut}, &page{base: direct, slow: 500 * time.Millisecond})
	for i := range 4 {
		s.sleepers = append(s.sleepers, &sleeper{address: s.address, webSocket: i%2 == 0, random: random()})
	}
	s.counter = &counter{api: func() *api { return newAPI(cut) }, random: random(), raised: map[int]bool{}}
}

// strike does one fault, and waits until the program writes again.
func (s *storm) strike(f fault) {
	s.now = f.name
	s.count[f.name]++
	f.do(s)
	s.heals()
	time.Sleep(s.moment() / 2)
}

// heals waits until a write goes through.
func (s *storm) heals() {
	began := time.Now()
	probe := newAPI("http://" + s.address)
	defer probe.close()
	var r reply
	through := func() bool {
		path, body := configMapsOf("probe"), configMap{Metadata: metadata{Name: "probe"}, Data: map[string]string{"at": time.Now().String()}}
		r = probe.do("PUT", path+"/probe", body)
		if r.code == http.StatusNotFound {
			r = probe.do("POST", path, body)
		}
		return r.code == http.StatusOK || r.code == http.StatusCreated
	}
	healed := eventually.Did(healsIn, through)
	took := time.Since(began)
	if took > s.longest {
		s.longest, s.after = took, s.now
	}
	if !healed {
		s.fault("no write goes through for %v: %v", took.Round(time.Second), r)
		s.t.Fatalf("the storm cannot go on\n%s", strings.Join(s.allFaults(), "\n"))
	}
}

// tidy puts everything back that faults have changed and not put back themselves.
func (s *storm) tidy() {
	s.knob("traffic.rate", "", "0")
	for _, mode := range modes {
		s.knob("switch", mode[0], mode[1])
		s.heals()
	}
	s.command("POST", "/viz/reset", nil)
}

// settle waits until every watcher holds what a list holds.
func (s *storm) settle() {
	r := s.command("GET", configMapsOf(namespace), nil)
	var list configMapList
	if err := r.read(&list); r.code != http.StatusOK || err != nil {
		s.t.Fatalf("the list after the storm: %v", r)
	}
	want := map[string]int{}
	for _, o := range objects(list.Items) {
		want[o.name] = o.n
	}
	why := ""
	if !eventually.Did(patience, func() bool { why = s.unsettled(want); return why == "" }) {
		s.fault("%s", why)
	}
}

func (s *storm) unsettled(want map[string]int) string {
	for _, each := range s.watchers {
		if why := each.view.differs(want); why != "" {
			return why
		}
	}
	for _, each := range s.informers {
		told, stored := difference(each.who, each.holds(), want), difference("the store of "+each.who, each.stored(), want)
		if told+stored != "" {
			return told + stored
		}
	}
	return ""
}

// promises asks the program whether one of its ten was broken.
func (s *storm) promises() {
	var promises struct {
		Rules []struct {
			Number, Count int
			Text          string
		}
	}
	if s.command("GET", "/viz/rules", nil).read(&promises) != nil || len(promises.Rules) == 0 {
		s.fault("/viz/rules tells nothing")
	}
	for _, each := range promises.Rules {
		if each.Count > 0 {
			s.fault("promise %d was broken %d times: %s", each.Number, each.Count, each.Text)
		}
	}
}

// renew ends both halves and lets others begin, in the same modes.
func (s *storm) renew() {
	for _, value := range []string{modes[0][2], modes[0][1]} {
		s.knob("switch", modes[0][0], value)
		s.heals()
	}
}

// judge compares what was written with what the raw watches were told.
func (s *storm) judge() {
	for _, each := range s.watchers {
		s.count[lookedFor] += each.view.missed(s.ledger.written)
	}
}
