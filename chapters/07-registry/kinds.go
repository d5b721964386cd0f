package registry

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/kube/resources"
	"listwatch/internal/kube/scheme"
)

// Resources returns every resource of the program: first those that something here acts on.
func Resources() []*Resource { return slices.Concat(own(), others()) }

// defaultFields are those that objects of most kinds can be selected by.
var defaultFields = []string{"metadata.name", "metadata.namespace"}

// eventTTL is how long an event is kept after it was last reported. Upstream's default.
const eventTTL = time.Hour

// complete adds what follows from the type of obj, an empty object, and what most kinds have in common.
func complete(obj runtime.Object, r Resource) *Resource {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	utilruntime.Must(err)
	r.GroupVersion, r.Kind = kinds[0].GroupVersion(), kinds[0].Kind
	plural, _ := meta.UnsafeGuessKindToResource(kinds[0])
	r.Name = plural.Resource
	list, err := scheme.Scheme.New(r.GroupVersion.WithKind(r.Kind + "List"))
	utilruntime.Must(err)
	r.Prefix = cmp.Or(r.Prefix, "/registry/"+r.Name)
	r.NewFunc, r.NewListFunc = obj.DeepCopyObject, list.DeepCopyObject
	if r.GetAttrs == nil {
		r.GetAttrs, r.Fields = storage.DefaultNamespaceScopedAttr, defaultFields
	}
	if r.Strategy == nil {
		r.Strategy = resources.KeptStrategy{}
	}
	return &r
}

// own describes the kinds that something here acts on.
func own() []*Resource {
	event := Resource{Namespaced: true, GetAttrs: resources.EventAttrs,
		Fields: resources.EventFields, Strategy: resources.EventStrategy{}, TTL: eventTTL}
	// The same events as newer clients report them. Differs: upstream requires more fields.
	eventV1 := event
	eventV1.Fields = resources.EventV1Fields
	return []*Resource{
		complete(&corev1.ConfigMap{}, Resource{Namespaced: true, Strategy: resources.ConfigMapStrategy{}}),
		complete(&corev1.Event{}, event),
		complete(&eventsv1.Event{}, eventV1),
		complete(&coordinationv1.Lease{}, Resource{Namespaced: true, Strategy: resources.LeaseStrategy{}}),
		complete(&corev1.Namespace{}, Resource{
			GetAttrs: resources.NamespaceAttrs, Fields: []string{"metadata.name", "status.phase"},
			Strategy: resources.NamespaceStrategy{}, StatusStrategy: resources.NamespaceStatusStrategy{},
			ReturnDeletedObject: true}),
		complete(&corev1.Node{}, Resource{Prefix: "/registry/minions", Strategy: resources.NodeStrategy{},
			GetAttrs: resources.NodeAttrs, Fields: []string{"metadata.name", "spec.unschedulable"},
			StatusStrategy: resources.KeptStatusStrategy{}}),
		Pods(),
	}
}

// Pods describes pods.
func Pods() *Resource {
	return complete(&corev1.Pod{}, Resource{
		Namespaced: true, GetAttrs: resources.PodAttrs, Fields: resources.PodFields,
		Trigger: &storage.Trigger{Field: "spec.nodeName",
			ValueOf: resources.NodeNameTriggerFunc},
		Strategy: resources.PodStrategy{}, StatusStrategy: resources.PodStatusStrategy{}, ReturnDeletedObject: true,
	})
}

// others describes the kinds that nothing here acts on: programs of others do. A kube-scheduler lists them all.
func others() []*Resource {
	status := resources.KeptStatusStrategy{}
	workload := Resource{Namespaced: true, Strategy: resources.WorkloadStrategy{}, StatusStrategy: status}
	volume, spec := resources.VolumeStrategy{}, resources.SpecStrategy{}
	versioned := resources.VersionedStrategy{}
	return []*Resource{
		complete(&corev1.Secret{}, Resource{Namespaced: true, Strategy: resources.SecretStrategy{},
			GetAttrs: resources.SecretAttrs, Fields: []string{"metadata.name", "metadata.namespace", "type"}}),
		complete(&corev1.ServiceAccount{}, Resource{Namespaced: true}),
		complete(&corev1.Service{}, Resource{Namespaced: true, Strategy: resources.ServiceStrategy{},
			Prefix: "/registry/services/specs", StatusStrategy: status}),
		complete(&corev1.ReplicationController{}, Resource{Namespaced: true,
			Strategy: resources.ReplicationControllerStrategy{}, StatusStrategy: status,
			Prefix: "/registry/controllers"}),
		complete(&corev1.PersistentVolume{}, Resource{Strategy: volume, StatusStrategy: status}),
		complete(&corev1.PersistentVolumeClaim{}, Resource{Namespaced: true, Strategy: volume, StatusStrategy: status}),
		complete(&appsv1.Deployment{}, workload),
		complete(&appsv1.ReplicaSet{}, workload),
		complete(&appsv1.StatefulSet{}, workload),
		complete(&policyv1.PodDisruptionBudget{}, Resource{Namespaced: true,
			Strategy: resources.BudgetStrategy{}, StatusStrategy: status}),
		complete(&storagev1.StorageClass{}, Resource{Strategy: resources.StorageClassStrategy{}}),
		complete(&storagev1.CSINode{}, Resource{Strategy: versioned}),
		complete(&storagev1.CSIDriver{}, Resource{Strategy: versioned}),
		complete(&storagev1.CSIStorageCapacity{}, Resource{Namespaced: true, Strategy: versioned}),
		complete(&storagev1.VolumeAttachment{}, Resource{Strategy: versioned, StatusStrategy: status}),
		complete(&resourcev1.ResourceClaim{}, Resource{Namespaced: true, StatusStrategy: status}),
		complete(&resourcev1.ResourceSlice{}, Resource{Strategy: spec}),
		complete(&resourcev1.DeviceClass{}, Resource{Strategy: spec}),
		complete(&resourcev1.DeviceTaintRule{}, Resource{Strategy: spec, StatusStrategy: status}),
	}
}
