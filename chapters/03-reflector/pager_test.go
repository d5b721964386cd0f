package reflector

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// pages answers requests one after the other and writes down what it is asked.
type pages struct {
	asked   []string
	answers []any // *corev1.PodList or error
}

func (p *pages) list(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	p.asked = append(p.asked, fmt.Sprintf("rv=%s match=%s limit=%d continue=%s", options.ResourceVersion,
		options.ResourceVersionMatch, options.Limit, options.Continue))
	answer := p.answers[0]
	p.answers = p.answers[1:]
	if err, ok := answer.(error); ok {
		return nil, err
	}
	return answer.(runtime.Object), nil
}

func TestPager(t *testing.T) {
	first := page(podList("5", pod("a", "1"), pod("b", "2")), "x")
	second := page(podList("5", pod("c", "3")), "y")
	last := podList("5", pod("d", "4"))
	exact := metav1.ListOptions{ResourceVersion: "4", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	rows := []struct {
		name    string
		size    int64
		options metav1.ListOptions
		answers []any
		asked   []string
		want    string
	}{
		{"one page", 2, exact, []any{last}, []string{"rv=4 match=Exact limit=2 continue="}, "[d] at 5 paginated=false"},
		{
			"the version is sent with the first page only", 2, exact, []any{first, second, last},
			[]string{"rv=4 match=Exact limit=2 continue=", "rv= match= limit=2 continue=x",
				"rv= match= limit=2 continue=y"},
			"[a b c d] at 5 paginated=true",
		},
		{
			"an explicit limit wins", 2, metav1.ListOptions{Limit: 7}, []any{last},
			[]string{"rv= match= limit=7 continue="}, "[d] at 5 paginated=false",
		},
		{
			"expired on the second page: everything at once, as asked at first", 2, exact, []any{first, expired,
				podList("9", pod("a", "1"))},
			[]string{"rv=4 match=Exact limit=2 continue=", "rv= match= limit=2 continue=x",
				"rv=4 match=Exact limit=0 continue="},
			"[a] at 9 paginated=true",
		},
		{
			"expired on the first page is an error", 2, exact, []any{expired},
			[]string{"rv=4 match=Exact limit=2 continue="}, "error Expired",
		},
		{
			"any other error on a later page is an error", 2, exact, []any{first, busy},
			[]string{"rv=4 match=Exact limit=2 continue=", "rv= match= limit=2 continue=x"}, "error TooManyRequests",
		},
		{
			"an object is not a list", 2, metav1.ListOptions{}, []any{pod("a", "1")},
			[]string{"rv= match= limit=2 continue="}, "error ",
		},
		{
			"a table is not a list of objects", 2, metav1.ListOptions{}, []any{&metav1.Table{}},
			[]string{"rv= match= limit=2 continue="}, "error ",
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := &pages{answers: row.answers}
			pager := ListPager{PageSize: row.size, PageFn: p.list}
			got := ""
			list, err := pager.List(t.Context(), row.options)
			if err != nil {
				got = "error " + string(apierrors.ReasonForError(err))
			} else {
				names := []string{}
				for _, item := range list.Items {
					names = append(names, item.(*corev1.Pod).Name)
				}
				got = fmt.Sprintf("%v at %s paginated=%v", names, list.ResourceVersion, list.Paginated)
			}
			assert.Equal(t, got, row.want)
			assert.Equal(t, fmt.Sprint(p.asked), fmt.Sprint(row.asked), "asked\n got %v\nwant %v", p.asked, row.asked)
		})
	}
}

func TestItemsDoNotKeepTheirPageAlive(t *testing.T) {
	list := podList("5", pod("a", "1"))
	joined := &PagedList{}
	_, err := joined.append(list)
	require.NoError(t, err)
	assert.True(t, joined.Items[0].(*corev1.Pod) != &list.Items[0], "the item points into the page's array")
}
