package resources

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VolumeStrategy is for volumes and claims of them, which wait for a controller that binds one to the other.
type VolumeStrategy struct{ KeptStrategy }

// PrepareForCreate begins the wait.
func (s VolumeStrategy) PrepareForCreate(obj runtime.Object) {
	s.KeptStrategy.PrepareForCreate(obj)
	switch obj := obj.(type) {
	case *corev1.PersistentVolume:
		obj.Status.Phase = corev1.VolumePending
	case *corev1.PersistentVolumeClaim:
		obj.Status.Phase = corev1.ClaimPending
	}
}

// DefaultVolume fills in what the client left out of a volume.
func DefaultVolume(obj runtime.Object) {
	spec := &obj.(*corev1.PersistentVolume).Spec
	setDefault(&spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	setDefault(&spec.VolumeMode, new(corev1.PersistentVolumeFilesystem))
}

// DefaultClaim fills in what the client left out of a claim.
func DefaultClaim(obj runtime.Object) {
	setDefault(&obj.(*corev1.PersistentVolumeClaim).Spec.VolumeMode, new(corev1.PersistentVolumeFilesystem))
}

// DefaultStorageClass fills in what the client left out of a class.
func DefaultStorageClass(obj runtime.Object) {
	class := obj.(*storagev1.StorageClass)
	setDefault(&class.ReclaimPolicy, new(corev1.PersistentVolumeReclaimDelete))
	setDefault(&class.VolumeBindingMode, new(storagev1.VolumeBindingImmediate))
}
