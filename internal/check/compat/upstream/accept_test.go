package upstream

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	realhandlers "k8s.io/apiserver/pkg/endpoints/handlers"
	realnegotiation "k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/registry/rest"
	"pgregory.net/rapid"

	"listwatch/internal/kube/negotiation"
	"listwatch/internal/kube/scheme"
)

// TestAcceptIsNegotiatedAsUpstreamDoes asks both sides what they answer to headers that are drawn at random from what
// clients send, and from what none should.
func TestAcceptIsNegotiatedAsUpstreamDoes(t *testing.T) {
	ours := slices.DeleteFunc(scheme.Codecs.SupportedMediaTypes(), func(info runtime.SerializerInfo) bool {
		return info.MediaType != negotiation.JSON && info.MediaType != negotiation.YAML
	})
	scope := &realhandlers.RequestScope{
		TableConvertor: rest.NewDefaultTableConvertor(schema.GroupResource{}), MetaGroupVersion: schema.GroupVersion{
			Version: "v1"},
	}
	clause := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{
			"*/*", "*", "application/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
			"text/html", "json", "",
		}).Draw(t, "type") + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			";q=0", ";q=0.3", "; q=1.0", ";q=x", ";as=Table;g=meta.k8s.io;v=v1",
			";as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
			";as=Pod", ";g=meta.k8s.io", ";stream=watch", ";stream=x", ";sv=v1", ";sv=v2", ";pretty=1", ";pretty=0",
			";charset=utf-8", ";",
		}), 0, 3).Draw(t, "parameters"), "")
	})
	upstream := func(header string) (negotiation.MediaType, bool) {
		media, ok := realnegotiation.NegotiateMediaTypeOptions(header, ours, scope)
		return negotiation.MediaType{Name: media.Accepted.MediaType, Convert: media.Convert, Pretty: media.Pretty}, ok
	}
	rapid.Check(t, func(t *rapid.T) {
		header := strings.Join(rapid.SliceOfN(clause, 1, 5).Draw(t, "clauses"), ",")
		got, ok := negotiation.Accept(header, negotiation.AllowsTransform)
		want, wantOK := upstream(header)
		if ok != wantOK || got.Name != want.Name || got.Pretty != want.Pretty ||
			(got.Convert == nil) != (want.Convert == nil) ||
			got.Convert != nil && *got.Convert != *want.Convert {
			t.Errorf("Accept: %s: got %+v, %v, upstream %+v, %v", header, got, ok, want, wantOK)
		}
	})
}
