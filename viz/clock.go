package viz

import (
	"net/http"
	"time"
)

// maxAdvance bounds one step of the pipeline's clock: whatever is due within it happens at once.
const maxAdvance = time.Hour

// clockCommand is the body of POST /viz/clock.
type clockCommand struct {
	Advance string `json:"advance"` // a duration: "1s", "250ms"
}

// advanceClock moves the pipeline's clock by what the body says. Without a clock that can be moved it is 409 Conflict.
func (u *UI) advanceClock(w http.ResponseWriter, r *http.Request) {
	if u.config.AdvanceClock == nil {
		writeStatus(w, http.StatusConflict, "the clock runs by itself: start with -clock=manual to move it")
		return
	}
	var command clockCommand
	if err := readJSON(w, r, &command); err != nil {
		writeError(w, err)
		return
	}
	d, err := time.ParseDuration(command.Advance)
	if err != nil || d <= 0 || d > maxAdvance {
		writeError(w, refuse(http.StatusBadRequest, "advance: want a duration in (0, %s], got %q", maxAdvance, command.Advance))
		return
	}
	u.config.AdvanceClock(d)
	w.WriteHeader(http.StatusNoContent)
}
