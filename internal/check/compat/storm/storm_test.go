package storm

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
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
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

var (
	lasts = flag.Duration("storm", 25*time.Second, "how long the storm lasts, 1s to 1h; half a minute follows")
	seed  = flag.Uint64("seed", 0, "seed of all faults; 0: a new one, which is printed")
)

const (
	namespace  = "storm"
	endOfStorm = "end of the storm" // storm.now after the last fault
	// patience limits each wait. After the storm, client-go may wait almost a minute before it retries.
	patience = 90 * time.Second
	healsIn  = time.Minute // from a fault to a successful write; only the pauses between the attempts count

	// After all clients have left, the program may hold this much more than before the storm. A leak would grow with
	// every client or fault, by hundreds. At rest, goroutine counts vary by restless at most. After a burst, four
	// watches of etcd may each keep ten goroutines instead of one. etcd may hold open a snapshot and the segment of its
	// log that it prepares; segments in use do not count. The program's log keeps 65,536 records on the heap.
	restless       = 10
	moreGoroutines = restless + 4*9
	moreFiles      = 8
	moreHeap       = 100 << 20
)

func TestMain(m *testing.M) {
	flag.Parse()
	// client-go would log the ends of streams, which the storm causes.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// storm is one run of the test.
type storm struct {
	// Set by newStorm, never changed.
	t       *testing.T
	random  *rand.Rand // for the faults
	seeds   *rand.Rand // for everything else
	folder  string
	address string
	proxy   *proxy
	began   time.Time

	// Owned by the goroutine of the test.
	viz      *program.Viz
	now      string         // the current fault
	struck   map[string]int // times that each fault has struck, by name
	checked  int            // records that the program has checked against its rules
	longest  string         // worst and the name of its fault, as text
	worst    time.Duration  // the longest time from a fault to a successful write
	watchers []*watcher
	clients  []client // all clients except the writers

	ledger ledger
	faults faults // found by all checks
}

// client is a watcher, sleeper or informer that uses the program during the storm.
type client interface {
	run(ctx context.Context) // returns when ctx is done
	String() string          // a summary of its work
}

// TestStorm exposes the program to faults that users, networks, operators and kernels cause. No watch may lose, repeat
// or reorder an event. Afterward, all watchers must hold the stored objects, and the program must be at rest again.
func TestStorm(t *testing.T) {
	require.True(t, *lasts >= time.Second && *lasts <= time.Hour, "-storm %v: want 1s to 1h", *lasts)
	s := newStorm(t)
	before := s.atRest(resources{})
	s.rage()
	after := s.atRest(before)
	looked := 0 // writes that a raw watch must have received
	for _, each := range s.watchers {
		looked += each.missed(s.ledger.written)
	}
	s.interrupt(program.HangsAfter)
	t.Logf("%v, race build: %v; struck: %v; longest time without a write: %s", time.Since(s.began), bubble.Race,
		s.struck, s.longest)
	t.Logf("%d writes acknowledged, %d refused, %d looked for at raw watches; %d records held to the rules",
		len(s.ledger.written), s.ledger.nRefused, looked, s.checked)
	t.Logf("before %+v, after %+v; %v", before, after, s.clients)
	assert.Equal(t, 0, s.faults.n, "%s", strings.Join(s.faults.told, "\n"))
	assert.True(t, looked != 0 && s.ledger.nRefused != 0, "nothing was looked for, or refused")
}

// newStorm starts the program and a proxy in front of it, and creates two namespaces.
func newStorm(t *testing.T) *storm {
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("seed %d", n)
	s := &storm{t: t, random: rand.New(rand.NewPCG(n, 1)), seeds: rand.New(rand.NewPCG(n, 2)), folder: t.TempDir(),
		struck: map[string]int{}, began: time.Now(), now: "start"}
	s.ledger.faults = &s.faults
	s.address = freeAddress(t, s.seeds)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections) // client-go uses this transport
	s.start()
	s.proxy = startProxy(t, s.viz)
	for _, each := range []string{namespace, "probe"} {
		body := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: each}}
		code, answer := s.ask(patience, "POST", "/api/v1/namespaces", body)
		require.Equal(t, http.StatusCreated, code, "create namespace %s: %s", each, answer)
	}
	return s
}

// freeAddress returns an address of loopback with a port that the kernel does not give to outgoing connections. While
// the program is down, no client's connection can take this port, so the program can restart on it.
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

// fault adds an error of the program to faults, with the current fault of the storm and the time.
func (s *storm) fault(format string, args ...any) {
	at := time.Since(s.began).Round(time.Millisecond)
	s.faults.add("%s, at %v: %s", s.now, at, fmt.Sprintf(format, args...))
}

