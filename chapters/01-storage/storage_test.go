package storage

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
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

func TestEachErrorTellsItsCodeAndStatus(t *testing.T) {
	_, invalid := versioner.ParseResourceVersion("x")
	for name, test := range map[string]struct {
		err    error
		code   ErrorCode
		status int32
		reason metav1.StatusReason
	}{
		"not found": {NewKeyNotFoundError("/k", 1), KeyNotFound, http.StatusNotFound, metav1.StatusReasonNotFound},
		"exists":    {NewKeyExistsError("/k", 1), KeyExists, http.StatusConflict, metav1.StatusReasonAlreadyExists},
		"refused":   {NewInvalidObjError("/k", "uid"), InvalidObj, http.StatusConflict, metav1.StatusReasonConflict},
		"unreachable": {NewUnreachableError("/k", "gone"), Unreachable, http.StatusInternalServerError,
			metav1.StatusReasonServerTimeout},
		"wrapped": {fmt.Errorf("get: %w", NewKeyNotFoundError("/k", 0)), KeyNotFound, http.StatusNotFound,
			metav1.StatusReasonNotFound},
		"invalid": {invalid, 0, http.StatusBadRequest, metav1.StatusReasonBadRequest},
		"too large": {NewTooLargeResourceVersionError(9, 7, 1), 0, http.StatusGatewayTimeout,
			metav1.StatusReasonTimeout},
		"of no code": {&StorageError{}, 0, http.StatusInternalServerError, metav1.StatusReasonInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.code, CodeOf(test.err))
			assert.Equal(t, test.code == KeyNotFound, IsNotFound(test.err), "taken for a missing key")
			got, ok := InterpretError(test.err, "get", corev1.Resource("pods"), "a").(apierrors.APIStatus)
			assert.True(t, ok && got.Status().Code == test.status && got.Status().Reason == test.reason,
				"got %+v, want %d %s", got, test.status, test.reason)
		})
	}
	strange := errors.New("strange")
	assert.Equal(t, 0, CodeOf(strange))
	assert.Equal(t, strange, InterpretError(strange, "get", corev1.Resource("pods"), "a"))
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
	for _, text := range []string{"x", "-1", "+1", "1.0", "0x1", " 1", "9223372036854775808", "\u0661"} {
		var invalid InvalidError
		got, err := versioner.ParseResourceVersion(text)
		assert.True(t, errors.As(err, &invalid), "%q: got %d, %v, want an InvalidError", text, got, err)
	}
}

func TestObjectIsStampedAndBlanked(t *testing.T) {
	p := &corev1.Pod{}
	err := versioner.UpdateObject(p, 42)
	assert.True(t, err == nil && p.ResourceVersion == "42", "got %q, %v, want 42", p.ResourceVersion, err)
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
		*list.RemainingItemCount == 3, "got %+v, %v", list.ListMeta, err)
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

// FuzzPrepareKey: no key reaches out of its resource, and preparing twice changes nothing.
func FuzzPrepareKey(f *testing.F) {
	for _, seed := range []string{"", "/", "/registry/pods", "/registry/pods/", "/registry/pods/default/a",
		"/registry/pods/../x", "/registry/podsecurity", "/registry/pods//", "."} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	const prefix = "/registry/pods"
	f.Fuzz(func(t *testing.T, key string, recursive bool) {
		got, err := PrepareKey(prefix, key, recursive)
		if err != nil {
			return
		}
		assert.False(t, got != prefix && !strings.HasPrefix(got, prefix+"/"), "%q became %q, outside %q", key, got,
			prefix)
		assert.False(t, recursive && !strings.HasSuffix(got, "/"), "%q became %q, which is no range", key, got)
		for segment := range strings.SplitSeq(got, "/") {
			assert.True(t, segment != ".." && segment != ".", "%q became %q, which climbs", key, got)
		}
		again, err := PrepareKey(prefix, got, recursive)
		assert.True(t, err == nil && again == got, "%q prepared again: got %q, %v", got, again, err)
	})
}

const podsPrefix = "/registry/pods/"

