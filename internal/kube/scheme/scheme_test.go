package scheme

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestAKindNobodyHasRegisteredIsRefused(t *testing.T) {
	for _, body := range []string{
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"Pood"}`,
		`{"metadata":{"name":"a"}}`,
	} {
		obj, _, err := Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
		assert.False(t, err == nil || !runtime.IsNotRegisteredError(err) && !runtime.IsMissingKind(err),
			"%s: got %v, %v, want an error that says the kind is not known", body, obj, err)
	}
}

// TestAnEventIsTheSameInBothGroups checks that an event keeps each field when it is converted to core/v1 and back.
func TestAnEventIsTheSameInBothGroups(t *testing.T) {
	filler := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).Funcs(
		func(v *metav1.TypeMeta, _ randfill.Continue) {},
		func(v *metav1.FieldsV1, _ randfill.Continue) { v.SetRawBytes([]byte("{}")) },
		func(v *metav1.Time, _ randfill.Continue) { *v = metav1.Unix(1_700_000_000, 0) },
		func(v *metav1.MicroTime, _ randfill.Continue) {
			*v = metav1.NewMicroTime(metav1.Unix(1_700_000_000, 0).Time)
		},
	)
	event := &eventsv1.Event{}
	filler.Fill(event)
	stored := require.Value(Stored(event))(t)
	core := stored.(*corev1.Event)
	assert.Equal(t, event.Note, core.Message)
	assert.Equal(t, event.Regarding.Name, core.InvolvedObject.Name)
	assert.Equal(t, event.ReportingController, core.ReportingController)
	assert.Equal(t, event.DeprecatedSource, core.Source)
	back := &eventsv1.Event{}
	require.NoError(t, FromStored(core, back))
	assert.NoDiff(t, event, back)
}
