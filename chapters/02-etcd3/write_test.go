package etcd3

import (
	"errors"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/mvcc"
)

func TestCreateWithAResourceVersionIsRefusedUnlessItSaysNothing(t *testing.T) {
	for rv, refused := range map[string]bool{"7": true, "0": false, "abc": false, "-1": false} {
		s, client := newMVCC(t)
		p, out := pod("a", ""), &corev1.Pod{}
		p.ResourceVersion = rv
		err := s.Create(t.Context(), key("a"), p, out)
		assert.True(t, refused == (err != nil) && refused == (client.Revision() == 1) && refused ==
			(out.ResourceVersion == ""), "%s: got %v and version %q at revision %d", rv, err, out.ResourceVersion,
			client.Revision())
	}
}

func TestUpdateThatChangesNothingWritesNothing(t *testing.T) {
	s, client := newMVCC(t)
	created := create(t, s, pod("a", "web"))
	for name, cached := range map[string]runtime.Object{"read": nil, "cached": created} {
		out := &corev1.Pod{}
		require.NoError(t, s.GuaranteedUpdate(t.Context(), key("a"), out, false, nil, setLabel("web"), cached))
		assert.True(t, out.ResourceVersion == "2" && client.Revision() == 2,
			"%s: got %s, revision %d, want 2", name, out.ResourceVersion, client.Revision())
	}
	assert.Equal(t, "2", created.ResourceVersion, "the cached object was changed: %v", created)
}

func TestUpdateInAnotherFormIsWritten(t *testing.T) {
	s, client := newMVCC(t)
	create(t, s, pod("a", "web"))
	other := newStore(t, client, func(cfg *Config) { cfg.Codec = codec(t, MediaTypeJSON) })
	relabel(t, other, "a", "web")
	assert.True(t, client.Revision() == 3,
		"got revision %d, want 3: stored data should have moved to the other form", client.Revision())
}

func TestUpdateOfAMissingObject(t *testing.T) {
	s, _ := newMVCC(t)
	out := &corev1.Pod{}
	err := s.GuaranteedUpdate(t.Context(), key("a"), out, false, nil, setLabel("x"), nil)
	assert.True(t, storage.IsNotFound(err), "got %v, want KeyNotFound", err)
	update := func(current runtime.Object) (runtime.Object, error) {
		p := current.(*corev1.Pod)
		assert.True(t, p.Name == "" && p.ResourceVersion == "", "update was given %v, want a zero pod", p)
		return pod("a", "new"), nil
	}
	err = s.GuaranteedUpdate(t.Context(), key("a"), out, true, nil, update, nil)
	assert.True(t, err == nil && out.ResourceVersion == "2", "got %v, %v, want it created at 2", out, err)
}

func TestErrorFoundOnAStaleGuessDoesNotCount(t *testing.T) {
	s, _ := newMVCC(t)
	stale := create(t, s, pod("a", "old"))
	relabel(t, s, "a", "new")
	update := func(current runtime.Object) (runtime.Object, error) {
		p := current.(*corev1.Pod)
		if p.Labels["app"] == "old" {
			return nil, errors.New("old")
		}
		p.Annotations = map[string]string{"x": "y"}
		return p, nil
	}
	out := &corev1.Pod{}
	err := s.GuaranteedUpdate(t.Context(), key("a"), out, false, nil, update, stale)
	assert.True(t, err == nil && out.Labels["app"] == "new", "update: got %v, %v, want it done on the new state", out,
		err)
	updated := &storage.Preconditions{ResourceVersion: new("4")}
	err = s.Delete(t.Context(), key("a"), out, updated, stale)
	assert.True(t, err == nil && out.ResourceVersion == "5", "delete: got %v, %v, want it deleted at 5", out, err)
	fresh := create(t, s, pod("a", "old"))
	err = s.Delete(t.Context(), key("a"), out, updated, fresh)
	assert.Equal(t, storage.InvalidObj, storage.CodeOf(err), "delete on a guess that is right")
}

func TestStaleGuessOfAnObjectThatIsGoneIsNotFound(t *testing.T) {
	s, _ := newMVCC(t)
	stale := create(t, s, pod("a", ""))
	remove(t, s, "a")
	out := &corev1.Pod{}
	err := s.Delete(t.Context(), key("a"), out, nil, stale)
	assert.True(t, storage.IsNotFound(err), "delete: got %v, want KeyNotFound", err)
	err = s.GuaranteedUpdate(t.Context(), key("a"), out, false, nil, setLabel("x"), stale)
	assert.True(t, storage.IsNotFound(err), "update: got %v, want KeyNotFound", err)
}

func TestPreconditionsThatFailAreConflicts(t *testing.T) {
	s, client := newMVCC(t)
	p := pod("a", "")
	p.UID = "right"
	created := create(t, s, p)
	for name, test := range map[string]struct {
		preconditions storage.Preconditions
		ok            bool
	}{
		"uid":       {storage.Preconditions{UID: new(types.UID("wrong"))}, false},
		"rv":        {storage.Preconditions{ResourceVersion: new("1")}, false},
		"right":     {storage.Preconditions{UID: new(types.UID("right")), ResourceVersion: new("2")}, true},
		"no demand": {storage.Preconditions{}, true},
	} {
		for _, cached := range []runtime.Object{nil, created} {
			before := client.Revision()
			err := s.GuaranteedUpdate(t.Context(), key("a"), &corev1.Pod{}, false, &test.preconditions,
				func(current runtime.Object) (runtime.Object, error) { return current, nil }, cached)
			assert.False(t, test.ok != (err == nil) || !test.ok && storage.CodeOf(err) != storage.InvalidObj,
				"%s: got %v", name, err)
			if !test.ok {
				err := s.Delete(t.Context(), key("a"), &corev1.Pod{}, &test.preconditions, cached)
				assert.Equal(t, storage.InvalidObj, storage.CodeOf(err), "%s: delete", name)
			}
			assert.Equal(t, before, client.Revision(), "%s: something was written", name)
		}
	}
}

func TestDeleteThatLosesARaceIsTriedAgain(t *testing.T) {
	s, _ := newMVCC(t)
	read := create(t, s, pod("a", "")) // 2
	relabel(t, s, "a", "late")         // 3
	out := &corev1.Pod{}
	err := s.Delete(t.Context(), key("a"), out, nil, read)
	assert.True(t, err == nil && out.Labels["app"] == "late" && out.ResourceVersion == "4",
		"got %v, %v, want the late state deleted at 4", out, err)
}

func TestReportedCommitsAreTheHistory(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 64)
	s := newStore(t, mvcc.New(clock.RealClock{}), func(cfg *Config) { cfg.Probe = probe.New(log).Resource("pods") })
	create(t, s, pod("a", ""))
	relabel(t, s, "a", "x")
	relabel(t, s, "a", "x")
	remove(t, s, "a")
	var got []string
	for _, r := range probetest.Records(log, probe.TxnCommitted) {
		got = append(got, r.Type+" "+r.Key+" "+strconv.FormatUint(r.RV, 10)+" "+r.Resource)
	}
	assert.EqualSlices(t, []string{"ADDED /registry/pods/default/a 2 pods",
		"MODIFIED /registry/pods/default/a 3 pods", "DELETED /registry/pods/default/a 4 pods"}, got)
}
