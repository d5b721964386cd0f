package registry

import (
	"cmp"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/kube/resources"
	"listwatch/internal/kube/scheme"
)

// Resources returns every resource of the program, by name: those that something here acts on, and those that are only
// kept.
func Resources() []*Resource {
	own := []*Resource{ConfigMaps(), Events(), EventsV1(), Leases(), Namespaces(), Nodes(), Pods()}
	return append(own, keptResources()...)
}

// defaultFields are those that objects of most kinds can be selected by.
var defaultFields = []string{"metadata.name", "metadata.namespace"}

// complete fills in what follows from an empty object and an empty list of a kind, and what most kinds have in common.
func complete(r Resource, obj, list runtime.Object) *Resource {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		panic("registry: " + r.Name + ": " + err.Error())
	}
	r.GroupVersion, r.Kind = kinds[0].GroupVersion(), kinds[0].Kind
	r.Singular = strings.ToLower(r.Kind)
	r.Prefix = cmp.Or(r.Prefix, "/registry/"+r.Name)
	r.NewFunc, r.NewListFunc = obj.DeepCopyObject, list.DeepCopyObject
	if r.GetAttrs == nil {
		r.GetAttrs, r.Fields = storage.DefaultNamespaceScopedAttr, defaultFields
	}
	if r.Default == nil {
		r.Default = func(runtime.Object) {}
	}
	if r.ValidateName == nil {
		r.ValidateName = validation.NameIsDNSSubdomain
	}
	return &r
}

// ConfigMaps describes configmaps.
func ConfigMaps() *Resource {
	return complete(Resource{
		Name: "configmaps", ShortNames: []string{"cm"}, Namespaced: true,
		Columns:  resources.ConfigMapColumns,
		Strategy: resources.ConfigMapStrategy{},
	}, &corev1.ConfigMap{}, &corev1.ConfigMapList{})
}

// eventTTL is how long an event is kept after it was last reported. Upstream's default.
const eventTTL = time.Hour

// Events describes events: what the people who run a cluster are told, not to be taken for watch events.
func Events() *Resource {
	return events(resources.EventFields, &corev1.Event{}, &corev1.EventList{})
}

// EventsV1 describes the same events as events.k8s.io/v1 has them, in which newer clients report.
//
// Differs: fields that upstream requires of it are not.
func EventsV1() *Resource {
	return events(resources.EventV1Fields, &eventsv1.Event{}, &eventsv1.EventList{})
}

func events(fields []string, obj, list runtime.Object) *Resource {
	return complete(Resource{
		Name: "events", ShortNames: []string{"ev"}, Namespaced: true,
		GetAttrs: resources.EventAttrs,
		Fields:   fields,
		Columns:  resources.EventColumns,
		Strategy: resources.EventStrategy{},
		TTL:      eventTTL,
		// a reporter that counts up an event need not know whether it is still there
		CreateOnUpdate: true,
	}, obj, list)
}

// Leases describes leases: who of several controllers may act, and until when.
func Leases() *Resource {
	return complete(Resource{
		Name: "leases", Namespaced: true,
		Columns:         resources.LeaseColumns,
		Strategy:        resources.LeaseStrategy{},
		VersionRequired: true, CreateOnUpdate: true,
	}, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
}

// Namespaces describes namespaces. One that is deleted is only marked: it is erased when each that is on the list in
// its spec has removed what is in it. That is a controller, as upstream.
func Namespaces() *Resource {
	return complete(Resource{
		Name: "namespaces", ShortNames: []string{"ns"},
		GetAttrs:            resources.NamespaceAttrs,
		Fields:              []string{"metadata.name", "status.phase"},
		Default:             resources.DefaultNamespace,
		ValidateName:        validation.NameIsDNSLabel,
		Columns:             resources.NamespaceColumns,
		Strategy:            resources.NamespaceStrategy{},
		StatusStrategy:      resources.NamespaceStatusStrategy{},
		Immortal:            SystemNamespaces,
		ReturnDeletedObject: true,
	}, &corev1.Namespace{}, &corev1.NamespaceList{})
}

// Nodes describes nodes.
func Nodes() *Resource {
	return complete(Resource{
		Name: "nodes", ShortNames: []string{"no"},
		Prefix:         "/registry/minions",
		GetAttrs:       resources.NodeAttrs,
		Fields:         []string{"metadata.name", "spec.unschedulable"},
		Columns:        resources.NodeColumns,
		Strategy:       resources.NodeStrategy{},
		StatusStrategy: resources.KeptStatusStrategy{},
	}, &corev1.Node{}, &corev1.NodeList{})
}
