package viz

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"listwatch/internal/play/sandbox"
)

// maxBody is the largest request body the page's own commands accept.
const maxBody = 16 << 10

// readOptions reads and checks the body of a request.
func readOptions(r *http.Request) (sandbox.WatcherOptions, error) {
	var options sandbox.WatcherOptions
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

// readJSON reads the one JSON value of a body, which [answering] bounds, into target. A body without a type is JSON,
// too: `kubectl create --raw` names none, and a foreign web page does not come as far as this.
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
