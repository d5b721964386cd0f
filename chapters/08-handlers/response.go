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

// Answer returns the handler that answers with the object that serve returns, in the form and with the code that fit,
// or with its error.
func (s *Scope) Answer(serve func(http.ResponseWriter, *http.Request) (obj runtime.Object, code int,
	err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, serve) }
}

// answer settles the form of the answer first: a client that could not read it changes nothing.
func (s *Scope) answer(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter,
	*http.Request) (obj runtime.Object, code int, err error)) {
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

// transformResponseObject turns obj into what was negotiated and writes the whole answer.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: transformResponseObject
// Differs: a list without items is made [], and not null, where it is read.
func transformResponseObject(w http.ResponseWriter, r *http.Request, s *Scope, code int, output negotiation.MediaType,
	obj runtime.Object) {
	options, err := negotiation.TableOptions(r, output)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	out, err := negotiation.Transform(obj, options, output.Convert, s.rows)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	writeObject(w, r, code, output, out)
}

// rows returns obj as a table, with the column definitions unless options leave them out.
func (s *Scope) rows(obj runtime.Object, options *metav1.TableOptions) (*metav1.Table, error) {
	name := s.Resource.Name
	if s.Subresource == "scale" {
		name = "scales"
	}
	return resources.Table(obj, name, !options.NoHeaders, s.server.Clock.Now())
}

// writeObject encodes obj and writes the whole answer, compressed if that pays and the client can undo it. A list is
// written item by item, so that a large one is never in memory twice. An object that cannot be encoded is a 500, as
// long as nothing of it has left; after that the connection is cut.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: SerializeObject
// Differs: what cannot be YAML, because of a control character, is answered as JSON; upstream's answer is a 500.
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
		_ = answer.Close() // a client that has gone away is no error of ours
	case answer.Started():
		panic(http.ErrAbortHandler)
	case output.Name == negotiation.YAML:
		writeObject(w, r, code, negotiation.MediaType{Name: negotiation.JSON,
			Encoder: negotiation.EncoderFor(negotiation.JSON, output.Pretty)}, obj)
	default:
		status := toStatus(r.Context(), apierrors.NewInternalError(err))
		w.Header().Set("Content-Type", negotiation.JSON)
		w.WriteHeader(int(status.Code))
		// a Status of three strings always encodes
		_ = negotiation.EncoderFor(negotiation.JSON, false).Encode(status, w)
	}
}

// WriteBody writes a finished answer.
func WriteBody(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	answer := negotiation.NewWriter(w, code, negotiation.AcceptsGzip(r))
	_, _ = answer.Write(body)
	_ = answer.Close()
}
