package resources

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VolumeStrategy is for volumes and their claims.
type VolumeStrategy struct{ KeptStrategy }

// Default fills in what the client left out.
func (VolumeStrategy) Default(obj runtime.Object) {
	switch obj := obj.(type) {
	case *corev1.PersistentVolume:
		setDefault(&obj.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		setDefault(&obj.Spec.VolumeMode, new(corev1.PersistentVolumeFilesystem))
	case *corev1.PersistentVolumeClaim:
		setDefault(&obj.Spec.VolumeMode, new(corev1.PersistentVolumeFilesystem))
	}
}

// PrepareForCreate sets the phase Pending, in which volume and claim wait for a controller to bind them.
func (s VolumeStrategy) PrepareForCreate(obj runtime.Object) {
	s.KeptStrategy.PrepareForCreate(obj)
	switch obj := obj.(type) {
	case *corev1.PersistentVolume:
		obj.Status.Phase = corev1.VolumePending
	case *corev1.PersistentVolumeClaim:
		obj.Status.Phase = corev1.ClaimPending
	}
}

// StorageClassStrategy is for storage classes.
type StorageClassStrategy struct{ KeptStrategy }

// Default fills in what the client left out.
func (StorageClassStrategy) Default(obj runtime.Object) {
	class := obj.(*storagev1.StorageClass)
	setDefault(&class.ReclaimPolicy, new(corev1.PersistentVolumeReclaimDelete))
	setDefault(&class.VolumeBindingMode, new(storagev1.VolumeBindingImmediate))
}
