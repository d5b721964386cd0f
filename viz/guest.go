package viz

import (
	"net/http"

	"listwatch/internal/play/guest"
)

// Guest is our client half on a server that is not ours.
type Guest interface {
	// Choose begins again with another choice, under a new log. The error is 400 if it cannot be meant, 409 if it
	// begins again already.
	Choose(choice guest.Choice) error
	// State returns how it is doing, as something that marshals to JSON.
	State() any
}

func (u *UI) guestState(*http.Request) (any, error) { return u.config.Guest.State(), nil }

func (u *UI) choose(r *http.Request) (any, error) {
	var choice guest.Choice
	if err := readJSON(r, &choice); err != nil {
		return nil, err
	}
	return answered{http.StatusAccepted, choice}, u.config.Guest.Choose(choice)
}
