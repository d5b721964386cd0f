package registry

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/kube/resources"
	"listwatch/internal/kube/scheme"
)

// Resources returns every resource of the program: first those that something here acts on.
func Resources() []*Resource {
	own := []*Resource{ConfigMaps(), Events(), EventsV1(), Leases(), Namespaces(), Nodes(), Pods()}
	return append(own, others()...)
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
	r.Prefix = cmp.Or(r.Prefix, "/registry/"+r.Name)
	r.NewFunc, r.NewListFunc = obj.DeepCopyObject, list.DeepCopyObject
	if r.GetAttrs == nil {
		r.GetAttrs, r.Fields = storage.DefaultNamespaceScopedAttr, defaultFields
	}
	if r.Strategy == nil {
		r.Strategy = resources.KeptStrategy{}
	}
	if r.Columns == nil {
		r.Columns = resources.NameAndAgeColumns
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
		Columns:        resources.LeaseColumns,
		Strategy:       resources.LeaseStrategy{},
		CreateOnUpdate: true,
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

var all = []string{"all"}

// workload describes a kind of apps/v1.
func workload(name, short string, columns []resources.Column) Resource {
	return Resource{Name: name, ShortNames: []string{short}, Categories: all, Namespaced: true,
		Columns: columns, Strategy: resources.WorkloadStrategy{},
		StatusStrategy: resources.KeptStatusStrategy{}, Default: resources.DefaultWorkload}
}

// others describes the kinds that nothing here acts on: programs of others do. They are all that
// a kube-scheduler lists.
func others() []*Resource {
	status := resources.KeptStatusStrategy{}
	return []*Resource{
		complete(Resource{Name: "secrets", Namespaced: true, Columns: resources.SecretColumns,
			Strategy: resources.SecretStrategy{}, Default: resources.DefaultSecret,
			GetAttrs: resources.SecretAttrs,
			Fields:   []string{"metadata.name", "metadata.namespace", "type"}},
			&corev1.Secret{}, &corev1.SecretList{}),
		complete(Resource{Name: "serviceaccounts", ShortNames: []string{"sa"}, Namespaced: true},
			&corev1.ServiceAccount{}, &corev1.ServiceAccountList{}),
		complete(Resource{Name: "services", ShortNames: []string{"svc"}, Categories: all,
			Namespaced: true, Columns: resources.ServiceColumns,
			Prefix: "/registry/services/specs", Default: resources.DefaultService,
			CreateOnUpdate: true, StatusStrategy: status},
			&corev1.Service{}, &corev1.ServiceList{}),
		complete(Resource{Name: "replicationcontrollers", ShortNames: []string{"rc"},
			Categories: all, Namespaced: true, Columns: resources.ReplicaColumns,
			Prefix: "/registry/controllers", Strategy: resources.SpecStrategy{},
			Default: resources.DefaultReplicationController, StatusStrategy: status},
			&corev1.ReplicationController{}, &corev1.ReplicationControllerList{}),
		complete(Resource{Name: "persistentvolumes", ShortNames: []string{"pv"},
			Columns: resources.VolumeColumns, Strategy: resources.VolumeStrategy{},
			Default: resources.DefaultVolume, StatusStrategy: status},
			&corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}),
		complete(Resource{Name: "persistentvolumeclaims", ShortNames: []string{"pvc"},
			Namespaced: true, Columns: resources.ClaimColumns,
			Strategy: resources.VolumeStrategy{}, Default: resources.DefaultClaim,
			StatusStrategy: status},
			&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}),
		complete(workload("deployments", "deploy", resources.DeploymentColumns),
			&appsv1.Deployment{}, &appsv1.DeploymentList{}),
		complete(workload("replicasets", "rs", resources.ReplicaColumns),
			&appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{}),
		complete(workload("statefulsets", "sts", resources.StatefulSetColumns),
			&appsv1.StatefulSet{}, &appsv1.StatefulSetList{}),
		complete(Resource{Name: "poddisruptionbudgets", ShortNames: []string{"pdb"},
			Namespaced: true, Columns: resources.BudgetColumns,
			Strategy: resources.BudgetStrategy{}, StatusStrategy: status},
			&policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{}),
		complete(Resource{Name: "storageclasses", ShortNames: []string{"sc"},
			Columns: resources.ClassColumns, Default: resources.DefaultStorageClass},
			&storagev1.StorageClass{}, &storagev1.StorageClassList{}),
		complete(Resource{Name: "csinodes", Columns: resources.CSINodeColumns,
			Strategy: resources.VersionedStrategy{}},
			&storagev1.CSINode{}, &storagev1.CSINodeList{}),
		complete(Resource{Name: "csidrivers", Columns: resources.CSIDriverColumns,
			Strategy: resources.VersionedStrategy{}},
			&storagev1.CSIDriver{}, &storagev1.CSIDriverList{}),
		complete(Resource{Name: "csistoragecapacities", Namespaced: true,
			Columns: resources.CapacityColumns, Strategy: resources.VersionedStrategy{}},
			&storagev1.CSIStorageCapacity{}, &storagev1.CSIStorageCapacityList{}),
		complete(Resource{Name: "volumeattachments", Columns: resources.AttachmentColumns,
			Strategy: resources.VersionedStrategy{}, StatusStrategy: status},
			&storagev1.VolumeAttachment{}, &storagev1.VolumeAttachmentList{}),
		complete(Resource{Name: "resourceclaims", Namespaced: true,
			Columns: resources.DeviceClaimColumns, StatusStrategy: status},
			&resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimList{}),
		complete(Resource{Name: "resourceslices", Columns: resources.SliceColumns,
			Strategy: resources.SpecStrategy{}},
			&resourcev1.ResourceSlice{}, &resourcev1.ResourceSliceList{}),
		complete(Resource{Name: "deviceclasses", Strategy: resources.SpecStrategy{}},
			&resourcev1.DeviceClass{}, &resourcev1.DeviceClassList{}),
		complete(Resource{Name: "devicetaintrules", Columns: resources.TaintRuleColumns,
			Strategy: resources.SpecStrategy{}, StatusStrategy: status},
			&resourcev1.DeviceTaintRule{}, &resourcev1.DeviceTaintRuleList{}),
	}
}
