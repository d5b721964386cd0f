package storage

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestStatusOfEachError(t *testing.T) {
	_, invalid := versioner.ParseResourceVersion("x")
	for name, test := range map[string]struct {
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		"not found": {NewKeyNotFoundError("/k", 0), http.StatusNotFound, metav1.StatusReasonNotFound},
		"exists":    {NewKeyExistsError("/k", 0), http.StatusConflict, metav1.StatusReasonAlreadyExists},
		"refused":   {NewInvalidObjError("/k", "uid"), http.StatusConflict, metav1.StatusReasonConflict},
		"unreachable": {NewUnreachableError("/k", "gone"), http.StatusInternalServerError,
			metav1.StatusReasonServerTimeout},
		"wrapped": {fmt.Errorf("get: %w", NewKeyNotFoundError("/k", 0)), http.StatusNotFound,
			metav1.StatusReasonNotFound},
		"invalid":    {invalid, http.StatusBadRequest, metav1.StatusReasonBadRequest},
		"too large":  {NewTooLargeResourceVersionError(9, 7, 1), http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		"of no code": {&StorageError{}, http.StatusInternalServerError, metav1.StatusReasonInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := InterpretError(test.err, "get", corev1.Resource("pods"), "a").(apierrors.APIStatus)
			assert.True(t, ok && got.Status().Code == test.code && got.Status().Reason == test.reason,
				"got %+v, want %d %s", got, test.code, test.reason)
		})
	}
	strange := errors.New("strange")
	assert.Equal(t, strange, InterpretError(strange, "get", corev1.Resource("pods"), "a"))
}

func TestAnErrorTellsItsCode(t *testing.T) {
	for code, err := range map[ErrorCode]error{
		KeyNotFound: NewKeyNotFoundError("/k", 1), KeyExists: NewKeyExistsError("/k", 1),
		InvalidObj:  NewInvalidObjError("/k", ""),
		Unreachable: fmt.Errorf("create: %w", NewUnreachableError("/k", "")), 0: errors.New("x"),
	} {
		assert.Equal(t, code, CodeOf(err), err)
		assert.Equal(t, code == KeyNotFound, IsNotFound(err), "%v: taken for a missing key", err)
	}
}

func TestPreconditions(t *testing.T) {
	for name, test := range map[string]struct {
		p  *Preconditions
		ok bool
	}{
		"none":      {nil, true},
		"empty":     {&Preconditions{}, true},
		"right":     {&Preconditions{UID: new(types.UID("uid-1")), ResourceVersion: new("7")}, true},
		"wrong uid": {&Preconditions{UID: new(types.UID("uid-2"))}, false},
		"wrong rv":  {&Preconditions{ResourceVersion: new("8")}, false},
		"empty uid": {&Preconditions{UID: new(types.UID(""))}, false},
	} {
		err := test.p.Check("/k", pod("a", ""))
		assert.True(t, (err == nil) == test.ok && (err == nil || CodeOf(err) == InvalidObj), "%s: got %v", name, err)
	}
	assert.True(t, (&Preconditions{}).Check("/k", &metav1.Status{}) != nil, "a Status fulfils preconditions")
}

func TestPageSaysWhatIsStillToCome(t *testing.T) {
	opts := ListOptions{Predicate: SelectionPredicate{Limit: 2}}
	token, remaining, err := PrepareContinueToken(podsPrefix+"default/b", podsPrefix, 5, 7, true, opts)
	require.True(t, err == nil && remaining != nil && *remaining == 5, "got %v remaining, %v, want 5", remaining, err)
	if key, rv, err := DecodeContinue(token, podsPrefix); err != nil || key != podsPrefix+"default/b\x00" || rv != 5 {
		t.Errorf("got %q at %d, %v, want the key after b at 5", key, rv, err)
	}
	token, remaining, err = PrepareContinueToken(podsPrefix+"default/b", podsPrefix, 5, 2, false, opts)
	assert.True(t, token == "" && remaining == nil && err == nil, "last page: got %q, %v, %v", token, remaining, err)
	opts.Predicate.Field = fields.OneTermEqualSelector("metadata.name", "x")
	token, remaining, err = PrepareContinueToken(podsPrefix+"default/b", podsPrefix, 5, 7, true, opts)
	assert.True(t, token != "" && remaining == nil && err == nil,
		"with a selector: got %q, %v, %v, want a token and no number", token, remaining, err)
	_, _, err = PrepareContinueToken("/elsewhere/b", podsPrefix, 5, 7, true, opts)
	assert.True(t, err != nil, "a key of elsewhere: got no error")
}

func TestWhatAWatchBeginsWith(t *testing.T) {
	for name, test := range map[string]struct {
		send      *bool
		bookmarks bool
		rv        uint64
		initial   bool
		bookmark  bool
	}{
		"nothing said":          {initial: true},
		"a version":             {rv: 7},
		"wanted":                {send: new(true), initial: true},
		"wanted, at a version":  {send: new(true), rv: 7, initial: true},
		"wanted, and bookmarks": {send: new(true), bookmarks: true, initial: true, bookmark: true},
		"not wanted":            {send: new(false), bookmarks: true},
		"bookmarks alone":       {bookmarks: true, initial: true},
	} {
		opts := ListOptions{SendInitialEvents: test.send, Predicate: SelectionPredicate{
			AllowWatchBookmarks: test.bookmarks}}
		assert.Equal(t, test.initial, opts.AreInitialEventsRequired(test.rv), "%s: initial events", name)
		assert.Equal(t, test.bookmark, opts.IsInitialEventsEndBookmarkRequired(), "%s: end bookmark", name)
	}
}

