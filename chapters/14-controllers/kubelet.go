package controllers

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	reflector "listwatch/chapters/03-reflector"
	listwatch "listwatch/chapters/09-listwatch"
	indexer "listwatch/chapters/11-indexer"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// KubeletConfig describes a [Kubelet]. NodeName, Client and Clock are required.
type KubeletConfig struct {
	NodeName     string
	Client       *listwatch.RESTClient // reports to the same Probe
	Clock        clock.WithTicker
	Probe        *probe.Probe // bound to the subject as which the kubelet appears: "kubelet-node1"
	UseWatchList bool         // as in [reflector.Config]
	Recorder     *EventRecorder
}

const (
	startAfter  = time.Second      // from the pod's arrival until its containers run
	finishAfter = 10 * time.Second // from then until they end, unless they are to run forever
	stopAfter   = time.Second      // from the wish to delete until they have stopped, at most the grace period
)

// Kubelet brings the pods of one node to life and to their end. There are no containers: it waits a little and says
// that they run. But what it is told, when, and what it writes, is as with a real one.
//
// The pod holds all that it needs to know. It compares what is with what should be, does one step, and waits for the
// event of the result, as for any other change.
//
// Differs: k8s.io/kubernetes/pkg/kubelet has a worker per pod and compares with what runs on the machine; here one
// worker does everything and the status is the machine. Writes status by PUT with the resourceVersion that was looked
// at, hence conflicts; upstream's status manager PATCHes.
type Kubelet struct {
	// Set by NewKubelet, never changed.
	config    KubeletConfig
	hostIP    string       // 192.168.0.N, where N is the number at the end of the node's name
	podCIDR   netip.Prefix // where pods get their addresses from: 10.N.0.0/16
	store     *undeltaStore
	reflector *reflector.Reflector
	queue     *RateLimitingQueue
	worker    *worker

	// Owned by the worker.
	seen   map[string]seenStep // by key
	nextIP netip.Addr
}

// NewKubelet returns a kubelet that does nothing until [Kubelet.Run].
func NewKubelet(config KubeletConfig) *Kubelet {
	n := nodeNumber(config.NodeName)
	network := netip.AddrFrom4([4]byte{10, n, 0, 0})
	k := &Kubelet{config: config, seen: map[string]seenStep{}, nextIP: network,
		hostIP: fmt.Sprint("192.168.0.", n), podCIDR: netip.PrefixFrom(network, 16)}
	k.queue = NewRateLimitingQueue(config.Clock, config.Probe)
	// This store reports nothing: the indexer on the picture is the informer's.
	k.store = &undeltaStore{Indexer: indexer.NewIndexer(indexer.Config{}), queue: k.queue}
	k.worker = &worker{queue: k.queue, reconciler: k, probe: config.Probe}
	k.reflector = reflector.New(reflector.Config{
		Name:          "kubelet " + config.NodeName,
		ListerWatcher: config.Client.ListWatch("pods", metav1.NamespaceAll, k.onThisNode),
		Store:         k.store,
		ExpectedType:  &corev1.Pod{},
		Clock:         config.Clock,
		Probe:         config.Probe,
		UseWatchList:  config.UseWatchList,
	})
	return k
}

// nodeNumber returns the number at the end of a node's name, so that nodes with different numbers give out different
// addresses; 0 if there is none that fits a byte.
func nodeNumber(name string) byte {
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	n, err := strconv.ParseUint(digits, 10, 8)
	if err != nil {
		return 0
	}
	return byte(n)
}

// onThisNode is what a kubelet asks for. A pod begins to match when it is bound, long after it was created, and so
// arrives here as ADDED.
func (k *Kubelet) onThisNode(options *metav1.ListOptions) {
	options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", k.config.NodeName).String()
}

// Run follows the node's pods until ctx is done and all its goroutines have ended.
func (k *Kubelet) Run(ctx context.Context) {
	var g routine.Group
	g.Go(ctx, "kubelet.register", k.register)
	g.Go(ctx, "kubelet.reflector", k.reflector.Run)
	g.Go(ctx, "kubelet.waitingLoop", k.queue.Run)
	g.Go(ctx, "kubelet.worker", k.worker.run)
	g.Wait()
}

// reconcile does the next step about one pod, if its time has come.
func (k *Kubelet) reconcile(ctx context.Context, key string) (outcome, error) {
	obj, exists, _ := k.store.GetByKey(key) // never an error
	if !exists {
		delete(k.seen, key)
		return outcome{did: key + " is gone"}, nil
	}
	pod := obj.(*corev1.Pod)
	step := nextStep(pod)
	if step == nothing {
		delete(k.seen, key)
		return outcome{did: fmt.Sprintf("%s is %s: nothing to do", key, pod.Status.Phase)}, nil
	}
	if rest := k.rest(key, pod, step); rest > 0 {
		return outcome{did: fmt.Sprintf("%s has to %s", key, step), again: rest, why: fmt.Sprintf("it will %s then",
			step)}, nil
	}
	if err := k.do(ctx, step, pod); err != nil {
		return outcome{}, fmt.Errorf("%s %s: %w", step, key, err)
	}
	if step == launch {
		k.recordLaunch(pod)
	}
	return outcome{did: fmt.Sprintf("%s: %s is done", key, step), wrote: 1}, nil
}
