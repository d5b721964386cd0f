package fold

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"listwatch/internal/observe/probe"
)

// Link is one queue in a chain of waiting: who cannot put anything into it, and why nothing is taken from it.
type Link struct {
	// a data-queue name; or "stream" and "wire", the two ways that are no queues of ours
	Queue   string `json:"queue"`
	Subject string `json:"subject"` // whose it is
	Len     int64  `json:"len"`
	Cap     int64  `json:"cap"`
	Sender  *Wait  `json:"sender"` // that has waited longest to put something in; nil if none does
	Taker   *Wait  `json:"taker"`  // what its receiver waits for instead of taking; nil: it waits for nothing
}

// holders are the points of waits during which nothing is taken from a queue.
var holders = holdersOf(probe.Points())

func holdersOf(all []probe.Point) map[string][]*probe.Info {
	held := map[string][]*probe.Info{}
	for _, p := range all {
		info := p.Info()
		for _, queue := range info.Holds.List() {
			held[queue] = append(held[queue], info)
		}
	}
	return held
}

// Why follows the waiting from a queue of a subject to its cause. The goroutine that takes from the queue waits at
// another queue, whose receiver waits at a third. The last link's receiver can end all of it: it waits for a client, a
// handler or a lock, or for nothing. The chain has at least one link, and no queue twice. It costs time in proportion
// to all waits of the resource.
func (r *Resource) Why(queue, subject string) []Link {
	var chain []Link
	seen := func(l Link) bool { return l.Queue == queue && l.Subject == subject }
	for queue != "" && !slices.ContainsFunc(chain, seen) {
		link := Link{Queue: queue, Subject: subject}
		link.Sender, link.Taker = r.senderOf(queue, subject), r.takerOf(queue, subject)
		if sub := r.Subjects[subject]; sub != nil && sub.Queues[queue] != nil {
			link.Len, link.Cap = sub.Queues[queue].Len, sub.Queues[queue].Cap
		}
		chain = append(chain, link)
		queue, subject = r.next(link.Taker)
	}
	return chain
}

// next returns the queue at which the goroutine waits, none if it is not for a queue.
func (r *Resource) next(w *Wait) (queue, subject string) {
	switch {
	case w == nil:
		return "", ""
	case w.Kind == string(probe.ForClient):
		if client := r.clientOf(w.Subject); client != "" {
			return "wire", client
		}
		return "", ""
	}
	return w.On, w.Subject
}

// waitsAtQueues returns the waits of goroutines that cannot put something into a queue, the oldest first.
func (r *Resource) waitsAtQueues() []Wait {
	var all []Wait
	for _, waits := range r.Waits {
		if waits[0].On != "" && waits[0].Kind != string(probe.ForWork) {
			all = append(all, waits...)
		}
	}
	slices.SortFunc(all, func(a, b Wait) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

// senderOf returns the oldest wait of a goroutine that would put something into a queue.
func (r *Resource) senderOf(queue, subject string) *Wait {
	for _, w := range r.waitsAtQueues() {
		if w.On == queue && w.Subject == subject {
			return &w
		}
	}
	return nil
}

// takerOf returns the oldest wait of the goroutine that takes from a queue.
func (r *Resource) takerOf(queue, subject string) *Wait {
	var oldest *Wait
	for _, info := range holders[queue] {
		for _, id := range slices.Sorted(maps.Keys(r.Waits)) {
			w := &r.Waits[id][0]
			if w.Point == info.Name && r.takes(w, queue, subject) && (oldest == nil || w.Seq < oldest.Seq) {
				oldest = w
			}
		}
	}
	if oldest == nil {
		return nil
	}
	copied := *oldest
	return &copied
}

// takes reports whether who waits is the receiver of this queue and not of another one's of that name. A watcher takes
// from its own input; the one dispatcher, whomever it waits for, takes from incoming; and the cacher's reflector takes
// from the youngest watch of etcd.
func (r *Resource) takes(w *Wait, queue, subject string) bool {
	if queue == "etcd3-result" {
		return subject == r.youngest("watchchan")
	}
	return r.kindOf(w.Subject) != r.kindOf(subject) || w.Subject == subject
}

func (r *Resource) kindOf(subject string) string {
	if sub := r.Subjects[subject]; sub != nil {
		return sub.Kind
	}
	return ""
}

// youngest returns the id of the subject of a kind that opened last, "" if there is none. It takes time in proportion
// to the subjects, of which there are a thousand: it does not sort them.
func (r *Resource) youngest(kind string) (id string) {
	var best *Subject
	for each, sub := range r.Subjects {
		later := best == nil || sub.Opened > best.Opened || sub.Opened == best.Opened && each < id
		if sub.Kind == kind && later {
			id, best = each, sub
		}
	}
	return id
}

// clientOf returns the id of the client that a watcher serves, if it is one that reports, too: it is called as it calls
// itself on the wire, or its informer is.
func (r *Resource) clientOf(watcher string) string {
	sub := r.Subjects[watcher]
	if sub == nil {
		return ""
	}
	agent, _, _ := strings.Cut(sub.Texts["WireOpened"], " ")
	agent, _, _ = strings.Cut(agent, "/")
	name := strings.TrimPrefix(agent, "listwatch-")
	if name == "" {
		return "" // it has not said who it is
	}
	for _, id := range []string{name, name + "-informer"} {
		if client := r.Subjects[id]; client != nil && client.Counts["FrameDecoded"] > 0 {
			return id
		}
	}
	return ""
}
