package viz

import (
	"net/http"

	"listwatch/internal/play/guest"
	"listwatch/viz/lens"
)

// Guest is our client half on a server that is not ours.
type Guest interface {
	// Choose begins again with another choice, under a new log. The error is 400 if it cannot be meant, 409 if it
	// begins again already.
	Choose(choice guest.Choice) error
	// State returns how it is doing, and what the server says of itself.
	State() (guest.State, guest.MetricsState)
}

func (u *UI) guestState(*http.Request) (any, error) {
	state, metrics := u.config.Guest.State()
	return struct {
		guest.State
		guest.MetricsState
	}{state, metrics}, nil
}

// lensPanel is how that server, its clients, and our informers there are doing.
func (u *UI) lensPanel(*http.Request) (any, error) {
	state, metrics := u.config.Guest.State()
	return lens.Now(&lens.Seen{Report: u.config.Lens(), Guest: state, Metrics: metrics}), nil
}

func (u *UI) choose(_ *http.Request, choice *guest.Choice) (any, error) {
	return answered{http.StatusAccepted, choice}, u.config.Guest.Choose(*choice)
}
