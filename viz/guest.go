package viz

import (
	"context"
	"encoding/json"
	"net/http"
)

// Choice is what is watched of a server that is not ours.
type Choice struct {
	Resources []string `json:"resources"`
	Namespace string   `json:"namespace"`
	Labels    string   `json:"labels"`
	Fields    string   `json:"fields"`
}

// Guest is our client half on a server that is not ours.
type Guest interface {
	// Choose begins again with another choice, under a new log. The error is 400 if the server has no such thing, 409 if it begins
	// again already.
	Choose(ctx context.Context, choice Choice) error
	// State returns how it is doing, as something that marshals to JSON.
	State() any
	// Offered returns what could be chosen.
	Offered(ctx context.Context) ([]string, error)
}

// guest returns the guest, or answers that there is none.
func (u *UI) guest(w http.ResponseWriter) Guest {
	if u.config.Guest == nil {
		writeStatus(w, http.StatusNotFound, "this server is our own")
	}
	return u.config.Guest
}

func (u *UI) serveGuest(w http.ResponseWriter, _ *http.Request) {
	if guest := u.guest(w); guest != nil {
		writeJSON(w, http.StatusOK, guest.State())
	}
}

func (u *UI) serveOffered(w http.ResponseWriter, r *http.Request) {
	guest := u.guest(w)
	if guest == nil {
		return
	}
	names, err := guest.Offered(r.Context())
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, names)
}

// maxChoice is how long the body of a choice may be.
const maxChoice = 16 << 10

func (u *UI) choose(w http.ResponseWriter, r *http.Request) {
	guest := u.guest(w)
	if guest == nil {
		return
	}
	var choice Choice
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxChoice)).Decode(&choice); err != nil {
		writeStatus(w, http.StatusBadRequest, "invalid choice: "+err.Error())
		return
	}
	if err := guest.Choose(r.Context(), choice); err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusAccepted, choice)
}
