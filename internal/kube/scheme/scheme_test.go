package scheme

import (
	"bytes"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// served are the kinds the program stores, with something in each that only its own type can hold.
func served() []runtime.Object {
	meta := metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: "7", CreationTimestamp: metav1.Unix(
		1_700_000_000, 0)}
	return []runtime.Object{
		&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{
			{Name: "c", Image: "example.com/c"}}}},
		&corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{PodCIDR: "10.1.0.0/16"}},
		&corev1.ConfigMap{ObjectMeta: meta, BinaryData: map[string][]byte{"bytes": {0, 0xff, 'k', '8', 's'}}},
		&corev1.Namespace{ObjectMeta: meta, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{
			corev1.FinalizerKubernetes}}},
		&corev1.Event{ObjectMeta: meta, Reason: "Scheduled", EventTime: metav1.NewMicroTime(time.Unix(1_700_000_000,
			123_000))},
		&corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{{ObjectMeta: meta},
			{ObjectMeta: meta}}},
	}
}

var mediaTypes = map[string]string{ // and how what is written begins
	runtime.ContentTypeJSON:     `{`,
	runtime.ContentTypeYAML:     "apiVersion: v1",
	runtime.ContentTypeProtobuf: "k8s\x00",
}

func TestWhatIsWrittenIsReadBackWhateverTheForm(t *testing.T) {
	for mediaType, beginning := range mediaTypes {
		info, ok := runtime.SerializerInfoForMediaType(Codecs.SupportedMediaTypes(), mediaType)
		if !ok {
			t.Errorf("%s is not known", mediaType)
			continue
		}
		encoder := Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
		for _, obj := range served() {
			written, err := runtime.Encode(encoder, obj)
			if err != nil {
				t.Errorf("%s: write %T: %v", mediaType, obj, err)
				continue
			}
			assert.True(t, bytes.HasPrefix(written, []byte(beginning)),
				"%s: %T begins with %.20q, want %q", mediaType, obj, written, beginning)
			// The reader is not told the form: it has to recognise it.
			read, kind, err := Codecs.UniversalDeserializer().Decode(written, nil, nil)
			if err != nil {
				t.Errorf("%s: read %T: %v", mediaType, obj, err)
				continue
			}
			if want := kindOf(t, obj); kind.Kind != want || kind.Version != "v1" || kind.Group != "" {
				t.Errorf("%s: %T is read as %v, want v1 %s", mediaType, obj, kind, want)
			}
			read.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
			assert.Equal(t, "", cmp.Diff(obj, read), "%s: %T (-written +read):\n", mediaType, obj)
		}
	}
}

func kindOf(t *testing.T, obj runtime.Object) string {
	t.Helper()
	kinds, unversioned, err := Scheme.ObjectKinds(obj)
	require.True(t, err == nil && !unversioned && len(kinds) == 1,
		"kinds of %T: got %v, unversioned %v, %v", obj, kinds, unversioned, err)
	return kinds[0].Kind
}

func TestAKindNobodyHasRegisteredIsRefused(t *testing.T) {
	for _, body := range []string{
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"Pood"}`,
		`{"metadata":{"name":"a"}}`,
	} {
		obj, _, err := Codecs.UniversalDeserializer().Decode([]byte(body), nil, nil)
		assert.False(t, err == nil || !runtime.IsNotRegisteredError(err) && !runtime.IsMissingKind(err),
			"%s: got %v, %v, want an error that says the kind is not known", body, obj, err)
	}
}

// A list is written item by item, and the bytes must be those that come from writing it as a whole.
func TestAListWrittenItemByItemIsTheSameJSON(t *testing.T) {
	list := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9",
			Continue: "<&>"},
	}
	for _, items := range [][]corev1.Pod{nil, {}, {{}, {ObjectMeta: metav1.ObjectMeta{Name: "\u2028<a>"}}}} {
		list.Items = items
		info, _ := runtime.SerializerInfoForMediaType(Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
		streamed := require.Value(runtime.Encode(info.Serializer, list))(t)
		plain := require.Value(runtime.Encode(plainJSON(t), list))(t)
		assert.Equal(t, "", cmp.Diff(string(plain), string(streamed)), "%d items (-whole +item by item):\n", len(items))
	}
}

// plainJSON writes JSON with the factory's default, which puts a list together in memory.
func plainJSON(t *testing.T) runtime.Encoder {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(Scheme).SupportedMediaTypes(),
		runtime.ContentTypeJSON)
	require.True(t, ok, "JSON is not known")
	return info.Serializer
}

func TestOptionsAreReadFromAQueryAsTheyWereWrittenIntoIt(t *testing.T) {
	initial, seconds := true, int64(300)
	options := metav1.ListOptions{
		LabelSelector: "app in (a,b)", FieldSelector: "spec.nodeName=node-1", Watch: true, AllowWatchBookmarks: true,
		ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		SendInitialEvents: &initial,
		TimeoutSeconds:    &seconds, Limit: 500, Continue: "c",
	}
	query := require.Value(ParameterCodec.EncodeParameters(&options, corev1.SchemeGroupVersion))(t)
	parsed := require.Value(url.ParseQuery(query.Encode()))(t)
	var read metav1.ListOptions
	require.NoError(t, ParameterCodec.DecodeParameters(parsed, corev1.SchemeGroupVersion, &read))
	assert.Equal(t, "", cmp.Diff(options, read), "options (-written +read):\n")
	assert.Equal(t, "true", query.Get("sendInitialEvents"), "sendInitialEvents is written as")
}

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
