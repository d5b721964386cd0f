package resources

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"listwatch/internal/kube/scheme"
)

// ServiceStrategy is for services, which the server only stores.
type ServiceStrategy struct{ KeptStrategy }

// AllowCreateOnUpdate lets a PUT create a service.
func (ServiceStrategy) AllowCreateOnUpdate() bool { return true }

// Default sets missing fields of the service and its ports.
//
// Differs: services get no addresses.
func (ServiceStrategy) Default(obj runtime.Object) {
	spec := &obj.(*corev1.Service).Spec
	setDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	setDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		port := &spec.Ports[i]
		setDefault(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		setDefault(&spec.InternalTrafficPolicy, new(corev1.ServiceInternalTrafficPolicyCluster))
	}
}

// ReplicationControllerStrategy is for replication controllers, the older form of replica sets.
type ReplicationControllerStrategy struct{ SpecStrategy }

// Default sets missing fields; a missing selector and missing labels become the template's labels.
func (ReplicationControllerStrategy) Default(obj runtime.Object) {
	controller := obj.(*corev1.ReplicationController)
	setDefault(&controller.Spec.Replicas, new(int32(1)))
	template := controller.Spec.Template
	if template == nil {
		return
	}
	defaultPodSpec(&template.Spec)
	if len(controller.Spec.Selector) == 0 {
		controller.Spec.Selector = maps.Clone(template.Labels)
	}
	if len(controller.Labels) == 0 {
		controller.Labels = maps.Clone(template.Labels)
	}
}

// VolumeStrategy is for persistent volumes and their claims, which the server only stores.
type VolumeStrategy struct{ KeptStrategy }

// Default sets a missing volume mode and, for a volume, a missing reclaim policy.
func (VolumeStrategy) Default(obj runtime.Object) {
	switch obj := obj.(type) {
	case *corev1.PersistentVolume:
		setDefault(&obj.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		setDefault(&obj.Spec.VolumeMode, new(corev1.PersistentVolumeFilesystem))
	case *corev1.PersistentVolumeClaim:
		setDefault(&obj.Spec.VolumeMode, new(corev1.PersistentVolumeFilesystem))
	}
}

// PrepareForCreate resets the status to the phase Pending, which a controller changes later.
func (s VolumeStrategy) PrepareForCreate(obj runtime.Object) {
	s.KeptStrategy.PrepareForCreate(obj)
	switch obj := obj.(type) {
	case *corev1.PersistentVolume:
		obj.Status.Phase = corev1.VolumePending
	case *corev1.PersistentVolumeClaim:
		obj.Status.Phase = corev1.ClaimPending
	}
}

// StorageClassStrategy is for storage classes, which the server only stores.
type StorageClassStrategy struct{ KeptStrategy }

// Default sets a missing reclaim policy and a missing binding mode.
func (StorageClassStrategy) Default(obj runtime.Object) {
	class := obj.(*storagev1.StorageClass)
	setDefault(&class.ReclaimPolicy, new(corev1.PersistentVolumeReclaimDelete))
	setDefault(&class.VolumeBindingMode, new(storagev1.VolumeBindingImmediate))
}

// LeaseStrategy is for leases. A PUT may create a lease; an update must have a resource version.
//
// Differs: there is no coordinated leader election, so a strategy and a preferred holder have no effect.
type LeaseStrategy struct{ freely }

// AllowCreateOnUpdate lets a PUT create a lease.
func (LeaseStrategy) AllowCreateOnUpdate() bool { return true }

// AllowUnconditionalUpdate returns false: an update must have a resource version.
func (LeaseStrategy) AllowUnconditionalUpdate() bool { return false }

// Validate checks the duration and the number of transitions.
func (LeaseStrategy) Validate(obj runtime.Object) field.ErrorList {
	spec, path := &obj.(*coordinationv1.Lease).Spec, field.NewPath("spec")
	return append(
		atLeast(1, spec.LeaseDurationSeconds, "must be greater than 0", path.Child("leaseDurationSeconds")),
		atLeast(0, spec.LeaseTransitions, notNegative, path.Child("leaseTransitions"))...)
}

// ValidateUpdate checks the same as Validate.
func (s LeaseStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList { return s.Validate(obj) }

// coreEvent returns an event of either group in its stored form, core/v1.
func coreEvent(obj runtime.Object) (*corev1.Event, error) {
	stored, err := scheme.Stored(obj)
	event, ok := stored.(*corev1.Event)
	if err == nil && !ok {
		err = fmt.Errorf("not an event: %T", obj)
	}
	return event, err
}

// EventAttrs returns the labels and selectable fields of an event of either group, by the fields' names in both groups.
// It returns an error for any other object.
func EventAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	event, err := coreEvent(obj)
	if err != nil {
		return nil, nil, err
	}
	about := map[string]string{
		"kind": event.InvolvedObject.Kind, "namespace": event.InvolvedObject.Namespace,
		"name": event.InvolvedObject.Name, "uid": string(event.InvolvedObject.UID),
		"apiVersion": event.InvolvedObject.APIVersion, "resourceVersion": event.InvolvedObject.ResourceVersion,
		"fieldPath": event.InvolvedObject.FieldPath,
	}
	attrs := fields.Set{
		"metadata.name": event.Name, "metadata.namespace": event.Namespace, "reason": event.Reason, "type": event.Type,
		"reportingComponent": event.ReportingController, "reportingController": event.ReportingController,
		"source": cmp.Or(event.Source.Component, event.ReportingController),
	}
	for name, value := range about {
		attrs["involvedObject."+name], attrs["regarding."+name] = value, value
	}
	return event.Labels, attrs, nil
}

// EventFields are the names of events' selectable fields in core/v1, in any order.
var EventFields = eventFields("regarding.", "reportingController")

// EventV1Fields are the names of events' selectable fields in events.k8s.io/v1, in any order.
var EventV1Fields = eventFields("involvedObject.", "reportingComponent", "source")

// eventFields returns the names of an event's selectable fields that are not in others and do not begin with prefix.
func eventFields(prefix string, others ...string) (names []string) {
	_, all, _ := EventAttrs(&corev1.Event{}) // the error is only for other types
	for name := range all.(fields.Set) {
		if !strings.HasPrefix(name, prefix) && !slices.Contains(others, name) {
			names = append(names, name)
		}
	}
	return names
}

// EventStrategy is for events of core/v1 and of events.k8s.io/v1.
type EventStrategy struct{ freely }

// AllowCreateOnUpdate returns true, so that a reporter may count an event again without checking that it still exists.
func (EventStrategy) AllowCreateOnUpdate() bool { return true }

// Validate requires that the event is in the namespace of its involved object, or in default if the object has none.
func (EventStrategy) Validate(obj runtime.Object) field.ErrorList {
	event, err := coreEvent(obj)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(""), "", err.Error())}
	}
	if event.Namespace != cmp.Or(event.InvolvedObject.Namespace, metav1.NamespaceDefault) {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"),
			event.InvolvedObject.Namespace, "does not match event.namespace")}
	}
	return nil
}

