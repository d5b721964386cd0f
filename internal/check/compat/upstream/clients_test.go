package upstream

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// startInformer is one make of informers: it starts one of all ConfigMaps.
type startInformer func(t *testing.T, config *rest.Config) cache.SharedIndexInformer

var makes = map[string]startInformer{
	"typed": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := informers.NewSharedInformerFactory(must(kubernetes.NewForConfig(protobuf(config))), 0)
		return started(t, factory, factory.Core().V1().ConfigMaps().Informer())
	},
	"dynamic": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := dynamicinformer.NewDynamicSharedInformerFactory(must(dynamic.NewForConfig(config)), 0)
		return started(t, factory, factory.ForResource(configMaps).Informer())
	},
	"metadata": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := metadatainformer.NewSharedInformerFactory(must(metadata.NewForConfig(config)), 0)
		return started(t, factory, factory.ForResource(configMaps).Informer())
	},
}

// started starts the informers of a factory, which end with the test.
func started(t *testing.T, factory interface {
	Start(stop <-chan struct{})
	Shutdown()
}, informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	stop := make(chan struct{}) // closed with the test
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	return informer
}

// TestEveryInformerEndsEqualToWhatIsStored watches it come to be, under churn, and lets another one come late.
func TestEveryInformerEndsEqualToWhatIsStored(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("watch-list %v", watchList), func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			for name, start := range makes {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					followChurn(t, start, watchList)
				})
			}
		})
	}
}

func followChurn(t *testing.T, start startInformer, watchList bool) {
	v := program.StartViz(t, alone...)
	churn(t, v, 1, 10)
	config, asked := configFor(v)
	early := start(t, config)
	program.Eventually(t, patience, func() (bool, string) { return early.HasSynced(), "not synced" })
	checkFirstRequests(t, asked.read(), watchList)
	churn(t, v, 2, 50)
	late := start(t, config)
	endsEqual(t, v, early.GetStore().List)
	endsEqual(t, v, late.GetStore().List)
}

// checkFirstRequests expects that the first state came as a stream, or by a list from the cache and a watch from there.
func checkFirstRequests(t *testing.T, asked []string, watchList bool) {
	t.Helper()
	first, lists := asked[0], 0
	for _, request := range asked {
		if !strings.Contains(request, "watch=true") {
			lists++
		}
	}
	assert.False(t, watchList && (lists != 0 || !strings.Contains(first, "sendInitialEvents=true")),
		"want one watch with the initial events, got %q", asked)
	assert.False(t, !watchList && (lists != 1 || !strings.Contains(first, "resourceVersion=0")),
		"want a list at 0, then a watch, got %q", asked)
}
