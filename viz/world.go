package viz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"

	"github.com/go-chi/chi/v5"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// maxBody is the largest request body the page's own commands accept.
const maxBody = 16 << 10

// World is the running pipeline as far as the page may act on it.
type World interface {
	// AddWatcher opens one more watch against the API, as a client of its own, and keeps it open until it is removed
	// or the world ends; ctx is only for the opening. An error that is an apierrors.APIStatus keeps its status.
	AddWatcher(ctx context.Context, options WatcherOptions) (id string, err error)
	// RemoveWatcher closes a watch that AddWatcher opened. An unknown id is an apierrors.NotFound.
	RemoveWatcher(ctx context.Context, id string) error
	// Watchers returns the watches that are open or being opened again, in the order in which they were added.
	Watchers() []WatcherInfo
}

// WatcherOptions says what a watcher made from the page wants. They are checked before AddWatcher sees them, except
// ResourceVersion, which is opaque to clients.
type WatcherOptions struct {
	Resource        string `json:"resource"`  // "" is pods
	Namespace       string `json:"namespace"` // "" is all
	LabelSelector   string `json:"labelSelector"`
	FieldSelector   string `json:"fieldSelector"`
	ResourceVersion string `json:"resourceVersion"` // "" begins with the state as synthetic ADDED events
	Bookmarks       bool   `json:"bookmarks"`
	WatchList       bool   `json:"watchList"`      // the first state comes as a stream that ends in a bookmark
	TimeoutSeconds  int64  `json:"timeoutSeconds"` // after which the server ends each of its streams; 0: as it likes
	WebSocket       bool   `json:"webSocket"`      // as the messages of a websocket
	Tour            bool   `json:"tour"`           // it is closed when no page gives a tour any more
}

// WatcherInfo is one watcher made from the page.
type WatcherInfo struct {
	ID string `json:"id"`
	// UserAgent is what the watcher calls itself on the wire; the page finds its lane by it.
	UserAgent string         `json:"userAgent"`
	Options   WatcherOptions `json:"options"`
	// Error says why it is not open at the moment, "" if it is.
	Error string `json:"error,omitempty"`
}

func (u *UI) watchers(*http.Request) (any, error) {
	watchers := []WatcherInfo{}
	if u.config.World != nil {
		watchers = append(watchers, u.config.World.Watchers()...)
	}
	return watchers, nil
}

var errNothingToWatch = refuse(http.StatusServiceUnavailable, "nothing is running that could watch")

func (u *UI) addWatcher(r *http.Request) (any, error) {
	if u.config.World == nil {
		return nil, errNothingToWatch
	}
	options, err := readOptions(r)
	if err != nil {
		return nil, err
	}
	id, err := u.config.World.AddWatcher(r.Context(), options)
	return answered{http.StatusCreated, map[string]string{"id": id}}, err
}

func (u *UI) removeWatcher(r *http.Request) (any, error) {
	if u.config.World == nil {
		return nil, errNothingToWatch
	}
	return answered{code: http.StatusNoContent}, u.config.World.RemoveWatcher(r.Context(), chi.URLParam(r, "id"))
}

// readOptions reads and checks the body of a request.
func readOptions(r *http.Request) (WatcherOptions, error) {
	var options WatcherOptions
	if err := readJSON(r, &options); err != nil {
		return options, err
	}
	if options.Resource == "" {
		options.Resource = "pods"
	}
	if _, err := labels.Parse(options.LabelSelector); err != nil {
		return options, refuse(http.StatusBadRequest, "labelSelector: %v", err)
	}
	if _, err := fields.ParseSelector(options.FieldSelector); err != nil {
		return options, refuse(http.StatusBadRequest, "fieldSelector: %v", err)
	}
	return options, nil
}

// readJSON reads the one JSON value of a body, which [answering] bounds, into target. A body without a type is JSON, too:
// `kubectl create --raw` names none, and a foreign web page does not come as far as this.
func readJSON(r *http.Request, target any) error {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if named := r.Header.Get("Content-Type") != ""; named && (err != nil || mediaType != "application/json") {
		return refuse(http.StatusUnsupportedMediaType, "Content-Type: want application/json")
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err = decoder.Decode(target)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "body: more than %d bytes", maxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(http.StatusRequestTimeout, "body: it did not come in time")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "body: %v", err)
	}
	if decoder.More() {
		return refuse(http.StatusBadRequest, "body: more than one value")
	}
	return nil
}

// refusal is an error with the status a client gets for it.
type refusal struct {
	code    int
	message string
}

func refuse(code int, format string, args ...any) error {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

func (r *refusal) Error() string { return r.message }