func TestEndBookmarkIsMarked(t *testing.T) {
	p := &corev1.Pod{}
	err := AnnotateInitialEventsEndBookmark(p)
	assert.True(t, err == nil && p.Annotations[metav1.InitialEventsAnnotationKey] == "true",
		"not marked: %v, %v", p.Annotations, err)
	assert.True(t, AnnotateInitialEventsEndBookmark(&metav1.Status{}) != nil, "a Status was marked")
}

func predicate(t *testing.T, label, field string) SelectionPredicate {
	t.Helper()
	l := require.Value(labels.Parse(label))(t)
	f := require.Value(fields.ParseSelector(field))(t)
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
	node, phase := &Trigger{Field: "spec.nodeName"}, &Trigger{Field: "status.phase"}
	name, ok := p.MatchesSingle()
	assert.True(t, ok && name == "a", "name: got %q, %v", name, ok)
	namespace, ok := p.MatchesSingleNamespace()
	assert.True(t, ok && namespace == "default", "namespace: got %q, %v", namespace, ok)
	value, ok := node.PinnedBy(&p)
	_, other := phase.PinnedBy(&p)
	assert.True(t, ok && value == "n1" && !other, "trigger: got %q, %v, and %v", value, ok, other)
	p.Continue = "token"
	_, ok = p.MatchesSingle()
	assert.False(t, ok, "a continued list was taken for one object")
	var zero SelectionPredicate
	_, ok = zero.MatchesSingle()
	_, other = node.PinnedBy(&zero)
	assert.False(t, ok || other, "the zero predicate pins something")
	unequal := predicate(t, "", "metadata.name!=a")
	_, ok = unequal.MatchesSingle()
	assert.False(t, ok, "!= was taken for =")
}

var versioner APIObjectVersioner

func TestResourceVersionsThatAreNumbers(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "0": 0, "7": 7, "007": 7, "9223372036854775807": 1<<63 - 1} {
		got, err := versioner.ParseResourceVersion(text)
		assert.True(t, err == nil && got == want, "%q: got %d, %v, want %d", text, got, err, want)
	}
	for _, text := range []string{"x", "-1", "+1", "1.0", "0x1", " 1", "9223372036854775808", "١"} {
		var invalid InvalidError
		got, err := versioner.ParseResourceVersion(text)
		assert.True(t, errors.As(err, &invalid), "%q: got %d, %v, want an InvalidError", text, got, err)
	}
}

func TestObjectIsStampedAndBlanked(t *testing.T) {
	p := &corev1.Pod{}
	if err := versioner.UpdateObject(p, 42); err != nil || p.ResourceVersion != "42" {
		t.Errorf("got %q, %v, want 42", p.ResourceVersion, err)
	}
	rv, err := versioner.ObjectResourceVersion(p)
	assert.True(t, err == nil && rv == 42, "got %d, %v, want 42", rv, err)
	p.SelfLink = "/api/v1/pods/a"
	if err := versioner.PrepareObjectForStorage(p); err != nil || p.ResourceVersion != "" || p.SelfLink != "" {
		t.Errorf("got %q, %q, %v, want both blank", p.ResourceVersion, p.SelfLink, err)
	}
	assert.True(t, versioner.UpdateObject(p, 0) != nil, "stamped with 0")
	assert.True(t, versioner.UpdateObject(&metav1.Status{}, 1) != nil, "a Status was stamped")
}

// TestAStampedCopyLeavesTheOriginalAlone: lists and watchers read the original meanwhile.
func TestAStampedCopyLeavesTheOriginalAlone(t *testing.T) {
	original := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	before := original.DeepCopyObject()
	stamped := require.Value(APIObjectVersioner{}.Stamped(original, 2))(t)
	assert.NoDiff(t, before, runtime.Object(original), "the original")
	assert.Equal(t, 2, require.Value(APIObjectVersioner{}.ObjectResourceVersion(stamped))(t))
}

func TestListIsStamped(t *testing.T) {
	list := &corev1.PodList{}
	err := versioner.UpdateList(list, 42, "token", new(int64(3)))
	assert.True(t, err == nil && list.ResourceVersion == "42" && list.Continue == "token" &&
		*list.RemainingItemCount == 3,
		"got %+v, %v", list.ListMeta, err)
	assert.True(t, versioner.UpdateList(list, 0, "", nil) != nil, "stamped with 0")
}

func TestVersionsForProbesAreZeroIfTheyAreNoNumbers(t *testing.T) {
	pod := &corev1.Pod{}
	for text, want := range map[string]uint64{"": 0, "7": 7, "x": 0, "9223372036854775808": 0} {
		pod.ResourceVersion = text
		assert.Equal(t, want, VersionOf(pod), "%q", text)
	}
	assert.Equal(t, 0, VersionOf("no object"), "no object")
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pod returns default/name with a label.
func pod(name, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-1",
		ResourceVersion: "7", Labels: map[string]string{"app": app}}}
}
