package probe

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Texts are what a record says in words, by name: hostile input, to be escaped wherever it is shown. They are one
// string, of names and texts by turns, sorted by name, with a NUL behind each: so a record without any costs no more
// than that, and two records are compared as values.
type Texts string

// maxTexts is how many a record has at most.
const maxTexts = 8

// NewTexts returns texts from their names. Each is cut, see [Bound]; empty ones are left out.
func NewTexts(byName map[string]string) Texts {
	var packed strings.Builder
	for i, name := range slices.Sorted(maps.Keys(byName)) {
		if text := Bound(byName[name]); text != "" && i < maxTexts {
			packed.WriteString(withoutNUL(Bound(name)) + "\x00" + withoutNUL(text) + "\x00")
		}
	}
	return Texts(packed.String())
}

// TextsOf returns texts in the order in which a point declares their names.
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

// Get returns the text of a name, "" if there is none.
func (t Texts) Get(name Field) string {
	for each, text := range t.All() {
		if each == name {
			return text
		}
	}
	return ""
}

// With returns the texts as change makes them.
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
