package storage

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func predicate(t *testing.T, label, field string) SelectionPredicate {
	t.Helper()
	l, err := labels.Parse(label)
	require.NoError(t, err)
	f, err := fields.ParseSelector(field)
	require.NoError(t, err)
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
		got, err := p.Matches(nil)
		assert.True(t, got && err == nil && p.Empty(), "%s: got %v, %v", name, got, err)
	}
	p := SelectionPredicate{Label: labels.Nothing(), GetAttrs: broken}
	got, err := p.Matches(nil)
	assert.True(t, !got && err != nil && !p.Empty(), "nothing: got %v, %v, want the error of looking", got, err)
}

func TestWhatAPredicatePins(t *testing.T) {
	p := predicate(t, "", "metadata.name=a,metadata.namespace=default,spec.nodeName=n1")
	p.IndexFields = []string{"spec.nodeName", "status.phase"}
	name, ok := p.MatchesSingle()
	assert.True(t, ok && name == "a", "name: got %q, %v", name, ok)
	namespace, ok := p.MatchesSingleNamespace()
	assert.True(t, ok && namespace == "default", "namespace: got %q, %v", namespace, ok)
	assert.NoDiff(t, p.MatcherIndex(t.Context()), []MatchValue{{"f:spec.nodeName", "n1"}}, "index")
	p.Continue = "token"
	_, ok = p.MatchesSingle()
	assert.False(t, ok, "a continued list was taken for one object")
	var zero SelectionPredicate
	_, ok = zero.MatchesSingle()
	assert.True(t, !ok && zero.MatcherIndex(t.Context()) == nil, "the zero predicate pins something")
	other := predicate(t, "", "metadata.name!=a")
	_, ok = other.MatchesSingle()
	assert.False(t, ok, "!= was taken for =")
}
