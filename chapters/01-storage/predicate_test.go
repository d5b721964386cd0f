package storage

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

func predicate(t *testing.T, label, field string) SelectionPredicate {
	t.Helper()
	l, err := labels.Parse(label)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fields.ParseSelector(field)
	if err != nil {
		t.Fatal(err)
	}
	return SelectionPredicate{Label: l, Field: f, GetAttrs: DefaultNamespaceScopedAttr}
}

func TestPredicateMatchesLabelsAndFields(t *testing.T) {
	for _, test := range []struct {
		label, field string
		want         bool
	}{
		{"", "", true},
		{"app=web", "", true},
		{"app=db", "", false},
		{"", "metadata.name=a", true},
		{"", "metadata.name!=a", false},
		{"app=web", "metadata.name=b", false},
		{"app in (web,db),app!=db", "metadata.namespace=default,metadata.name=a", true},
	} {
		p := predicate(t, test.label, test.field)
		if got, err := p.Matches(pod("a", "web")); err != nil || got != test.want {
			t.Errorf("%q %q: got %v, %v, want %v", test.label, test.field, got, err, test.want)
		}
	}
}

func TestEmptyPredicateLooksAtNothing(t *testing.T) {
	broken := func(runtime.Object) (labels.Set, fields.Fields, error) { return nil, nil, errors.New("looked") }
	for name, p := range map[string]SelectionPredicate{
		"zero": {GetAttrs: broken}, "everything": {Label: labels.Everything(), Field: fields.Everything(),
			GetAttrs: broken},
	} {
		if got, err := p.Matches(nil); !got || err != nil || !p.Empty() {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	p := SelectionPredicate{Label: labels.Nothing(), GetAttrs: broken}
	if got, err := p.Matches(nil); got || err == nil || p.Empty() {
		t.Errorf("nothing: got %v, %v, want the error of looking", got, err)
	}
}

func TestWhatAPredicatePins(t *testing.T) {
	p := predicate(t, "", "metadata.name=a,metadata.namespace=default,spec.nodeName=n1")
	p.IndexFields = []string{"spec.nodeName", "status.phase"}
	if name, ok := p.MatchesSingle(); !ok || name != "a" {
		t.Errorf("name: got %q, %v", name, ok)
	}
	if namespace, ok := p.MatchesSingleNamespace(); !ok || namespace != "default" {
		t.Errorf("namespace: got %q, %v", namespace, ok)
	}
	if diff := cmp.Diff([]MatchValue{{"f:spec.nodeName", "n1"}}, p.MatcherIndex(t.Context())); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
	p.Continue = "token"
	if _, ok := p.MatchesSingle(); ok {
		t.Error("a continued list was taken for one object")
	}
	var zero SelectionPredicate
	if _, ok := zero.MatchesSingle(); ok || zero.MatcherIndex(t.Context()) != nil {
		t.Error("the zero predicate pins something")
	}
	other := predicate(t, "", "metadata.name!=a")
	if _, ok := other.MatchesSingle(); ok {
		t.Error("!= was taken for =")
	}
}
