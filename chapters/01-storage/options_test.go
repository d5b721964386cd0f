package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestWhichRevisionAListIsReadAt(t *testing.T) {
	token, err := EncodeContinue(podsPrefix+"default/b", podsPrefix, 5)
	require.NoError(t, err)
	inconsistent, err := EncodeContinue(podsPrefix+"default/b", podsPrefix, -1)
	require.NoError(t, err)
	const exact, least = metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan
	for name, test := range map[string]struct {
		opts ListOptions
		rev  int64
		key  string
		bad  bool
	}{
		"nothing": {opts: ListOptions{Recursive: true}},
		"any":     {opts: ListOptions{Recursive: true, ResourceVersion: "0"}},
		"legacy":  {opts: ListOptions{Recursive: true, ResourceVersion: "7"}},
		"legacy, paged": {opts: ListOptions{Recursive: true, ResourceVersion: "7",
			Predicate: SelectionPredicate{Limit: 1}}, rev: 7},
		"legacy, paged, one key": {opts: ListOptions{ResourceVersion: "7", Predicate: SelectionPredicate{Limit: 1}}},
		"exact": {opts: ListOptions{Recursive: true, ResourceVersion: "7",
			ResourceVersionMatch: exact}, rev: 7},
		"at least": {opts: ListOptions{Recursive: true, ResourceVersion: "7",
			ResourceVersionMatch: least, Predicate: SelectionPredicate{Limit: 1}}},
		"unknown match": {opts: ListOptions{Recursive: true, ResourceVersion: "7", ResourceVersionMatch: "x"},
			bad: true},
		"no number": {opts: ListOptions{Recursive: true, ResourceVersion: "x"}, bad: true},
		"continued": {opts: ListOptions{Recursive: true, Predicate: SelectionPredicate{Continue: token}},
			rev: 5, key: podsPrefix + "default/b"},
		"continued from any": {opts: ListOptions{Recursive: true, ResourceVersion: "0",
			Predicate: SelectionPredicate{Continue: token}}, rev: 5, key: podsPrefix + "default/b"},
		"continued at a version": {opts: ListOptions{Recursive: true, ResourceVersion: "5",
			Predicate: SelectionPredicate{Continue: token}}, bad: true},
		"continued anyhow": {opts: ListOptions{Recursive: true, Predicate: SelectionPredicate{
			Continue: inconsistent}}, key: podsPrefix + "default/b"},
		"continued garbage": {opts: ListOptions{Recursive: true, Predicate: SelectionPredicate{Continue: "x"}},
			bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			rev, key, err := ValidateListOptions(podsPrefix, test.opts)
			if test.bad {
				assert.Fails(t, err, apierrors.IsBadRequest)
				return
			}
			assert.True(t, err == nil && rev == test.rev && key == test.key,
				"got %d, %q, %v, want %d, %q", rev, key, err, test.rev, test.key)
		})
	}
}

func TestPageSaysWhatIsStillToCome(t *testing.T) {
	opts := ListOptions{Predicate: SelectionPredicate{Limit: 2}}
	token, remaining, err := PrepareContinueToken(podsPrefix+"default/b", podsPrefix, 5, 7, true, opts)
	require.True(t, err == nil && remaining != nil && *remaining == 5, "got %v remaining, %v, want 5", remaining, err)
	if key, rv, err := DecodeContinue(token, podsPrefix); err != nil || key != podsPrefix+"default/b\x00" || rv != 5 {
		t.Errorf("got %q at %d, %v, want the key after b at 5", key, rv, err)
	}
	if token, remaining, err := PrepareContinueToken(podsPrefix+"default/b", podsPrefix, 5, 2, false,
		opts); token != "" || remaining != nil || err != nil {
		t.Errorf("last page: got %q, %v, %v", token, remaining, err)
	}
	opts.Predicate.Field = fields.OneTermEqualSelector("metadata.name", "x")
	if token, remaining, err := PrepareContinueToken(podsPrefix+"default/b", podsPrefix, 5, 7, true,
		opts); token == "" || remaining != nil || err != nil {
		t.Errorf("with a selector: got %q, %v, %v, want a token and no number", token, remaining, err)
	}
	if _, _, err := PrepareContinueToken("/elsewhere/b", podsPrefix, 5, 7, true, opts); err == nil {
		t.Error("a key of elsewhere: got no error")
	}
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
		"wanted":                {send: ptr(true), initial: true},
		"wanted, at a version":  {send: ptr(true), rv: 7, initial: true},
		"wanted, and bookmarks": {send: ptr(true), bookmarks: true, initial: true, bookmark: true},
		"not wanted":            {send: ptr(false), bookmarks: true},
		"bookmarks alone":       {bookmarks: true, initial: true},
	} {
		opts := ListOptions{SendInitialEvents: test.send, Predicate: SelectionPredicate{
			AllowWatchBookmarks: test.bookmarks}}
		assert.Equal(t, opts.AreInitialEventsRequired(test.rv), test.initial, "%s: initial events", name)
		assert.Equal(t, opts.IsInitialEventsEndBookmarkRequired(), test.bookmark, "%s: end bookmark", name)
	}
}

func TestEndBookmarkIsMarked(t *testing.T) {
	p := &corev1.Pod{}
	if err := AnnotateInitialEventsEndBookmark(p); err != nil ||
		p.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("not marked: %v, %v", p.Annotations, err)
	}
	assert.True(t, AnnotateInitialEventsEndBookmark(&metav1.Status{}) != nil, "a Status was marked")
}
