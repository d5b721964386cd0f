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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/rules"
)

var (
	lasts = flag.Duration("storm", 25*time.Second, "how long the storm lasts, 1s to 1h; half a minute follows")
	seed  = flag.Uint64("seed", 0, "seed of all faults; 0: a new one, which is printed")
)

const (
	namespace = "storm"
	// for what is sure to happen when the storm is over: client-go tries again after up to half a minute
	patience = 90 * time.Second
	healsIn  = time.Minute // longest time in which no write goes through, after a fault is over
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
	page    *page // for commands and questions; waits long
	proxy   *program.Proxy
	began   time.Time

	// Owned by the goroutine of the test.
	viz     *program.Viz
	now     string // the fault that is being done
	count   map[string]int
	longest time.Duration // from a fault until a write went through
	after   string        // which fault
	faults
	stderr map[string]int // lines that the program wrote to it
	phases []string       // when what was over

	ledger    ledger
	watchers  []*watcher
	informers []*informer
	clients   []client // all of them, and all others that only read
}

// client is one that the program serves during the storm.
type client interface {
	name() string
	run(ctx context.Context) // until ctx is done
	String() string          // what it has done
	wrong() []string         // what it must not have been told
}

// TestStorm does everything at once to the program that a user, a network, an operator and a kernel may do, and then
// expects that every watcher was told exactly what was written, and that the program is at rest again.
func TestStorm(t *testing.T) {
	require.True(t, *lasts >= time.Second && *lasts <= time.Hour, "-storm %v: want 1s to 1h", *lasts)
	s := newStorm(t)
	before := s.atRest(resources{})
	s.over("start")
	s.rage()
	s.over("watchers settled")
	s.atRest(before)
	s.over("at rest")
	s.renew()
	after := s.atRest(before)
	s.over("at rest, renewed")
	s.judge()
	s.interrupt(program.EndsWithin)
	t.Logf("\n%s", s.table(before, after))
	for _, fault := range s.allFaults() {
		t.Error(fault)
	}
	assert.True(t, s.ledger.nWrites != 0 && s.count[lookedFor] != 0 && s.ledger.nConflicts != 0,
		"nothing was written, looked for, or in conflict")
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
	s.page = newPage("http://"+s.address, patience)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections) // client-go's
	s.start()
	s.proxy = program.StartProxy(t, s.viz)
	for _, each := range []string{namespace, "probe"} {
		body := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: each}}
		if r := s.page.do("POST", "/api/v1/namespaces", body); r.code != http.StatusCreated {
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
	for _, each := range s.letIn() {
		writers.Go(func() { each.run(writing) })
	}
	for _, each := range s.clients {
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

// letIn makes the clients and returns the writers.
func (s *storm) letIn() (writers []*writer) {
	both := []string{"http://" + s.address, s.proxy.URL}
	direct, cut := both[0], both[1]
	random := func() *rand.Rand { return rand.New(rand.NewPCG(s.seeds.Uint64(), 3)) }
	for i := range nWriters {
		api := configMaps(both[i%2], namespace, callWithin)
		writers = append(writers, &writer{api: api, random: random(), ledger: &s.ledger})
	}
	for i := range 10 {
		w := &watcher{
			lister: configMaps(both[i%2], namespace, callWithin), stream: configMaps(both[i%2], namespace, 0),
			random: random(), cuts: i%3 == 0,
		}
		var selects selection
		if i >= 6 {
			selects, w.selector = inTurns, "turn=true"
		}
		if i%5 == 4 {
			w.slow = 20 * time.Millisecond
		}
		w.view = newView(fmt.Sprintf("watcher %d", i), selects)
		s.watchers, s.clients = append(s.watchers, w), append(s.clients, w)
	}
	for i := range 4 {
		typed := i%2 == 0
		each := newInformer(fmt.Sprintf("informer %d (typed %v)", i, typed), []string{cut, direct}[i/3], typed)
		s.informers, s.clients = append(s.informers, each), append(s.clients, each)
	}
	for i := range 4 {
		s.clients = append(s.clients, &sleeper{address: s.address, webSocket: i%2 == 0, random: random()})
	}
	return writers
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
	began, err := time.Now(), error(nil)
	probes := configMaps("http://"+s.address, "probe", callWithin)
	healed := eventually.Did(healsIn, func() bool {
		probe := counted("probe", int(time.Now().UnixNano()), 0)
		if _, err = probes.Update(s.t.Context(), probe, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			_, err = probes.Create(s.t.Context(), probe, metav1.CreateOptions{})
		}
		return err == nil
	})
	took := time.Since(began)
	if took > s.longest {
		s.longest, s.after = took, s.now
	}
	if !healed {
		s.fault("no write goes through for %v: %v", took.Round(time.Second), err)
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
	list, err := configMaps("http://"+s.address, namespace, patience).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatalf("the list after the storm: %v", err)
	}
	want := map[string]int{}
	for _, o := range objects(list) {
		want[o.name] = o.n
	}
	why := ""
	if !eventually.Did(patience, func() bool { why = s.unsettled(want); return why == "" }) {
		s.fault("%s", why)
	}
}

func (s *storm) unsettled(want map[string]int) string {
	for _, each := range s.watchers {
		if why := each.differs(want); why != "" {
			return why
		}
	}
	for _, each := range s.informers {
		if why := each.differs(want); why != "" {
			return why
		}
	}
	return ""
}

// promises asks the program, which holds its rules to its own log, whether one was broken.
func (s *storm) promises() {
	var report rules.Report
	if s.command("GET", "/viz/rules", nil).read(&report) != nil || report.Checked == 0 {
		s.fault("/viz/rules tells nothing")
	}
	s.count["records held to the rules"] += int(report.Checked)
	s.count["records that left the log before"] += int(report.Missed)
	for _, each := range report.Rules {
		if each.Count > 0 {
			s.fault("promise %d was broken %d times: %s %+v", each.Number, each.Count, each.Text, each.Breaches)
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
		s.count[lookedFor] += each.missed(s.ledger.written)
	}
}
