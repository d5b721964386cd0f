package clientgo

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/compat/program"
)

// ringCapacity is what the program of these tests remembers: a client that was away for longer is told 410.
const ringCapacity = 100

// script is what happens, a step a line: "+a" creates, "~a" changes, "-a" deletes.
//
//	cut WORDS     both clients lose their connections, and what WORDS say is written before they are back
//	expire WORDS  the same, and so much is written besides that the server has forgotten where they were
var script = []string{
	"+d ~d -a",
	"+a ~b ~b -d",
	"cut +e ~a -b",
	"cut",
	"+b -c ~e",
	"expire +f ~a -e",
	"+e -f -a ~b",
	"expire",
	"cut -b +c",
}

// diary is a handler that keeps what it is told. It serves both informers: their interfaces are the same but for the
// tombstone.
type diary struct {
	mu    sync.Mutex // guards the fields below
	lines []string
	state map[string]string // what is there, by what was told: key to name
}

func (d *diary) note(key, name, format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
	delete(d.state, key)
	if name != "" {
		d.state[key] = name
	}
}

func keyOf(obj any) string {
	key, _, _ := strings.Cut(nameOf(obj), "@")
	return key
}

// OnAdd is called by an informer.
func (d *diary) OnAdd(obj any, initial bool) {
	d.note(keyOf(obj), nameOf(obj), "add %s initial=%v", nameOf(obj), initial)
}

// OnUpdate is called by an informer.
func (d *diary) OnUpdate(old, obj any) {
	d.note(keyOf(obj), nameOf(obj), "update %s from %s", nameOf(obj), nameOf(old))
}

// OnDelete is called by an informer.
func (d *diary) OnDelete(obj any) {
	switch tombstone := obj.(type) {
	case deltafifo.DeletedFinalStateUnknown:
		d.note(tombstone.Key, "", "delete %s unseen, last %s", tombstone.Key, nameOf(tombstone.Obj))
	case cache.DeletedFinalStateUnknown:
		d.note(tombstone.Key, "", "delete %s unseen, last %s", tombstone.Key, nameOf(tombstone.Obj))
	default:
		d.note(keyOf(obj), "", "delete %s", nameOf(obj))
	}
}

// catchUp waits until what was told adds up to what is stored.
func (d *diary) catchUp(t *testing.T, who string, want []string) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		got := slices.Sorted(maps.Values(d.state))
		return slices.Equal(got, want), fmt.Sprintf("%s knows %v, want %v", who, got, want)
	})
}

// until waits for a line that begins with prefix, and returns everything up to it since the last call.
func (d *diary) until(t *testing.T, who, prefix string) []string {
	t.Helper()
	var lines []string
	program.Eventually(t, patience, func() (bool, string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i, line := range d.lines {
			if strings.HasPrefix(line, prefix) {
				lines, d.lines = d.lines[:i+1], d.lines[i+1:]
				return true, ""
			}
		}
		return false, fmt.Sprintf("%s does not hear %q:\n%s", who, prefix, strings.Join(d.lines, "\n"))
	})
	return lines
}

func startOurs(t *testing.T, server string, watchList bool, fifo string) *diary {
	t.Helper()
	transport := &http.Transport{}
	client := listwatch.NewRESTClient(listwatch.Config{
		Base: must(url.Parse(server)), HTTP: &http.Client{Transport: transport}, UserAgent: "ours", Clock: clock.RealClock{}, QPS: -1,
	})
	ours := informer.NewSharedIndexInformer(informer.Config{
		Name: "configmaps", ListerWatcher: listwatch.NewListWatch(client, "configmaps", metav1.NamespaceAll, nil),
		ExampleObject: &corev1.ConfigMap{}, Clock: clock.RealClock{}, UseWatchList: watchList, FIFO: fifo,
	})
	d := &diary{state: map[string]string{}}
	must(ours.AddEventHandler(d))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}) // closed when the informer has ended
	go func() {
		defer close(ended)
		ours.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		transport.CloseIdleConnections()
	})
	return d
}

func startTheirs(t *testing.T, server string) *diary {
	t.Helper()
	client := must(kubernetes.NewForConfig(&rest.Config{Host: server, QPS: -1, UserAgent: "theirs"}))
	factory := informers.NewSharedInformerFactory(client, 0)
	d := &diary{state: map[string]string{}}
	must(factory.Core().V1().ConfigMaps().Informer().AddEventHandler(d))
	stop := make(chan struct{}) // closed with the test
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	return d
}

