// Package lens shows what happens at a foreign server: the clients that use it through our port and their mistakes
// (internal/play/lens owns both), and the resources that our own informers watch there (internal/play/otherserver).
package lens

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"listwatch/internal/play/lens"
	"listwatch/internal/play/otherserver"
	"listwatch/viz/reply"
)

// Room serves the lens on a foreign server. It has no routes without a Report, which requires a Guest.
type Room struct {
	Server string             // the server's address
	Report func() lens.Report // counts of clients and forwarded requests, and the findings
	Guest  Guest              // our client half, which watches that server
}

// Guest is our client half while it watches a foreign server.
type Guest interface {
	// Choose restarts the client half with another choice, under a new log. The error is 400 for an invalid choice, and
	// 409 during another restart.
	Choose(choice otherserver.Choice) error
	// State returns the state of the client half, and the server's own metrics.
	State() otherserver.State
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

// Choice returns the resources that our informers watch on the server, or none without a Guest.
func (l Room) Choice() (c otherserver.Choice) {
	if l.Guest != nil {
		c = l.Guest.State().Choice
	}
	return c
}

func (l Room) choose(_ *http.Request, choice *otherserver.Choice) (any, error) {
	return reply.Coded{Code: http.StatusAccepted, Value: choice}, l.Guest.Choose(*choice)
}

// panel answers with the state of the server, its clients, and our informers there.
func (l Room) panel(*http.Request) (any, error) {
	return Now(&Seen{Report: l.Report(), Guest: l.Guest.State()}), nil
}

// Seen is the state of a foreign server, its clients, and our own informers there.
type Seen struct {
	Report lens.Report
	Guest  otherserver.State
}

// watched lists each resource with our informer's objects or "not synced", then the server, and our heap's size.
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

// stuck returns sentences about the troubles of our informers.
func (s *Seen) stuck() []string {
	found := []string{}
	for _, each := range s.Guest.Watched {
		if each.Trouble != "" {
			found = append(found, sentence(each.Resource+": "+each.Trouble))
		}
	}
	return found
}

// troubles returns the sentences of stuck, and then one about a trouble with the server's metrics.
func (s *Seen) troubles() []string {
	if s.Guest.Trouble == "" {
		return s.stuck()
	}
	return append(s.stuck(), sentence(s.Guest.Trouble))
}

// news returns the troubles of our informers, or else the newest finding, or "".
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
