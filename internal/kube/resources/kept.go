package resources

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// KeptStrategy is for kinds that are kept and not interpreted. Users write the spec, controllers the status, and a
// change of the spec is a new generation.
//
// Differs: upstream fills in defaults, and checks every field; an object that we keep as JSON must name its kind in the
// body, which upstream takes from the URL.
type KeptStrategy struct{ freely }

// PrepareForCreate takes the status away.
func (KeptStrategy) PrepareForCreate(obj runtime.Object) {
	setPart(obj, nil, "Status")
	if part(obj, "Spec") != nil {
		obj.(metav1.Object).SetGeneration(1)
	}
}

// PrepareForUpdate keeps the status.
func (KeptStrategy) PrepareForUpdate(obj, old runtime.Object) {
	setPart(obj, old, "Status")
	if !equality.Semantic.DeepEqual(part(obj, "Spec"), part(old, "Spec")) {
		accessor := obj.(metav1.Object)
		accessor.SetGeneration(accessor.GetGeneration() + 1)
	}
}

// SecretAttrs returns what selectors see of a secret.
func SecretAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return nil, nil, fmt.Errorf("not a secret: %T", obj)
	}
	return secret.Labels, fields.Set{"metadata.name": secret.Name, "metadata.namespace": secret.Namespace,
		"type": string(secret.Type)}, nil
}

// DefaultSecret makes data of what is given as text, and names the type of a secret that is of none.
func DefaultSecret(obj runtime.Object) {
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

// KeptStatusStrategy is for the status of such kinds, and of nodes.
type KeptStatusStrategy struct{ KeptStrategy }

// PrepareForUpdate keeps the spec.
func (KeptStatusStrategy) PrepareForUpdate(obj, old runtime.Object) { setPart(obj, old, "Spec") }

// part returns a field of an object, by its name in Go; nil if it has none.
func part(obj runtime.Object, name string) any {
	if kept, ok := obj.(*unstructured.Unstructured); ok {
		return kept.Object[strings.ToLower(name)]
	}
	value := reflect.ValueOf(obj).Elem().FieldByName(name)
	if !value.IsValid() {
		return nil
	}
	return value.Interface()
}

// setPart sets a field of an object, if its kind has it, to that of another; nil: to nothing.
func setPart(obj, from runtime.Object, name string) {
	if from == nil {
		from = reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	}
	value := part(from.DeepCopyObject(), name)
	kept, ok := obj.(*unstructured.Unstructured)
	switch {
	case !ok && value != nil:
		reflect.ValueOf(obj).Elem().FieldByName(name).Set(reflect.ValueOf(value))
	case ok && value != nil:
		kept.Object[strings.ToLower(name)] = value
	case ok:
		delete(kept.Object, strings.ToLower(name))
	}
}

// The columns of kept kinds, beside name and age.
var (
	SecretColumns = NameAndAge(Column{"Type", "What the secret is for.", false, show("type", "Opaque")},
		Column{"Data", "Number of entries.", false, count("data")})
	ServiceColumns = NameAndAge(Column{"Type", "How the service is reached.", false, show("spec.type", "ClusterIP")},
		Column{"Cluster-IP", "Address inside the cluster.", false, show("spec.clusterIP", "<none>")},
		Column{"Ports", "Number of ports.", false, count("spec.ports")})
	VolumeColumns = NameAndAge(Column{"Capacity", "Size.", false, show("spec.capacity.storage", "")},
		Column{"Status", "Whether it is bound.", false, show("status.phase", "")},
		Column{"StorageClass", "Class it belongs to.", false, show("spec.storageClassName", "")})
	ClaimColumns = NameAndAge(Column{"Status", "Whether it is bound.", false, show("status.phase", "")},
		Column{"Volume", "Volume it is bound to.", false, show("spec.volumeName", "")},
		Column{"StorageClass", "Class it asks for.", false, show("spec.storageClassName", "<unset>")})
	ReplicaColumns = NameAndAge(Column{"Desired", "How many pods are wanted.", false, show("spec.replicas", int64(1))},
		Column{"Current", "How many pods there are.", false, show("status.replicas", int64(0))},
		Column{"Ready", "How many of them are ready.", false, show("status.readyReplicas", int64(0))})
	BudgetColumns = NameAndAge(
		Column{"Min Available", "How many pods must stay.", false, show("spec.minAvailable", "N/A")},
		Column{"Max Unavailable", "How many pods may be away.", false, show("spec.maxUnavailable", "N/A")})
	ClassColumns = NameAndAge(Column{"Provisioner", "What makes its volumes.", false, show("provisioner", "")})
	// AttachmentColumns are those of volumeattachments.
	AttachmentColumns = NameAndAge(Column{"Attacher", "What attaches the volume.", false, show("spec.attacher", "")},
		Column{"Node", "Node it is attached to.", false, show("spec.nodeName", "")},
		Column{"Attached", "Whether it is attached.", false, show("status.attached", false)})
	// NameAndAgeColumns are those of a kind that has no others.
	NameAndAgeColumns = NameAndAge()
)
