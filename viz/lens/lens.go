// Package lens is the room of a server that is not ours: who asks it through our port, what is wrong with that, and
// what our own informers watch there.
package lens

import (
	"fmt"
	"strings"

	"listwatch/internal/play/guest"
	"listwatch/internal/play/lens"
)

// Seen is how a server that is not ours, its clients, and our own informers there are doing.
type Seen struct {
	Report lens.Report
	Guest  guest.State
}

// watched says of each resource how many objects our informer has, and where from.
func (s *Seen) watched() string {
	words := []string{}
	for _, each := range s.Guest.Watched {
		held := "not synced"
		if each.Synced {
			held = fmt.Sprint(each.Objects)
		}
		words = append(words, each.Resource+": "+held)
	}
	return fmt.Sprintf("%s · from %s · %d MB of memory", strings.Join(words, ", "), s.Guest.Server, s.Guest.Memory>>20)
}

// stuck are sentences on what is wrong with our informers.
func (s *Seen) stuck() []string {
	found := []string{}
	for _, each := range s.Guest.Watched {
		if each.Trouble != "" {
			found = append(found, sentence(each.Resource+": "+each.Trouble))
		}
	}
	return found
}

// troubles are those, and last what is wrong with what the server says of itself.
func (s *Seen) troubles() []string {
	if s.Guest.Trouble == "" {
		return s.stuck()
	}
	return append(s.stuck(), sentence(s.Guest.Trouble))
}

// news says what is wrong with our informers, or else the newest finding; "" if there is none.
func (s *Seen) news() string {
	if stuck := s.stuck(); len(stuck) > 0 || len(s.Report.Findings) == 0 {
		return strings.Join(stuck, " ")
	}
	return s.Report.Findings[0].Sentence
}

func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprint(n, " ", noun, "s")
}
