package etcd3

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/server/mvcc"
)

// names writes a list in one line: "a b at 3".
func names(list *corev1.PodList) string {
	var parts []string
	for _, p := range list.Items {
		parts = append(parts, p.Name)
	}
	return strings.Join(parts, " ") + " at " + list.ResourceVersion
}

func list(t *testing.T, s *Store, opts storage.ListOptions) (*corev1.PodList, error) {
	t.Helper()
	out := &corev1.PodList{}
	return out, s.GetList(t.Context(), prefix, opts, out)
}

func mustList(t *testing.T, s *Store, opts storage.ListOptions) *corev1.PodList {
	t.Helper()
	return require.Value(list(t, s, opts))(t)
}

// counting counts range reads and writes down their limits.
type counting struct {
	Client
	limits []int64
}

func (c *counting) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse,
	error) {
	c.limits = append(c.limits, opts.Limit)
	return c.Client.List(ctx, prefix, opts)
}

func TestPagesDoubleUntilARareObjectIsFound(t *testing.T) {
	client := &counting{Client: mvcc.New(clock.RealClock{})}
	s := newStore(t, client, nil)
	for n := range 40 {
		create(t, s, pod(fmt.Sprintf("p%02d", n), ""))
	}
	create(t, s, pod("rare", "web"))
	create(t, s, pod("s", ""))
	opts := everything()
	opts.Predicate = selecting(t, "app=web")
	opts.Predicate.Limit = 1
	got := mustList(t, s, opts)
	assert.True(t, names(got) == "rare at 43" && got.Continue != "",
		"got %q, continue %q, want rare and a token", names(got), got.Continue)
	assert.EqualSlices(t, []int64{1, 2, 4, 8, 16, 32}, client.limits, "limits")
	opts.Predicate.Continue = got.Continue
	if got := mustList(t, s, opts); names(got) != " at 43" || got.Continue != "" {
		t.Errorf("the rest: got %q, continue %q, want nothing", names(got), got.Continue)
	}
}

func TestLimitsGrowToTheBoundOnly(t *testing.T) {
	for limit, want := range map[int64]int64{0: 0, 1: 2, 4999: 9998, 5000: 10000, 6000: 10000, 10000: 10000,
		20000: 20000} {
		assert.Equal(t, want, nextLimit(limit), "after %d", limit)
	}
}

func TestListGoesIntoAnEmptyListOnly(t *testing.T) {
	s, _ := newMVCC(t)
	create(t, s, pod("a", ""))
	out := &corev1.PodList{Items: []corev1.Pod{*pod("junk", "junk"), *pod("junk", "junk")}}
	if err := s.GetList(t.Context(), prefix, everything(), out); err != nil || names(out) != "a at 2" ||
		len(out.Items[0].Labels) != 0 {
		t.Errorf("got %q, %v", names(out), err)
	}
	assert.True(t, s.GetList(t.Context(), prefix, everything(), &corev1.Pod{}) != nil, "into a pod: got no error")
	opts := everything()
	opts.Predicate.Limit = -1
	_, err := list(t, s, opts)
	wantStatus(t, err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
}
