package scheme

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// Whatever a client says of an event in either group is there in the other, under its name there.
func TestAnEventIsTheSameInBothGroups(t *testing.T) {
	filler := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).Funcs(
		func(v *metav1.TypeMeta, _ randfill.Continue) {},
		func(v *metav1.FieldsV1, _ randfill.Continue) { v.Raw = []byte("{}") },
		func(v *metav1.Time, _ randfill.Continue) { *v = metav1.Unix(1_700_000_000, 0) },
		func(v *metav1.MicroTime, _ randfill.Continue) {
			*v = metav1.NewMicroTime(metav1.Unix(1_700_000_000, 0).Time)
		},
	)
	event := &eventsv1.Event{}
	filler.Fill(event)
	stored, err := Stored(event)
	require.NoError(t, err)
	core := stored.(*corev1.Event)
	assert.Equal(t, core.Message, event.Note)
	assert.Equal(t, core.InvolvedObject.Name, event.Regarding.Name)
	assert.Equal(t, core.ReportingController, event.ReportingController)
	assert.Equal(t, core.Source, event.DeprecatedSource)
	back := &eventsv1.Event{}
	require.NoError(t, FromStored(core, back))
	assert.NoDiff(t, back, event)
}
