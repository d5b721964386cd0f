// Package lens is the room of a server that is not ours: who asks it through our port, what is wrong with that, and
// what our own informers watch there.
package lens

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"listwatch/internal/play/guest"
	"listwatch/internal/play/lens"
	"listwatch/viz/reply"
)

// Room is a server that is not ours. It is not mounted without a Report.
type Room struct {
	Server string             // its address
	Report func() lens.Report // what the lens found in forwarded requests
	Guest  Guest              // our client half there
}

// Guest is our client half on a server that is not ours.
type Guest interface {
	// Choose begins again with another choice, under a new log. The error is 400 if it cannot be meant, 409 if it
	// begins again already.
	Choose(choice guest.Choice) error
	// State returns how it is doing, and what the server says of itself.
	State() guest.State
}

// Mount adds the room's routes.
func (l Room) Mount(router chi.Router) {
	if l.Report == nil {
		return
	}
	router.Handle("GET /viz/lens", reply.Look(l.Report))
	router.Handle("GET /viz/guest", reply.Look(l.Guest.State))
	router.Handle("POST /viz/guest", reply.Body(l.choose))
	router.Handle("GET /viz/panel/lens", reply.With(l.panel))
}

// Choice is what our informers watch there.
func (l Room) Choice() (c guest.Choice) {
	if l.Guest != nil {
		c = l.Guest.State().Choice
	}
	return c
}

func (l Room) choose(_ *http.Request, choice *guest.Choice) (any, error) {
	return reply.Coded{Code: http.StatusAccepted, Value: choice}, l.Guest.Choose(*choice)
}

// panel is how that server, its clients, and our informers there are doing.
func (l Room) panel(*http.Request) (any, error) {
	return Now(&Seen{Report: l.Report(), Guest: l.Guest.State()}), nil
}

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
