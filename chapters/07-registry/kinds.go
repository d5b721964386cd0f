package registry

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/kube/resources"
)

// Resources returns every resource of the program, by name.
func Resources() []*Resource {
	return []*Resource{ConfigMaps(), Events(), Leases(), Namespaces(), Nodes(), Pods()}
}

// ConfigMaps describes configmaps.
func ConfigMaps() *Resource {
	return &Resource{
		GroupVersion: corev1.SchemeGroupVersion,
		Name:         "configmaps", Singular: "configmap", Kind: "ConfigMap", ShortNames: []string{"cm"},
		Namespaced:   true,
		Prefix:       "/registry/configmaps",
		NewFunc:      func() runtime.Object { return &corev1.ConfigMap{} },
		NewListFunc:  func() runtime.Object { return &corev1.ConfigMapList{} },
		GetAttrs:     storage.DefaultNamespaceScopedAttr,
		Fields:       []string{"metadata.name", "metadata.namespace"},
		Default:      func(runtime.Object) {},
		ValidateName: validation.NameIsDNSSubdomain,
		Columns:      resources.ConfigMapColumns(),
		Cells:        resources.ConfigMapCells,
		Strategy:     resources.ConfigMapStrategy{},
	}
}

// eventTTL is how long an event is kept after it was last reported. Upstream's default.
const eventTTL = time.Hour

// Events describes events: what the people who run a cluster are told, not to be taken for watch events.
func Events() *Resource {
	return &Resource{
		GroupVersion: corev1.SchemeGroupVersion,
		Name:         "events", Singular: "event", Kind: "Event", ShortNames: []string{"ev"}, Namespaced: true,
		Prefix:      "/registry/events",
		NewFunc:     func() runtime.Object { return &corev1.Event{} },
		NewListFunc: func() runtime.Object { return &corev1.EventList{} },
		GetAttrs:    resources.EventAttrs,
		Fields: []string{
			"metadata.name", "metadata.namespace", "involvedObject.kind", "involvedObject.namespace",
			"involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
			"reportingComponent", "source", "type",
		},
		Default:      func(runtime.Object) {},
		ValidateName: validation.NameIsDNSSubdomain,
		Columns:      resources.EventColumns(),
		Cells:        resources.EventCells,
		Strategy:     resources.EventStrategy{},
		TTL:          eventTTL,
	}
}

// Leases describes leases: who of several controllers may act, and until when. Their watch cache begins with the first
// watch: most clusters of this program have none.
func Leases() *Resource {
	return &Resource{
		GroupVersion: coordinationv1.SchemeGroupVersion,
		Name:         "leases", Singular: "lease", Kind: "Lease", Namespaced: true,
		Prefix:       "/registry/leases",
		NewFunc:      func() runtime.Object { return &coordinationv1.Lease{} },
		NewListFunc:  func() runtime.Object { return &coordinationv1.LeaseList{} },
		GetAttrs:     storage.DefaultNamespaceScopedAttr,
		Fields:       []string{"metadata.name", "metadata.namespace"},
		Default:      func(runtime.Object) {},
		ValidateName: validation.NameIsDNSSubdomain,
		Columns:      resources.LeaseColumns(),
		Cells:        resources.LeaseCells,
		Strategy:     resources.LeaseStrategy{},
		OnDemand:     true,
	}
}

// Namespaces describes namespaces. One that is deleted is only marked: it is erased when each that is on the list in
// its spec has removed what is in it. That is a controller, as upstream.
func Namespaces() *Resource {
	return &Resource{
		GroupVersion: corev1.SchemeGroupVersion,
		Name:         "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
		Prefix:              "/registry/namespaces",
		NewFunc:             func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:         func() runtime.Object { return &corev1.NamespaceList{} },
		GetAttrs:            resources.NamespaceAttrs,
		Fields:              []string{"metadata.name", "status.phase"},
		Default:             resources.DefaultNamespace,
		ValidateName:        validation.NameIsDNSLabel,
		Columns:             resources.NamespaceColumns(),
		Cells:               resources.NamespaceCells,
		Strategy:            resources.NamespaceStrategy{},
		StatusStrategy:      resources.NamespaceStatusStrategy{},
		Immortal:            SystemNamespaces,
		ReturnDeletedObject: true,
	}
}

// Nodes describes nodes.
func Nodes() *Resource {
	return &Resource{
		GroupVersion: corev1.SchemeGroupVersion,
		Name:         "nodes", Singular: "node", Kind: "Node", ShortNames: []string{"no"},
		Prefix:         "/registry/minions",
		NewFunc:        func() runtime.Object { return &corev1.Node{} },
		NewListFunc:    func() runtime.Object { return &corev1.NodeList{} },
		GetAttrs:       resources.NodeAttrs,
		Fields:         []string{"metadata.name", "spec.unschedulable"},
		Default:        func(runtime.Object) {},
		ValidateName:   validation.NameIsDNSSubdomain,
		Columns:        resources.NodeColumns(),
		Cells:          resources.NodeCells,
		Strategy:       resources.NodeStrategy{},
		StatusStrategy: resources.NodeStatusStrategy{},
	}
}
