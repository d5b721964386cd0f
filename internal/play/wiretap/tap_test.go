package wiretap

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestTheWireHasTheChunksOfAWatch(t *testing.T) {
	const events, request, header = 20, "GET /pods?watch=true HTTP/1.1\r\nHost: api\r\nUser-Agent: me\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	assert.True(t, Begin([]byte("{\"body\":\r\n\r\n}")) == nil, "a body begins no request")
	wire := Begin([]byte(request))
	assert.False(t, wire.Watching(), "an open watch before its answer")
	wire.Read([]byte(header))
	var written bytes.Buffer
	chunks := httputil.NewChunkedWriter(&written)
	for i := range events - 1 {
		fmt.Fprintf(chunks, `{"i":%d}`+"\n", i)
	}
	fmt.Fprintf(chunks, `{"long":%q}`+"\n", strings.Repeat("x", 2*maxData))
	wire.Read(written.Bytes())
	s := wire.Snapshot()
	assert.True(t, fmt.Sprintln(s.OpenedBy()) == "me /pods watch=true\n" && s.Request == request &&
		s.Header == header &&
		s.Count == events && len(s.Chunks) == maxChunks && wire.Watching(),
		"got %q %q, %d chunks, %d kept", s.Request, s.Header, s.Count, len(s.Chunks))
	got, want := s.Chunks[0], (Chunk{SizeLine: "8\r\n", Data: "{\"i\":4}\n", Size: 8, End: "\r\n"})
	assert.True(t, got == want, "first chunk: got %+v, want %+v", got, want)
	if last := s.Chunks[len(s.Chunks)-1]; len(last.Data) != maxData || last.Size <= maxData || last.End != "\r\n" {
		t.Errorf("last chunk: got %d of %d bytes, end %q", len(last.Data), last.Size, last.End)
	}
	wire.Read([]byte("0\r\n\r\n"))
	assert.False(t, wire.Watching(), "an open watch after its end")
}

func TestChunksAreUnderstoodHoweverTheyAreCut(t *testing.T) {
	const wire = "HTTP/1.1 200 OK\r\nTransfer-Encoding: " +
		"chunked\r\n\r\n5\r\nab\r\nc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\n"
	stream := &Wire{}
	reader := iotest.OneByteReader(strings.NewReader(wire))
	for buf := make([]byte, 10); ; {
		n, err := reader.Read(buf)
		stream.Read(buf[:n])
		if err != nil {
			break
		}
	}
	whole := &Wire{}
	whole.Read([]byte(wire))
	got, want := fmt.Sprintf("%+v", stream.stream), fmt.Sprintf("%+v", whole.stream)
	assert.Equal(t, want, got)
	assert.True(t, whole.stream.Count == 3 && whole.stream.Chunks[0].Data == "ab\r\nc" &&
		whole.stream.Chunks[1].Size == 16 && whole.stream.Chunks[2].SizeLine == "0\r\n" &&
		whole.stream.Chunks[2].End == "\r\n", "got %+v", whole.stream.Chunks)
}

func TestWhatIsNoChunkedAnswerIsNotUnderstood(t *testing.T) {
	for _, wire := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n5\r\nab", "HTTP/1.1 200 OK\r\nTransfer-Encoding: " +
			"chunked\r\n\r\nxyz\r\n",
		strings.Repeat("x", 2*maxHeader), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
	} {
		stream := &Wire{}
		stream.Read([]byte(wire))
		assert.True(t, stream.state == done && len(stream.stream.Chunks) == 0 && stream.line == nil,
			"%.40q: got %+v", wire, stream)
	}
}

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

func TestEventsAreReadHoweverTheyAreCut(t *testing.T) {
	var body []byte
	for _, each := range told {
		object := require.Value(json.Marshal(each.object))(t)
		line := require.Value(json.Marshal(metav1.WatchEvent{Type: each.kind,
			Object: runtime.RawExtension{Raw: object}}))(t)
		body = append(body, append(line, '\n')...)
	}
	for _, size := range []int{1, 7, 4096, len(body)} {
		reader := &Events{}
		var got []Event
		for piece := range slices.Chunk(body, size) {
			got = append(got, reader.Read(piece)...)
		}
		require.Equal(t, len(told), len(got), "in pieces of %d: got %d events", size, len(got))
		total := 0
		for i := range got {
			total += got[i].Size
			got[i].Size = 0
			assert.Equal(t, told[i].want, got[i], "in pieces of %d", size)
		}
		assert.True(t, total == len(body) && cap(reader.frame) <= 2*MaxEvent,
			"the sizes add up to %d of %d; %d bytes are kept", total, len(body), cap(reader.frame))
	}
}

func TestAnObjectWithACodeOfItsOwnIsRead(t *testing.T) {
	got := new(Events).
		Read([]byte(`{"type":"ADDED","object":{"code":"x","metadata":{"name":"a","resourceVersion":"5"}}}` + "\n"))
	assert.True(t, len(got) == 1 && got[0].Key == "a" && got[0].RV == "5", "got %+v", got)
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("{\"type\":\"ADDED\",\"object\":{}}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		whole, cut := new(Events).Read(body), []Event(nil)
		reader := &Events{}
		for i := range body {
			cut = append(cut, reader.Read(body[i:i+1])...)
		}
		assert.EqualSlices(t, cut, whole, "at once %+v, byte by byte %+v", whole, cut)
		ReadVersion(body, "")
	})
}

func TestAListAndAnObjectSayTheirVersion(t *testing.T) {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "abc"}}
	for range 100 {
		list.Items = append(list.Items, *pod("5", map[string]string{"long": strings.Repeat("x", 100)}))
	}
	written := require.Value(json.Marshal(list))(t)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	zip.Write(written)
	zip.Close()
	assert.Equal(t, "77", ReadVersion(written[:HeadSize], ""), "a list")
	assert.Equal(t, "77", ReadVersion(packed.Bytes()[:packed.Len()/2], "gzip"), "a list, packed")
	object := `{"kind":"Pod","metadata":{"managedFields":[{"manager":"x"}],"name":"a","resourceVersion":"5","uid":"`
	assert.Equal(t, "5", ReadVersion([]byte(object), ""), "an object, cut off")
	assert.Equal(t, "", ReadVersion([]byte("no list"), "gzip"))
}
