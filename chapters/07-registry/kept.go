package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/kube/resources"
)

// keptResources returns the kinds that are kept for other people's programs: nothing here acts on them or knows their
// fields. Their caches begin with the first watch. Those of core/v1 have Go types, because clients send them as
// protobuf. The others are JSON, as custom resources are upstream.
func keptResources() []*Resource {
	var kept []*Resource
	add := func(r Resource, obj, list runtime.Object, status bool) {
		r.OnDemand, r.Strategy = true, resources.KeptStrategy{}
		if r.Columns == nil {
			r.Columns = resources.NameAndAgeColumns
		}
		if status {
			r.StatusStrategy = resources.KeptStatusStrategy{}
		}
		kept = append(kept, complete(r, obj, list))
	}
	add(Resource{Name: "secrets", Namespaced: true, Columns: resources.SecretColumns, Default: resources.DefaultSecret,
		GetAttrs: resources.SecretAttrs, Fields: []string{"metadata.name", "metadata.namespace", "type"}},
		&corev1.Secret{}, &corev1.SecretList{}, false)
	add(Resource{Name: "serviceaccounts", ShortNames: []string{"sa"}, Namespaced: true},
		&corev1.ServiceAccount{}, &corev1.ServiceAccountList{}, false)
	add(Resource{Name: "services", ShortNames: []string{"svc"}, Categories: all, Namespaced: true,
		Columns: resources.ServiceColumns, Prefix: "/registry/services/specs",
		Idle: "nothing here gives a service an address or endpoints"},
		&corev1.Service{}, &corev1.ServiceList{}, true)
	add(Resource{Name: "replicationcontrollers", ShortNames: []string{"rc"}, Categories: all, Namespaced: true,
		Columns: resources.ReplicaColumns, Prefix: "/registry/controllers", Idle: noPods},
		&corev1.ReplicationController{}, &corev1.ReplicationControllerList{}, true)
	add(Resource{Name: "persistentvolumes", ShortNames: []string{"pv"}, Columns: resources.VolumeColumns,
		Idle: noVolumes},
		&corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}, true)
	add(Resource{Name: "persistentvolumeclaims", ShortNames: []string{"pvc"}, Namespaced: true,
		Columns: resources.ClaimColumns, Idle: noVolumes},
		&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}, true)
	for _, row := range keptJSON {
		obj, list := untyped(schema.GroupVersion{Group: row.group, Version: "v1"}, row.kind, row.kind+"List")
		add(row.Resource, obj, list, row.status)
	}
	return kept
}

// Why a write comes to nothing.
const (
	noPods    = "nothing here makes pods of it"
	noVolumes = "nothing here makes or binds volumes"
	noDevices = "nothing here allocates devices"
)

var all = []string{"all"}

// keptJSON are the kept kinds without Go types. With those above they are all that a kube-scheduler lists.
var keptJSON = []struct {
	group, kind string
	status      bool
	Resource
}{
	{"apps", "ReplicaSet", true, Resource{Name: "replicasets", ShortNames: []string{"rs"}, Categories: all,
		Namespaced: true, Columns: resources.ReplicaColumns, Idle: noPods}},
	{"apps", "StatefulSet", true, Resource{Name: "statefulsets", ShortNames: []string{"sts"}, Categories: all,
		Namespaced: true, Columns: resources.ReplicaColumns, Idle: noPods}},
	{"policy", "PodDisruptionBudget", true, Resource{Name: "poddisruptionbudgets", ShortNames: []string{"pdb"},
		Namespaced: true, VersionRequired: true, Columns: resources.BudgetColumns,
		Idle: "evictions here ignore budgets"}},
	{"storage.k8s.io", "StorageClass", false, Resource{Name: "storageclasses", ShortNames: []string{"sc"},
		Columns: resources.ClassColumns}},
	{"storage.k8s.io", "CSINode", false, Resource{Name: "csinodes", VersionRequired: true}},
	{"storage.k8s.io", "CSIDriver", false, Resource{Name: "csidrivers", VersionRequired: true}},
	{"storage.k8s.io", "CSIStorageCapacity", false, Resource{Name: "csistoragecapacities", Namespaced: true,
		VersionRequired: true}},
	{"storage.k8s.io", "VolumeAttachment", true, Resource{Name: "volumeattachments", VersionRequired: true,
		Columns: resources.AttachmentColumns, Idle: noVolumes}},
	{"resource.k8s.io", "ResourceClaim", true, Resource{Name: "resourceclaims", Namespaced: true, Idle: noDevices}},
	{"resource.k8s.io", "ResourceSlice", false, Resource{Name: "resourceslices"}},
	{"resource.k8s.io", "DeviceClass", false, Resource{Name: "deviceclasses"}},
	{"resource.k8s.io", "DeviceTaintRule", true, Resource{Name: "devicetaintrules", Idle: noDevices}},
}
