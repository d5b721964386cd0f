package clientgo

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
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

	"listwatch/internal/check/compat/program"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// startInformer is one make of informers: it starts one of all ConfigMaps.
type startInformer func(t *testing.T, config *rest.Config) cache.SharedIndexInformer

var makes = map[string]startInformer{
	"typed": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := informers.NewSharedInformerFactory(must(kubernetes.NewForConfig(protobuf(config))), 0)
		informer := factory.Core().V1().ConfigMaps().Informer()
		stop := make(chan struct{}) // closed with the test
		factory.Start(stop)
		t.Cleanup(func() { close(stop); factory.Shutdown() })
		return informer
	},
	"dynamic": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := dynamicinformer.NewDynamicSharedInformerFactory(must(dynamic.NewForConfig(config)), 0)
		informer := factory.ForResource(configMaps).Informer()
		stop := make(chan struct{}) // closed with the test
		factory.Start(stop)
		t.Cleanup(func() { close(stop); factory.Shutdown() })
		return informer
	},
	"metadata": func(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
		factory := metadatainformer.NewSharedInformerFactory(must(metadata.NewForConfig(config)), 0)
		informer := factory.ForResource(configMaps).Informer()
		stop := make(chan struct{}) // closed with the test
		factory.Start(stop)
		t.Cleanup(func() { close(stop); factory.Shutdown() })
		return informer
	},
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
	if watchList && (lists != 0 || !strings.Contains(first, "sendInitialEvents=true")) {
		t.Errorf("want one watch with the initial events, got %q", asked)
	}
	if !watchList && (lists != 1 || !strings.Contains(first, "resourceVersion=0")) {
		t.Errorf("want a list at 0, then a watch, got %q", asked)
	}
}

// TestAReflectorFillsAStore runs the real Reflector without an informer around it, on a selection.
func TestAReflectorFillsAStore(t *testing.T) {
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("watch-list %v", watchList), func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			v := program.StartViz(t, alone...)
			churn(t, v, 3, 10)
			selector := fields.OneTermNotEqualSelector("metadata.name", "c1")
			client := clientset(t, v)
			lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", "other", selector)
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.ConfigMap{}, store, cache.ReflectorOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{}) // closed when the reflector has ended
			go func() {
				defer close(ended)
				reflector.RunWithContext(ctx)
			}()
			t.Cleanup(func() { cancel(); <-ended })
			churn(t, v, 4, 50)
			var want []any
			for _, line := range stored(t, v) {
				if strings.HasPrefix(line, "other/") && !strings.HasPrefix(line, "other/c1@") {
					want = append(want, line)
				}
			}
			program.Eventually(t, patience, func() (bool, string) {
				got := namesOf(store.List())
				return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprintf("\ngot  %v\nwant %v", got, want)
			})
			if reflector.LastSyncResourceVersion() == "" {
				t.Error("the reflector knows no version")
			}
		})
	}
}
