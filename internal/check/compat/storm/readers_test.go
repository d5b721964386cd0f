package storm

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
)

// pager reads the list in pages, and then the exact list at the version of the first page: they have to be equal,
// however long it took.
type pager struct {
	api    typed.ConfigMapInterface
	random *rand.Rand

	// Owned by run; read when it has returned.
	nCompared, nExpired int
	faults
}

func (p *pager) name() string { return "pager" }

func (p *pager) String() string {
	return fmt.Sprintf("%d equal to the exact list, %d times 410", p.nCompared, p.nExpired)
}

// run reads until ctx is done.
func (p *pager) run(ctx context.Context) {
	for pause(ctx, time.Duration(100+p.random.IntN(400))*time.Millisecond) {
		rv, pages, err := p.inPages(ctx)
		var exact *corev1.ConfigMapList
		if err == nil {
			exact, err = p.api.List(ctx, metav1.ListOptions{ResourceVersion: rv,
				ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		}
		switch {
		case apierrors.IsResourceExpired(err):
			p.nExpired++
		case err == nil:
			p.nCompared++
			want := map[string]object{}
			for _, o := range objects(exact) {
				want[o.name] = o
			}
			if exact.ResourceVersion != rv || !maps.Equal(pages, want) {
				p.add("pages at %s hold %d objects, the exact list at %s %d", rv, len(pages), exact.ResourceVersion,
					len(want))
			}
		}
	}
}

// inPages returns the version of the list, and its objects by name.
func (p *pager) inPages(ctx context.Context) (rv string, all map[string]object, err error) {
	options := metav1.ListOptions{Limit: int64(1 + p.random.IntN(7))}
	all = map[string]object{}
	for {
		list, err := p.api.List(ctx, options)
		if err != nil {
			return "", nil, err
		}
		if rv != "" && list.ResourceVersion != rv {
			p.add("a page at %s after one at %s", list.ResourceVersion, rv)
		}
		rv = list.ResourceVersion
		for _, o := range objects(list) {
			if _, twice := all[o.name]; twice {
				p.add("a page at %s holds %+v, which an earlier one held", rv, o)
			}
			all[o.name] = o
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return rv, all, nil
		}
		pause(ctx, time.Duration(p.random.IntN(10))*time.Millisecond)
	}
}