// TestBothInformersHearTheSame plays the script in front of both, with everything there is between a write and a
// handler: etcd, the program, real connections that break. After each step both must have made the same calls, down to
// resource versions, tombstones and who was added initially. Only within the answer to a loss of history the order is
// free: it is that of a map.
func TestBothInformersHearTheSame(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("watch-list %v", watchList), func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			for _, fifo := range []string{informer.FIFOReal, informer.FIFODelta} {
				t.Run(fifo, func(t *testing.T) {
					t.Parallel()
					playScript(t, watchList, fifo)
				})
			}
		})
	}
}

func playScript(t *testing.T, watchList bool, fifo string) {
	v := program.StartViz(t, append([]string{fmt.Sprint("-ring-capacity=", ringCapacity)}, alone...)...)
	p := program.StartProxy(t, v)
	s := &stage{t: t, viz: v, proxy: p, maps: clientset(t, v).CoreV1().ConfigMaps("default")}
	s.write("+a +b +c +zz")
	s.settled()
	s.ours, s.theirs = startOurs(t, p.URL, watchList, fifo), startTheirs(t, p.URL)
	s.begin()
	for _, step := range script {
		s.step(step)
	}
}

// stage is both informers with the program.
type stage struct {
	t            *testing.T
	viz          *program.Viz
	proxy        *program.Proxy
	maps         corev1client.ConfigMapInterface
	ours, theirs *diary
	turn         int
}

func (s *stage) step(step string) {
	s.t.Helper()
	kind, words, _ := strings.Cut(step, " ")
	switch kind {
	case "cut", "expire":
		s.proxy.Cut()
		s.write(words)
		for range ringCapacity + 20 {
			if kind == "expire" {
				s.write("~zz")
			}
		}
		s.settled()
		s.proxy.Release()
	default:
		s.write(step)
	}
	s.compare(step, kind == "expire")
}

// settled returns when the server's cache has everything that was written.
func (s *stage) settled() { stored(s.t, s.viz) }

// begin compares what both hear of the state they find. Its order is free: a list has one, a map has none.
func (s *stage) begin() {
	s.t.Helper()
	var said [2][]string
	for i, d := range []*diary{s.ours, s.theirs} {
		for range 4 {
			said[i] = append(said[i], d.until(s.t, "a beginner", "add ")...)
		}
		slices.Sort(said[i])
	}
	if diff := cmp.Diff(said[1], said[0]); diff != "" {
		s.t.Errorf("the beginning: -theirs +ours\n%s", diff)
	}
}

// compare waits until both have caught up, writes a last word, and compares what both heard up to it.
func (s *stage) compare(step string, unordered bool) {
	s.t.Helper()
	want := stored(s.t, s.viz)
	s.ours.catchUp(s.t, "ours", want)
	s.theirs.catchUp(s.t, "theirs", want)
	last := "update " + nameOf(s.update("zz"))
	ours, theirs := s.ours.until(s.t, "ours", last), s.theirs.until(s.t, "theirs", last)
	if unordered {
		slices.Sort(ours)
		slices.Sort(theirs)
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		s.t.Errorf("%s: -theirs +ours\n%s", step, diff)
	}
	if len(ours) < 2 && strings.ContainsAny(step, "+~-") {
		s.t.Errorf("%s: only the last word was heard: %v", step, ours)
	}
}

func (s *stage) write(words string) {
	s.t.Helper()
	for _, word := range strings.Fields(words) {
		var err error
		switch name := word[1:]; word[0] {
		case '+':
			_, err = s.maps.Create(s.t.Context(), configMap(name, "k", "v"), metav1.CreateOptions{})
		case '~':
			s.update(name)
		case '-':
			err = s.maps.Delete(s.t.Context(), name, metav1.DeleteOptions{})
		default:
			err = fmt.Errorf("no such word")
		}
		if err != nil {
			s.t.Fatalf("%s: %v", word, err)
		}
	}
}

func (s *stage) update(name string) *corev1.ConfigMap {
	s.t.Helper()
	s.turn++
	patch := fmt.Appendf(nil, `{"data":{"turn":"%d"}}`, s.turn)
	updated, err := s.maps.Patch(s.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		s.t.Fatalf("change %s: %v", name, err)
	}
	return updated
}
