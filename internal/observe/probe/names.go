package probe

import (
	"cmp"
	"strings"

	"k8s.io/utils/lru"
)

// maxNames is how many watchers have a name, those that have gone included: the ones that were named last.
const maxNames = 8192

// Names are what the clients of watchers are called. All methods are safe for concurrent use.
type Names struct {
	of *lru.Cache // by resource and watcher
}

// NewNames returns names of no watcher.
func NewNames() *Names { return &Names{lru.New(maxNames)} }

// Note takes the name that a record tells: where a stream is opened, its client says what it calls itself.
func (n *Names) Note(r *Record) {
	if r.Point == WireOpened && r.Subject != "" {
		n.Set(r.Resource, r.Subject, r.Texts.Get(FieldAgent))
	}
}

// Set says what the client of a watcher calls itself on the wire.
func (n *Names) Set(resource, watcher, agent string) {
	n.of.Add([2]string{resource, watcher}, strings.Clone(AgentOf(agent)))
}

// Sentence is [Record.Sentence] with a watcher called as its client.
func (n *Names) Sentence(r *Record) string {
	named := *r
	if name, known := n.of.Get([2]string{r.Resource, r.Subject}); known {
		named.Subject = cmp.Or(name.(string), r.Subject)
	}
	return named.Sentence()
}

// AgentOf returns what a client is called that calls itself agent on the wire: the first word, without a version.
func AgentOf(agent string) string {
	word, _, _ := strings.Cut(agent, " ")
	name, _, _ := strings.Cut(word, "/")
	return strings.TrimPrefix(cmp.Or(name, word), "listwatch-")
}
