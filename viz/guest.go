package viz

import (
	"context"
	"net/http"

	"listwatch/internal/play/guest"
)

// Guest is our client half on a server that is not ours.
type Guest interface {
	// Choose begins again with another choice, under a new log. The error is 400 if the server has no such thing, 409
	// if it begins again already.
	Choose(ctx context.Context, choice guest.Choice) error
	// State returns how it is doing, as something that marshals to JSON.
	State() any
	// Offered returns what could be chosen.
	Offered(ctx context.Context) ([]string, error)
}

func (u *UI) guestState(*http.Request) (any, error) { return u.config.Guest.State(), nil }

func (u *UI) offered(r *http.Request) (any, error) { return u.config.Guest.Offered(r.Context()) }

func (u *UI) choose(r *http.Request) (any, error) {
	var choice guest.Choice
	if err := readJSON(r, &choice); err != nil {
		return nil, err
	}
	return answered{http.StatusAccepted, choice}, u.config.Guest.Choose(r.Context(), choice)
}
