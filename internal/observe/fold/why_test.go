package fold

import (
	"strings"
	"testing"

	"listwatch/internal/observe/probe"
)

// told returns a chain in one line: each queue with what its receiver waits for.
func told(chain []Link) string {
	var parts []string
	for _, l := range chain {
		kind := "nothing"
		if l.Taker != nil {
			kind = l.Taker.Kind
		}
		parts = append(parts, l.Subject+"/"+l.Queue+" ("+kind+")")
	}
	return strings.Join(parts, " → ")
}

// stalled is a server half whose watcher w3 has a client that does not read. w4 is served.
func stalled() []probe.Record {
	return []probe.Record{
		rec(probe.WatchChanOpened, "etcd3-1", "", "", 1),
		rec(probe.WatcherAdded, "w3", "", "", 1, 10),
		rec(probe.WatcherAdded, "w4", "", "", 1, 10),
		rec(probe.ResultReceived, "w3", "ADDED", "a", 5, 10, 10), // and it never gets rid of it
		rec(probe.ResultReceived, "w4", "ADDED", "a", 5, 0, 10),
		rec(probe.WireFlushed, "w4", "", "a", 5),
		rec(probe.ResultBlocked, "w3", "ADDED", "b", 6),
		rec(probe.InputBlocked, "w3", "ADDED", "c", 7),
		rec(probe.IncomingBlocked, "cacher", "ADDED", "d", 8),
		rec(probe.Etcd3ResultBlocked, "etcd3-1", "ADDED", "e", 9),
		rec(probe.Etcd3IncomingBlocked, "etcd3-1", "", "f", 10),
	}
}

func TestWhyIsThisBlocked(t *testing.T) {
	toTheClient := "w3/result (client)"
	opened := func(agent string) []probe.Record {
		r := rec(probe.WireOpened, "w3", "", "", 0)
		r.Text = agent + " /api/v1/pods?watch=1"
		return []probe.Record{r}
	}
	tests := []struct {
		name    string
		records []probe.Record
		queue   string
		subject string
		want    string
	}{
		{"from etcd to the client", stalled(), "etcd3-incoming", "etcd3-1", "etcd3-1/etcd3-incoming (room) → " +
			"etcd3-1/etcd3-result (room) → cacher/incoming (room) → w3/input (room) → " + toTheClient},
		{"from the middle", stalled(), "incoming", "cacher", "cacher/incoming (room) → w3/input (room) → " +
			toTheClient},
		{"the innocent", stalled(), "input", "w4", "w4/input (nothing)"},
		{"an older watch of etcd", append([]probe.Record{rec(probe.WatchChanOpened, "etcd3-0", "", "", 1)},
			stalled()...), "etcd3-result", "etcd3-0", "etcd3-0/etcd3-result (nothing)"},
		{"into a client of ours, whose queue is locked", append(append(stalled(),
			opened("listwatch-informer/v1")...),
			rec(probe.FrameDecoded, "informer", "ADDED", "a", 4),
			rec(probe.StreamBlocked, "informer", "ADDED", "a", 4),
			rec(probe.FIFOLockWaited, "informer", "", "", 0),
		), "result", "w3",
			"w3/result (client) → informer/wire (taker) → informer/stream (lock) → informer/fifo (nothing)"},
		{"into an informer of a client of ours", append(append(stalled(),
			opened("listwatch-scheduler/v1")...),
			rec(probe.FrameDecoded, "informer", "ADDED", "a", 4),
			rec(probe.FrameDecoded, "scheduler-informer", "ADDED", "a", 4),
			rec(probe.StreamBlocked, "scheduler-informer", "ADDED", "a", 4),
		), "result", "w3",
			"w3/result (client) → scheduler-informer/wire (taker) → scheduler-informer/stream (nothing)"},
		{"a client that tells nothing", append(stalled(), opened("kubectl/v1.37")...), "result", "w3", toTheClient},
		{"a slow handler holds up no goroutine", []probe.Record{
			rec(probe.ListenerAdded, "observer", "", "", 0),
			rec(probe.HandlerCalled, "observer", "ADDED", "a", 1),
			rec(probe.PendingPushed, "observer", "ADDED", "b", 2, 1, 1024),
		}, "pending", "observer", "observer/pending (return)"},
		{"", []probe.Record{
			rec(probe.WorkGot, "scheduler", "", "default/a", 0, 3, 0),
			rec(probe.WorkGot, "kubelet", "", "default/a", 0, 3, 0),
			rec(probe.WorkDone, "kubelet", "", "default/a", 0),
		}, "workqueue", "kubelet", "kubelet/workqueue (nothing)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pods := folded(in(test.records...)).Resources["pods"]
			if got := told(pods.Why(test.queue, test.subject)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestTheChainBeginsWithWhoWaitsLongest(t *testing.T) {
	pods := folded(in(stalled()...)).Resources["pods"]
	link := pods.Why("incoming", "cacher")[0]
	if link.Sender == nil || link.Sender.Point != "IncomingBlocked" || link.Sender.Key != "d" || link.Sender.Seq != 9 {
		t.Errorf("sender: got %+v, want the reflector with d, since record 9", link.Sender)
	}
}
