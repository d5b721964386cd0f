package probe

import (
	"cmp"
	"strings"
	"sync"
)

// maxNames is how many watchers have a name, those that have gone included.
const maxNames = 8192

// Names are what the clients of watchers are called. The zero value has none; all methods are safe for concurrent use.
type Names struct {
	mu    sync.Mutex           // guards the fields below; no other lock is taken while it is held
	of    map[[2]string]string // by resource and watcher
	order [][2]string          // in which they got their first names
}

// Note takes the name that a record tells: where a stream is opened, its client says what it calls itself.
func (n *Names) Note(r *Record) {
	if r.Point == WireOpened && r.Subject != "" {
		n.Set(r.Resource, r.Subject, r.Text)
	}
}

// Set says what the client of a watcher calls itself on the wire.
func (n *Names) Set(resource, watcher, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[[2]string]string{}
	}
	id := [2]string{resource, watcher}
	if _, known := n.of[id]; !known {
		n.order = append(n.order, id)
	}
	n.of[id] = strings.Clone(AgentOf(text))
	if len(n.order) > maxNames {
		delete(n.of, n.order[0])
		n.order = n.order[1:]
	}
}

// Sentence is [Record.Sentence] with a watcher called as its client.
func (n *Names) Sentence(r *Record) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	named := *r
	named.Subject = cmp.Or(n.of[[2]string{r.Resource, r.Subject}], r.Subject)
	return named.Sentence()
}

// AgentOf returns what a client is called that calls itself text on the wire: the first word, without a version.
func AgentOf(text string) string {
	word, _, _ := strings.Cut(text, " ")
	name, _, _ := strings.Cut(word, "/")
	return strings.TrimPrefix(cmp.Or(name, word), "listwatch-")
}