// ValidateUpdate checks the same as Validate.
func (s EventStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList { return s.Validate(obj) }

// maxDataSize is the maximum number of bytes of data in a config map or secret. Etcd refuses requests over 1.5 MiB.
const maxDataSize = 1 << 20

// ConfigMapStrategy is for config maps, which may be immutable.
type ConfigMapStrategy struct{ freely }

// Validate checks the size, and the keys, which data and binaryData must not share.
func (ConfigMapStrategy) Validate(obj runtime.Object) field.ErrorList {
	configMap := obj.(*corev1.ConfigMap)
	problems, size := checkData(configMap.Data, "data")
	binary, more := checkData(configMap.BinaryData, "binaryData")
	problems = append(problems, binary...)
	for key := range configMap.Data {
		if _, both := configMap.BinaryData[key]; both {
			path := field.NewPath("data").Key(key)
			problems = append(problems, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
	}
	if size+more > maxDataSize {
		problems = append(problems, field.TooLong(field.NewPath(""), "", maxDataSize))
	}
	return problems
}

// checkData checks the keys of data, and returns the size of its values.
func checkData[V ~string | ~[]byte](data map[string]V, name string) (problems field.ErrorList, size int) {
	for key, value := range data {
		problems = append(problems, check(key, validation.IsConfigMapKey, field.NewPath(name).Key(key))...)
		size += len(value)
	}
	return problems, size
}

// ValidateUpdate also refuses, for an immutable config map, a change of the data or of the field immutable.
func (s ConfigMapStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	configMap, before := obj.(*corev1.ConfigMap), old.(*corev1.ConfigMap)
	problems := s.Validate(obj)
	if !ptr.Deref(before.Immutable, false) {
		return problems
	}
	return slices.Concat(problems,
		kept("immutable", ptr.Deref(configMap.Immutable, false)),
		kept("data", equality.Semantic.DeepEqual(configMap.Data, before.Data)),
		kept("binaryData", equality.Semantic.DeepEqual(configMap.BinaryData, before.BinaryData)))
}

// kept returns a problem unless a field of an immutable object is the same as before.
func kept(name string, same bool) field.ErrorList {
	if same {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set")}
}

// SecretAttrs returns a secret's labels and selectable fields.
var SecretAttrs = attrs(func(secret *corev1.Secret) fields.Fields {
	return fields.Set{"metadata.name": secret.Name, "metadata.namespace": secret.Namespace, "type": string(secret.Type)}
})

// SecretStrategy is for secrets, which may be immutable.
//
// Differs: upstream also checks that a secret has the data that its type requires.
type SecretStrategy struct{ freely }

// Default turns StringData into Data, and sets a missing type to Opaque.
func (SecretStrategy) Default(obj runtime.Object) {
	secret := obj.(*corev1.Secret)
	secret.Type = cmp.Or(secret.Type, corev1.SecretTypeOpaque)
	for key, text := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(text)
	}
	secret.StringData = nil
}

// Validate checks the keys and the size of the data.
func (SecretStrategy) Validate(obj runtime.Object) field.ErrorList {
	problems, size := checkData(obj.(*corev1.Secret).Data, "data")
	if size > maxDataSize {
		problems = append(problems, field.TooLong(field.NewPath("data"), "", maxDataSize))
	}
	return problems
}

// ValidateUpdate also refuses a change of the type and, for an immutable secret, of the data or the field immutable.
func (s SecretStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	secret, before := obj.(*corev1.Secret), old.(*corev1.Secret)
	problems := s.Validate(obj)
	if secret.Type != before.Type {
		problems = append(problems, field.Invalid(field.NewPath("type"), secret.Type, "field is immutable"))
	}
	if ptr.Deref(before.Immutable, false) {
		problems = append(problems, kept("immutable", ptr.Deref(secret.Immutable, false))...)
		problems = append(problems, kept("data", equality.Semantic.DeepEqual(secret.Data, before.Data))...)
	}
	return problems
}
