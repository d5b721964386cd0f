package registry

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/kube/resources"
)

// keptResources returns the kinds that are kept for other people's programs: nothing here acts on
// them. They are all that a kube-scheduler lists.
func keptResources() []*Resource {
	var kept []*Resource
	add := func(r Resource, obj, list runtime.Object, status bool) {
		if r.Strategy == nil {
			r.Strategy = resources.KeptStrategy{}
		}
		if r.Columns == nil {
			r.Columns = resources.NameAndAgeColumns
		}
		if status {
			r.StatusStrategy = resources.KeptStatusStrategy{}
		}
		kept = append(kept, complete(r, obj, list))
	}
	add(Resource{Name: "secrets", Namespaced: true, Columns: resources.SecretColumns,
		Strategy: resources.SecretStrategy{}, Default: resources.DefaultSecret, GetAttrs: resources.SecretAttrs,
		Fields: []string{"metadata.name", "metadata.namespace", "type"}},
		&corev1.Secret{}, &corev1.SecretList{}, false)
	add(Resource{Name: "serviceaccounts", ShortNames: []string{"sa"}, Namespaced: true},
		&corev1.ServiceAccount{}, &corev1.ServiceAccountList{}, false)
	add(Resource{Name: "services", ShortNames: []string{"svc"}, Categories: all, Namespaced: true,
		Columns: resources.ServiceColumns, Prefix: "/registry/services/specs", Default: resources.DefaultService,
		CreateOnUpdate: true},
		&corev1.Service{}, &corev1.ServiceList{}, true)
	add(Resource{Name: "replicationcontrollers", ShortNames: []string{"rc"}, Categories: all, Namespaced: true,
		Columns: resources.ReplicaColumns, Prefix: "/registry/controllers", Strategy: resources.SpecStrategy{},
		Default: resources.DefaultReplicationController},
		&corev1.ReplicationController{}, &corev1.ReplicationControllerList{}, true)
	add(Resource{Name: "persistentvolumes", ShortNames: []string{"pv"}, Columns: resources.VolumeColumns,
		Strategy: resources.VolumeStrategy{}, Default: resources.DefaultVolume},
		&corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}, true)
	add(Resource{Name: "persistentvolumeclaims", ShortNames: []string{"pvc"}, Namespaced: true,
		Columns: resources.ClaimColumns, Strategy: resources.VolumeStrategy{}, Default: resources.DefaultClaim},
		&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}, true)
	workload := func(name, short string, columns []resources.Column) Resource {
		return Resource{Name: name, ShortNames: []string{short}, Categories: all, Namespaced: true, Columns: columns,
			Strategy: resources.WorkloadStrategy{}, Default: resources.DefaultWorkload}
	}
	add(workload("deployments", "deploy", resources.DeploymentColumns),
		&appsv1.Deployment{}, &appsv1.DeploymentList{}, true)
	add(workload("replicasets", "rs", resources.ReplicaColumns), &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{}, true)
	add(workload("statefulsets", "sts", resources.StatefulSetColumns),
		&appsv1.StatefulSet{}, &appsv1.StatefulSetList{}, true)
	add(Resource{Name: "poddisruptionbudgets", ShortNames: []string{"pdb"}, Namespaced: true, VersionRequired: true,
		Columns: resources.BudgetColumns, Strategy: resources.SpecStrategy{}},
		&policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{}, true)
	add(Resource{Name: "storageclasses", ShortNames: []string{"sc"}, Columns: resources.ClassColumns,
		Default: resources.DefaultStorageClass}, &storagev1.StorageClass{}, &storagev1.StorageClassList{}, false)
	add(Resource{Name: "csinodes", VersionRequired: true, Columns: resources.CSINodeColumns},
		&storagev1.CSINode{}, &storagev1.CSINodeList{}, false)
	add(Resource{Name: "csidrivers", VersionRequired: true, Columns: resources.CSIDriverColumns},
		&storagev1.CSIDriver{}, &storagev1.CSIDriverList{}, false)
	add(Resource{Name: "csistoragecapacities", Namespaced: true, VersionRequired: true,
		Columns: resources.CapacityColumns},
		&storagev1.CSIStorageCapacity{}, &storagev1.CSIStorageCapacityList{}, false)
	add(Resource{Name: "volumeattachments", VersionRequired: true, Columns: resources.AttachmentColumns}, &storagev1.VolumeAttachment{}, &storagev1.VolumeAttachmentList{}, true)
	add(Resource{Name: "resourceclaims", Namespaced: true, Columns: resources.DeviceClaimColumns},
		&resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimList{}, true)
	add(Resource{Name: "resourceslices", Columns: resources.SliceColumns, Strategy: resources.SpecStrategy{}},
		&resourcev1.ResourceSlice{}, &resourcev1.ResourceSliceList{}, false)
	add(Resource{Name: "deviceclasses", Strategy: resources.SpecStrategy{}},
		&resourcev1.DeviceClass{}, &resourcev1.DeviceClassList{}, false)
	add(Resource{Name: "devicetaintrules", Columns: resources.TaintRuleColumns, Strategy: resources.SpecStrategy{}}, &resourcev1.DeviceTaintRule{}, &resourcev1.DeviceTaintRuleList{}, true)
	return kept
}

var all = []string{"all"}
