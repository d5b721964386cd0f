package handlers

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/kube/negotiation"
	"listwatch/internal/kube/resources"
	"listwatch/internal/kube/scheme"
)

// Answer returns a handler that answers with the object and code that serve returns, in the negotiated form, or with
// its error. It negotiates before it calls serve: a request whose client cannot read the answer must not change
// anything.
func (s *Scope) Answer(serve func(http.ResponseWriter, *http.Request) (obj runtime.Object, code int,
	err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		output, err := negotiation.Output(r)
		if err != nil {
			WriteError(w, r, err)
			return
		}
		obj, code, err := serve(w, r)
		if err != nil {
			WriteError(w, r, err)
			return
		}
		transformResponseObject(w, r, s, code, output, obj)
	}
}

// transformResponseObject converts obj to the negotiated kind and writes the whole answer.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: transformResponseObject
// Differs: the storage, not this function, makes the items of an empty list [] instead of null.
func transformResponseObject(w http.ResponseWriter, r *http.Request, s *Scope, code int, output negotiation.MediaType,
	obj runtime.Object) {
	options, err := negotiation.TableOptions(r, output)
	if err == nil {
		obj, err = negotiation.Transform(obj, options, output.Convert, s.rows)
	}
	if err != nil {
		WriteError(w, r, err)
		return
	}
	writeObject(w, r, code, output, obj)
}

// rows returns obj as a table, with the column definitions unless options leave them out.
func (s *Scope) rows(obj runtime.Object, options *metav1.TableOptions) (*metav1.Table, error) {
	name := s.Resource.Name
	if s.Subresource == "scale" {
		name = "scales"
	}
	return resources.Table(obj, name, !options.NoHeaders, s.server.Clock.Now())
}

// writeObject encodes obj and writes the whole answer, compressed if it is large and the client accepts that. It
// encodes a list item by item, so that a large one is never in memory twice. If an object cannot be encoded, the answer
// is 500 before the header is written; after that writeObject cuts the connection.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: SerializeObject
// Differs: an object with a control character, which YAML cannot express, is sent as JSON; upstream answers 500.
func writeObject(w http.ResponseWriter, r *http.Request, code int, output negotiation.MediaType, obj runtime.Object) {
	w.Header().Set("Content-Type", output.Name)
	w.Header().Set("Cache-Control", "no-cache, private")
	answer := negotiation.NewWriter(w, code, negotiation.AcceptsGzip(r))
	out, err := scheme.WithKind(obj)
	if err == nil {
		err = output.Encoder.Encode(out, answer)
	}
	switch {
	case err == nil:
		_ = answer.Close() // the client has gone
	case answer.Started():
		panic(http.ErrAbortHandler)
	case output.Name == negotiation.YAML:
		writeObject(w, r, code, negotiation.MediaType{Name: negotiation.JSON,
			Encoder: negotiation.EncoderFor(negotiation.JSON, output.Pretty)}, obj)
	default:
		status := toStatus(r.Context(), apierrors.NewInternalError(err))
		w.Header().Set("Content-Type", negotiation.JSON)
		w.WriteHeader(int(status.Code))
		// a Status can always be encoded
		_ = negotiation.EncoderFor(negotiation.JSON, false).Encode(status, w)
	}
}

// WriteBody writes a finished answer.
func WriteBody(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	answer := negotiation.NewWriter(w, code, negotiation.AcceptsGzip(r))
	_, _ = answer.Write(body)
	_ = answer.Close()
}