func TestDecodeContinueRefusesWhatItDidNotMake(t *testing.T) {
	for name, test := range map[string]struct{ json, want string }{
		"another version":  {`{"v":"v2","rv":1,"start":"a"}`, "version"},
		"no version":       {`{"rv":1,"start":"a"}`, "version"},
		"no revision":      {`{"v":"meta.k8s.io/v1","start":"a"}`, "resourceVersion"},
		"no key":           {`{"v":"meta.k8s.io/v1","rv":1}`, "start key is empty"},
		"climbing":         {`{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}`, "../secrets/a"},
		"climbing later":   {`{"v":"meta.k8s.io/v1","rv":1,"start":"a/../../secrets"}`, "a/../../secrets"},
		"doubled slash":    {`{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}`, "a//b"},
		"trailing slash":   {`{"v":"meta.k8s.io/v1","rv":1,"start":"a/"}`, "a/"},
		"fraction":         {`{"v":"meta.k8s.io/v1","rv":1.5,"start":"a"}`, "unmarshal"},
		"larger than fits": {`{"v":"meta.k8s.io/v1","rv":9223372036854775808,"start":"a"}`, "unmarshal"},
		"no JSON":          {`hello`, "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			key, rv, err := DecodeContinue(base64.RawURLEncoding.EncodeToString([]byte(test.json)), podsPrefix)
			require.True(t, err != nil, "got %q at %d", key, rv)
			assert.True(t, strings.Contains(err.Error(), test.want), "got %v, want %s", err, test.want)
		})
	}
	_, _, err := DecodeContinue("not base64!", podsPrefix)
	assert.True(t, err != nil, "no base64: got no error")
}

// FuzzDecodeContinue checks that the key lies under the prefix, and that a token of the answer gives the same answer.
func FuzzDecodeContinue(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"v":"meta.k8s.io/v1","rv":1,"start":"default/a\u0000"}`,
		`{"v":"meta.k8s.io/v1","rv":-1,"start":"/"}`,
		`{"v":"meta.k8s.io/v1","rv":1,"start":"../../x"}`, `{"v":"meta.k8s.io/v1","rv":1,"start":"."}`,
	} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(seed)))
	}
	f.Add("%%%")
	f.Fuzz(func(t *testing.T, token string) {
		key, rv, err := DecodeContinue(token, podsPrefix)
		if err != nil {
			return
		}
		require.True(t, strings.HasPrefix(key, podsPrefix) && key != podsPrefix && rv != 0, "got %q at %d", key, rv)
		for segment := range strings.SplitSeq(key, "/") {
			require.True(t, segment != "..", "%q climbs", key)
		}
		again := require.Value(EncodeContinue(key, podsPrefix, rv))(t)
		key2, rv2, err := DecodeContinue(again, podsPrefix)
		assert.True(t, err == nil && key2 == key && rv2 == rv, "got %q at %d, then %q at %d, %v", key, rv, key2, rv2,
			err)
	})
}

func TestPrepareKey(t *testing.T) {
	const prefix = "/registry/pods"
	for _, test := range []struct {
		name, key string
		recursive bool
		want      string // "" if it is refused
	}{
		{name: "object", key: "/registry/pods/default/a", want: "/registry/pods/default/a"},
		{name: "resource", key: "/registry/pods", recursive: true, want: "/registry/pods/"},
		{name: "resource with a slash", key: "/registry/pods/", recursive: true, want: "/registry/pods/"},
		{name: "namespace", key: "/registry/pods/default", recursive: true, want: "/registry/pods/default/"},
		{name: "resource as one key", key: "/registry/pods"},
		// upstream lets it pass, and finds nothing there
		{name: "resource with a slash as one key", key: "/registry/pods/", want: "/registry/pods/"},
		{name: "name with dots", key: "/registry/pods/default/a..b", want: "/registry/pods/default/a..b"},
		{name: "neighbour", key: "/registry/podsecurity/a"},
		{name: "neighbour that begins alike", key: "/registry/podsmore"},
		{name: "neighbour, recursive", key: "/registry/podsecurity", recursive: true},
		{name: "parent", key: "/registry", recursive: true},
		{name: "climbing", key: "/registry/pods/../secrets/a"},
		{name: "climbing at the end", key: "/registry/pods/.."},
		{name: "standing still", key: "/registry/pods/./a"},
		{name: "empty", key: ""},
		{name: "root", key: "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := PrepareKey(prefix, test.key, test.recursive)
			assert.True(t, got == test.want && (err == nil) == (test.want != ""),
				"PrepareKey(%q): got %q, %v, want %q", test.key, got, err, test.want)
		})
	}
}