// rage starts the clients and causes random faults until the time is over. Then it undoes the faults' lasting effects,
// and waits until every watcher and informer holds the same objects as a list.
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
			s.now = each.name
			s.struck[each.name]++
			each.do(s)
			s.heals()
			time.Sleep(s.moment() / 2)
		}
	}
	s.now = endOfStorm
	s.knob("traffic.rate", "", "0")
	for _, mode := range modes {
		s.knob("switch", mode[0], mode[1])
		s.heals()
	}
	s.command("POST", "/viz/reset", nil)
	stopWriting()
	writers.Wait()
	s.settle()
}

// letIn creates the clients and returns the writers.
func (s *storm) letIn() (writers []*writer) {
	both := []string{"http://" + s.address, s.proxy.URL}
	random := func() *rand.Rand { return rand.New(rand.NewPCG(s.seeds.Uint64(), 3)) }
	for i := range nWriters {
		writers = append(writers, &writer{id: i, api: configMaps(both[i%2], namespace, callWithin), random: random(),
			ledger: &s.ledger})
	}
	for i := range 10 {
		w := &watcher{view: newView(fmt.Sprintf("watcher %d", i), &s.faults), random: random(), cuts: i%3 == 0,
			lister: configMaps(both[i%2], namespace, callWithin), stream: configMaps(both[i%2], namespace, 0)}
		if i%5 == 4 {
			w.slow = 20 * time.Millisecond
		}
		s.watchers, s.clients = append(s.watchers, w), append(s.clients, w)
	}
	for i := range 4 {
		s.clients = append(s.clients, newInformer(both[i%2], makes[i%3]),
			&sleeper{address: s.address, webSocket: i%2 == 0, random: random()})
	}
	return writers
}

// heals waits until a write succeeds, and notes the longest wait. If no write succeeds, heals ends the test.
func (s *storm) heals() {
	began, err := time.Now(), error(nil)
	probes := configMaps("http://"+s.address, "probe", callWithin)
	healed := eventually.Did(healsIn, func() bool {
		probe := counted("probe", int(time.Now().UnixNano()), "")
		if _, err = probes.Update(s.t.Context(), probe, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			_, err = probes.Create(s.t.Context(), probe, metav1.CreateOptions{})
		}
		return err == nil
	})
	if took := time.Since(began); took > s.worst {
		s.worst, s.longest = took, fmt.Sprintf("%v, after %s", took.Round(time.Millisecond), s.now)
	}
	require.True(s.t, healed, "the storm cannot go on: no write goes through after %s: %v\n%s", s.now, err,
		strings.Join(s.faults.told, "\n"))
}

// settle waits until every watcher and every informer holds the same objects as a list.
func (s *storm) settle() {
	list, err := configMaps("http://"+s.address, namespace, patience).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	want := map[string]int{}
	for i := range list.Items {
		o := objectOf(&list.Items[i])
		want[o.name] = o.n
	}
	for _, each := range s.clients {
		holder, ok := each.(interface{ holds() map[string]int })
		if ok && !eventually.Did(patience, func() bool { return maps.Equal(holder.holds(), want) }) {
			s.fault("%v\nholds     %v\nthe list  %v", each, holder.holds(), want)
		}
	}
}

// resources are the resources that the program uses. heap is the live heap after the last of nGC collections. Other
// resident memory is garbage, etcd's file, and the race detector's memory, which never shrinks.
type resources struct{ goroutines, fds, heap, nGC int }

// atRest waits until the program's resources vary no more than at rest, the garbage collector has run twice, and the
// growth since before is within the limits. If before is the zero value, there is no limit.
func (s *storm) atRest(before resources) (now resources) {
	var most, least resources // the range of the latest answers, while they are alike
	alike, nGC := 0, s.resources().nGC
	rests := eventually.Did(patience, func() bool {
		now = s.resources()
		most.goroutines, least.goroutines = max(most.goroutines, now.goroutines), min(least.goroutines, now.goroutines)
		alike++
		if most.goroutines-least.goroutines > restless || now.fds != most.fds {
			alike, most, least = 0, now, now
		}
		return alike >= 20 && now.nGC >= nGC+2 && (before == resources{} ||
			most.goroutines <= before.goroutines+moreGoroutines &&
				now.fds <= before.fds+moreFiles && now.heap <= before.heap+moreHeap)
	})
	if !rests {
		s.fault("not at rest after %v: %+v, before the storm %+v", patience, now, before)
	}
	return now
}

// resources reads /metrics. It does not count the open files of etcd's write-ahead log, which etcd holds for long.
func (s *storm) resources() (r resources) {
	targets := map[string]*int{"go_goroutines": &r.goroutines, "process_open_fds": &r.fds,
		"go_gc_heap_live_bytes": &r.heap, "go_gc_cycles_total_gc_cycles_total": &r.nGC}
	for lines := bufio.NewScanner(bytes.NewReader(s.command("GET", "/metrics", nil))); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if target := targets[name]; target != nil {
			value, _ := strconv.ParseFloat(text, 64) // atRest does not accept 0 collections
			*target = int(value)
		}
	}
	segments, err := filepath.Glob(filepath.Join(s.folder, "member", "wal", "*.wal"))
	require.NoError(s.t, err)
	r.fds -= len(segments)
	return r
}
