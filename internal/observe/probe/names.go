package probe

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/utils/lru"
)

// maxNames is the maximum number of watchers with a name, including closed ones. The least recently used are dropped.
const maxNames = 8192

// Names holds the names of the watchers' clients. All methods are safe for concurrent use.
type Names struct {
	of *lru.Cache // the names, by resource and watcher
}

// NewNames returns an empty Names.
func NewNames() *Names { return &Names{lru.New(maxNames)} }

// Note keeps the client's name if the record reports that a client's stream is open. It ignores other records.
func (n *Names) Note(r *Record) {
	if r.Point == WireOpened && r.Subject != "" {
		n.Set(r.Resource, r.Subject, r.Texts.Get(FieldAgent))
	}
}

// Set keeps the name of a watcher's client, which it takes from the client's user agent.
func (n *Names) Set(resource, watcher, agent string) {
	n.of.Add([2]string{resource, watcher}, strings.Clone(AgentOf(agent)))
}

// Called returns the name of the client of a record's watcher, or else the record's subject.
func (n *Names) Called(r *Record) string {
	name, _ := n.of.Get([2]string{r.Resource, r.Subject})
	known, _ := name.(string)
	return cmp.Or(known, r.Subject)
}

// Sentence is [Record.Sentence] with the client's name in place of the watcher's.
func (n *Names) Sentence(r *Record) string {
	named := *r
	named.Subject = n.Called(r)
	return named.Sentence()
}

// AgentOf returns the name in a user agent: its first word, without the version and without "listwatch-".
func AgentOf(agent string) string {
	word, _, _ := strings.Cut(agent, " ")
	name, _, _ := strings.Cut(word, "/")
	return strings.TrimPrefix(cmp.Or(name, word), "listwatch-")
}

// Texts are a record's texts, by name: hostile input, to be escaped wherever it is shown. They are one string of
// alternating names and texts, sorted by name, with a NUL after each. A record without texts thus needs only an empty
// string, and == compares two records.
type Texts string

// maxTexts is the maximum number of texts in a record.
const maxTexts = 8

// NewTexts returns texts by their names. It shortens names and texts to the limit of [Bound], except a crowd's text,
// replaces NULs, and leaves out empty texts and those beyond the first eight names.
func NewTexts(byName map[string]string) Texts {
	var packed strings.Builder
	for i, name := range slices.Sorted(maps.Keys(byName)) {
		if text := boundAs(name, byName[name]); text != "" && i < maxTexts {
			packed.WriteString(withoutNUL(Bound(name)) + "\x00" + withoutNUL(text) + "\x00")
		}
	}
	return Texts(packed.String())
}

// boundAs cuts a text to the limit for its name. A crowd's base64 may be longer: four letters for each three watchers.
func boundAs(name, text string) string {
	if Field(name) == FieldFill && len(text) <= (MaxCrowd+2)/3*4 && utf8.ValidString(text) {
		return text
	}
	return Bound(text)
}

// TextsOf returns the given texts, under the names that the point declares in the same order.
func TextsOf(point Point, texts ...string) Texts {
	byName := map[string]string{}
	for i, name := range point.Info().Texts.List() {
		if i < len(texts) {
			byName[name] = texts[i]
		}
	}
	return NewTexts(byName)
}

func withoutNUL(text string) string { return strings.ReplaceAll(text, "\x00", string(utf8.RuneError)) }

// All yields the texts with their names, sorted by name.
func (t Texts) All() iter.Seq2[Field, string] {
	return func(yield func(Field, string) bool) {
		for rest := string(t); rest != ""; {
			var name, text string
			name, rest, _ = strings.Cut(rest, "\x00")
			text, rest, _ = strings.Cut(rest, "\x00")
			if !yield(Field(name), text) {
				return
			}
		}
	}
}

// Get returns the text with that name, or "" if there is none.
func (t Texts) Get(name Field) string {
	for each, text := range t.All() {
		if each == name {
			return text
		}
	}
	return ""
}

// With returns the texts, each replaced by the result of change.
func (t Texts) With(change func(name Field, text string) string) Texts {
	byName := map[string]string{}
	for name, text := range t.All() {
		byName[string(name)] = change(name, text)
	}
	return NewTexts(byName)
}

// MarshalJSON implements [json.Marshaler].
func (t Texts) MarshalJSON() ([]byte, error) { return json.Marshal(maps.Collect(t.All())) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Texts) UnmarshalJSON(written []byte) error {
	var byName map[string]string
	err := json.Unmarshal(written, &byName)
	*t = NewTexts(byName)
	return err
}
