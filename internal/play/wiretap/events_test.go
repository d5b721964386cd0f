package wiretap

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
)

const mediaProtobuf = "application/vnd.kubernetes.protobuf;stream=watch"

func pod(rv string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: rv, Annotations: annotations},
	}
}

func gone() *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410, Message: "too old"}
}

var told = []struct {
	kind   string
	object runtime.Object
	want   Event
}{
	{"ADDED", pod("5", nil), Event{Type: "ADDED", Key: "default/a", RV: "5"}},
	{"BOOKMARK", pod("7", map[string]string{metav1.InitialEventsAnnotationKey: "true"}), Event{Type: "BOOKMARK",
		Key: "default/a", RV: "7", InitialEnd: true}},
	{"MODIFIED", pod("8", map[string]string{"long": strings.Repeat("x", 5000)}), Event{Type: "MODIFIED",
		Key: "default/a", RV: "8"}},
	{"ADDED", pod("9", map[string]string{"long": strings.Repeat("x", MaxEvent)}), Event{}},
	{"ERROR", gone(), Event{Type: "ERROR", Code: 410}},
}

// bodies are the same watch in both encodings.
func bodies(t *testing.T) map[string][]byte {
	t.Helper()
	written := map[string][]byte{}
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	for _, each := range told {
		object, err := json.Marshal(each.object)
		require.NoError(t, err)
		line, err := json.Marshal(metav1.WatchEvent{Type: each.kind, Object: runtime.RawExtension{Raw: object}})
		require.NoError(t, err)
		written["application/json"] = append(written["application/json"], append(line, '\n')...)
		var raw bytes.Buffer
		require.NoError(t, codec.Encode(each.object, &raw))
		frame, err := (&metav1.WatchEvent{Type: each.kind, Object: runtime.RawExtension{Raw: raw.Bytes()}}).Marshal()
		require.NoError(t, err)
		written[mediaProtobuf] = append(binary.BigEndian.AppendUint32(written[mediaProtobuf], uint32(len(frame))),
			frame...)
	}
	return written
}

func TestEventsAreReadHoweverTheyAreCut(t *testing.T) {
	for media, body := range bodies(t) {
		for _, size := range []int{1, 7, 4096, len(body)} {
			reader := NewEvents(media)
			var got []Event
			for piece := range slices.Chunk(body, size) {
				got = append(got, reader.Read(piece)...)
			}
			require.Equal(t, len(got), len(told), "%s in pieces of %d: got %d events", media, size, len(got))
			total := 0
			for i := range got {
				total += got[i].Size
				got[i].Size = 0
				if got[i] != told[i].want {
					t.Errorf("%s in pieces of %d: got %+v, want %+v", media, size, got[i], told[i].want)
				}
			}
			if total != len(body) || cap(reader.frame) > 2*MaxEvent {
				t.Errorf("%s: the sizes add up to %d of %d; %d bytes are kept", media, total, len(body),
					cap(reader.frame))
			}
		}
	}
}

// TestAnEventKeepsLittleOfAFrame reads frames of texts that no server of good will sends.
func TestAnEventKeepsLittleOfAFrame(t *testing.T) {
	long := strings.Repeat("x", MaxEvent/5)
	frame := fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":%q,"namespace":%q,"resourceVersion":%q}}}`+"\n",
		long, long, long, long)
	var kept []Event
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	reader := NewEvents("")
	for range 200 {
		kept = append(kept, reader.Read([]byte(frame))...)
	}
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	for _, each := range kept {
		require.True(t, len(each.Type) == maxType && len(each.RV) == maxVersion && len(each.Key) == maxKey,
			"got %d, %d and %d bytes", len(each.Type), len(each.RV), len(each.Key))
	}
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	assert.True(t, grown <= 1<<20 && len(kept) == 200, "%d events keep %d bytes", len(kept), grown)
	goruntime.KeepAlive(kept)
}

func TestAnObjectWithACodeOfItsOwnIsRead(t *testing.T) {
	got := NewEvents("application/json").
		Read([]byte(`{"type":"ADDED","object":{"code":"x","metadata":{"name":"a","resourceVersion":"5"}}}` + "\n"))
	assert.True(t, len(got) == 1 && got[0].Key == "a" && got[0].RV == "5", "got %+v", got)
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("{\"type\":\"ADDED\",\"object\":{}}\n"), true)
	f.Add([]byte("\x00\x00\x00\x04\x0a\x02ab\x00\x00\x00\x00"), false)
	f.Fuzz(func(t *testing.T, body []byte, isJSON bool) {
		media := mediaProtobuf
		if isJSON {
			media = "application/json"
		}
		whole, cut := NewEvents(media).Read(body), []Event(nil)
		reader := NewEvents(media)
		for i := range body {
			cut = append(cut, reader.Read(body[i:i+1])...)
		}
		assert.EqualSlices(t, whole, cut, "at once %+v, byte by byte %+v", whole, cut)
		ReadHead(body, media, "", true)
		ReadHead(body, media, "", false)
	})
}

func TestAListAndAnObjectSayTheirVersion(t *testing.T) {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{
		ResourceVersion: "77", Continue: "abc"}}
	for range 100 {
		list.Items = append(list.Items, *pod("5", map[string]string{"long": strings.Repeat("x", 100)}))
	}
	written, err := json.Marshal(list)
	require.NoError(t, err)
	var raw, packed bytes.Buffer
	require.NoError(t, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &raw))
	zip := gzip.NewWriter(&packed)
	zip.Write(written)
	zip.Close()
	want := Head{RV: "77", Continue: true}
	for name, got := range map[string]Head{
		"json":     ReadHead(written[:HeadSize], "application/json", "", true),
		"protobuf": ReadHead(raw.Bytes()[:HeadSize], "application/vnd.kubernetes.protobuf", "", true),
		"gzip":     ReadHead(packed.Bytes()[:packed.Len()/2], "application/json", "gzip", true),
	} {
		assert.Equal(t, got, want, name)
	}
	object := `{"kind":"Pod","metadata":{"managedFields":[{"manager":"x"}],"name":"a","resourceVersion":"5","uid":"`
	assert.Equal(t, ReadHead([]byte(object), "application/json", "", false), Head{RV: "5"}, "an object, cut off")
	raw.Reset()
	require.NoError(t, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(&list.Items[0], &raw))
	assert.Equal(t, ReadHead(raw.Bytes(), "application/vnd.kubernetes.protobuf", "", false), Head{RV: "5"},
		"an object in protobuf")
	assert.Equal(t, ReadHead([]byte("no list"), "application/json", "gzip", true), Head{})
}
