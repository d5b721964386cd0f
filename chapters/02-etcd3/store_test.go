package etcd3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/mvcc"
)

// onBoth runs a test over the in-memory etcd and over a real one.
func onBoth(t *testing.T, test func(t *testing.T, client Client)) {
	t.Run("memory", func(t *testing.T) { test(t, mvcc.New(clock.RealClock{})) })
	t.Run("etcd", func(t *testing.T) { test(t, newEtcd(t)) })
}

func TestStoredFormIsThatOfTheMediaTypeAndEitherIsRead(t *testing.T) {
	for _, form := range []struct {
		mediaType, other string
		begins           []byte
	}{
		{MediaTypeProtobuf, MediaTypeJSON, []byte("k8s\x00")},
		{MediaTypeJSON, MediaTypeProtobuf, []byte(`{"kind":"Pod","apiVersion":"v1"`)},
	} {
		t.Run(form.mediaType, func(t *testing.T) {
			client := mvcc.New(clock.RealClock{})
			writer := newStore(t, client, func(cfg *Config) { cfg.Codec = codec(t, form.mediaType) })
			reader := newStore(t, client, func(cfg *Config) { cfg.Codec = codec(t, form.other) })
			create(t, writer, pod("a", "web"))
			raw, err := client.Get(t.Context(), key("a"), kubernetes.GetOptions{})
			require.True(t, err == nil && bytes.HasPrefix(raw.KV.Value, form.begins),
				"stored %q, %v, want it to begin with %q", raw.KV.GetValue(), err, form.begins)
			assert.False(t, bytes.Contains(raw.KV.Value, []byte("resourceVersion")),
				"the resource version is stored: %q", raw.KV.Value)
			got := &corev1.Pod{}
			require.NoError(t, reader.Get(t.Context(), key("a"), storage.GetOptions{}, got))
			assert.True(t, got.Labels["app"] == "web" && got.Kind == "" && got.ResourceVersion == "2",
				"got %+v, want a at 2 with no kind", got)
		})
	}
}

func TestUnknownMediaTypeAndWatcherAreRefused(t *testing.T) {
	_, err := NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, "application/xml")
	assert.True(t, err != nil, "media type: got no error")
	client := mvcc.New(clock.RealClock{})
	good := Config{Client: client, Codec: codec(t, MediaTypeJSON), NewFunc: newPod, ResourcePrefix: prefix}
	for name, change := range map[string]func(*Config){
		"watcher": func(cfg *Config) { cfg.Watcher = "etcd4" },
		"slash":   func(cfg *Config) { cfg.ResourcePrefix = "/registry/pods/" },
		"empty":   func(cfg *Config) { cfg.ResourcePrefix = "" },
		"client":  func(cfg *Config) { cfg.Client = nil },
	} {
		cfg := good
		change(&cfg)
		assert.True(t, assert.ErrorOf(New(cfg)) != nil, "%s: got no error", name)
	}
}

func TestKeysOutsideTheResourceAreRefused(t *testing.T) {
	s, client := newMVCC(t)
	one := everything()
	one.Recursive = false
	// the last is the resource's root, which is no object
	for _, bad := range []string{"", "/", "/registry/podsecurity/a", "/registry/pods/../secrets/a",
		"/registry/pods/./a", "/registry", "/registry/pods"} {
		t.Run(bad, func(t *testing.T) {
			out := &corev1.Pod{}
			assert.True(t, s.Get(t.Context(), bad, storage.GetOptions{}, out) != nil, "get: no error")
			assert.True(t, s.Create(t.Context(), bad, pod("a", ""), out) != nil, "create: no error")
			assert.True(t, s.Delete(t.Context(), bad, out, nil, nil) != nil, "delete: no error")
			assert.True(t, s.GuaranteedUpdate(t.Context(), bad, out, true, nil, nil, nil) != nil, "update: no error")
			assert.True(t, s.GetList(t.Context(), bad, one, newPodList()) != nil, "list: no error")
			assert.True(t, assert.ErrorOf(s.Watch(t.Context(), bad, one)) != nil, "watch: no error")
			assert.Equal(t, 1, client.Revision(), "something was written")
		})
	}
}

func TestValueThatDoesNotDecodeIsAnInternalError(t *testing.T) {
	node := require.Value(json.Marshal(map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{
		"name": "a"}}))(t)
	for name, value := range map[string][]byte{
		"empty": nil, "garbage": []byte("garbage"), "protobuf that ends early": []byte("k8s\x00\x0a"),
		"another kind": node,
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newMVCC(t)
			client.Put(key("a"), value)
			wantStatus(t, s.Get(t.Context(), key("a"), storage.GetOptions{}, &corev1.Pod{}),
				http.StatusInternalServerError, metav1.StatusReasonInternalError)
			wantStatus(t, s.GetList(t.Context(), prefix, everything(), newPodList()), http.StatusInternalServerError,
				metav1.StatusReasonInternalError)
		})
	}
}

func TestAListThatFailsHoldsWhatWasReadBefore(t *testing.T) {
	s, client := newMVCC(t)
	create(t, s, pod("a", ""))
	client.Put(key("b"), []byte("garbage"))
	list := newPodList()
	wantStatus(t, s.GetList(t.Context(), prefix, everything(), list), http.StatusInternalServerError,
		metav1.StatusReasonInternalError)
	items := list.(*corev1.PodList).Items
	assert.True(t, len(items) == 1 && items[0].Name == "a", "got %d items, want a alone", len(items))
}

func TestAnswerOfACallEndsWithItsContext(t *testing.T) {
	onBoth(t, func(t *testing.T, client Client) {
		s := newStore(t, client, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		err := s.GetList(ctx, prefix, everything(), newPodList())
		wantStatus(t, err, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
	})
}

func TestObjectTooLargeForEtcdIsRefusedAsSuch(t *testing.T) {
	s := newStore(t, newEtcd(t), nil)
	for _, size := range []int{1_600_000, 3_000_000} { // more than the server takes, more than the client sends
		p := pod("a", "")
		p.Annotations = map[string]string{"large": strings.Repeat("x", size)}
		err := s.Create(t.Context(), key("a"), p, nil)
		wantStatus(t, err, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge)
	}
}

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
