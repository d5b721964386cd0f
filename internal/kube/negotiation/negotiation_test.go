package negotiation

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func get(url, header, value string) *http.Request {
	r := httptest.NewRequest("GET", url, nil)
	r.Header.Set(header, value)
	return r
}

func TestTheBestClauseThatCanBeSatisfiedDecides(t *testing.T) {
	const tableOf, metaOf = ";as=Table;g=meta.k8s.io;v=v1", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1"
	for accept, want := range map[string]struct{ name, kind string }{ // "" as the name means a 406
		"":                                    {JSON, ""},
		"application/json;q=0.5, */*;q=0.9":   {JSON, ""},
		"application/yaml;q=0.2, text/html":   {YAML, ""},
		"application/json;charset=utf-8":      {JSON, ""},
		JSON + tableOf + "," + JSON:           {JSON, "Table"}, // the clauses of kubectl get
		JSON + "," + JSON + tableOf:           {JSON, ""},
		JSON + tableOf + ";q=0.1," + JSON:     {JSON, ""},
		JSON + ";as=Table;g=other;v=v1":       {},
		JSON + ";as=Pod;g=meta.k8s.io;v=v1":   {},
		JSON + ";g=meta.k8s.io;v=v1":          {},
		"*/*" + tableOf:                       {JSON, "Table"},
		YAML + tableOf:                        {YAML, "Table"},
		"application/vnd.kubernetes.protobuf": {},
		// The clauses of metadata clients.
		"application/vnd.kubernetes.protobuf" + metaOf + "," + JSON + metaOf: {JSON, "PartialObjectMetadataList"},
		"application/cbor, " + JSON + ";q=0.1":                               {JSON, ""},
		JSON + ";stream=watch":                                               {JSON, ""},
		JSON + ";stream=other":                                               {},
		YAML + ";stream=watch, " + JSON + ";q=0.1":                           {JSON, ""},
		JSON + ";sv=v2":                                                      {},
		"application":                                                        {},
		"text/*":                                                             {},
	} {
		got, err := Output(get("/", "Accept", accept))
		kind := ""
		if got.Convert != nil {
			kind = got.Convert.Kind
		}
		assert.True(t, got.Name == want.name && kind == want.kind,
			"Accept: %s: got %q as %q, want %q as %q", accept, got.Name, kind, want.name, want.kind)
		assert.Equal(t, apierrors.IsNotAcceptable(err), want.name == "", "Accept: %s: got %v", accept, err)
	}
}

func TestYAMLIsNotStreamed(t *testing.T) {
	output := require.Value(Output(get("/", "Accept", YAML)))(t)
	assert.Fails(t, assert.ErrorOf(Stream(output)), apierrors.IsNotAcceptable)
}

func TestPeopleGetIndentedJSON(t *testing.T) {
	for _, c := range []struct {
		url, accept, agent string
		want               bool
	}{
		{"/", "", "curl/8", true}, {"/", "", "kubectl", false}, {"/", JSON + ";pretty=1", "kubectl", true},
		{"/?pretty=true", "", "kubectl", true}, {"/?pretty=false", "", "curl/8", false},
		{"/?pretty=", "", "curl/8", true}, {"/?pretty=maybe", "", "curl/8", false},
	} {
		r := get(c.url, "Accept", c.accept)
		r.Header.Set("User-Agent", c.agent)
		indented := require.Value(Output(r))(t).Encoder == EncoderFor(JSON, true)
		assert.Equal(t, c.want, indented, "%s of %s, %q: indented", c.url, c.agent, c.accept)
	}
}

func TestABodyIsReadByItsContentType(t *testing.T) {
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	for _, c := range []struct {
		contentType, body, directive string
		code                         metav1.StatusReason // "": the body is accepted
		warnings                     int
	}{
		{"", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, "", "", 0},
		{"application/json; charset=utf-8", `{"metadata":{"name":"a"}}`, "", "", 0}, // the path implies the kind
		{YAML, "metadata: {name: a}", "", "", 0},
		{JSON, `{"metadata":{"name":"a"},"wrong":1,"spec":{"more":2}}`, "", "", 2},
		{JSON, `{"metadata":{"name":"a"},"wrong":1}`, metav1.FieldValidationIgnore, "", 0},
		{JSON, `{"metadata":{"name":"a"},"wrong":1}`, metav1.FieldValidationStrict, metav1.StatusReasonBadRequest, 0},
		{JSON, `{"kind":"Node","apiVersion":"v1"}`, "", metav1.StatusReasonBadRequest, 0},
		{JSON, `{"kind":"Pod","apiVersion":"v2"}`, "", metav1.StatusReasonBadRequest, 0},
		{JSON, `{`, "", metav1.StatusReasonBadRequest, 0},
		{JSON, "", "", metav1.StatusReasonBadRequest, 0},
		{JSON, `{"metadata":{"name":{}}}`, "", metav1.StatusReasonBadRequest, 0},
		{JSON, strings.Repeat(" ", MaxRequestBodyBytes+1), "", metav1.StatusReasonRequestEntityTooLarge, 0},
		{"text/csv", "", "", metav1.StatusReasonUnsupportedMediaType, 0},
		{"no type;;", "", "", metav1.StatusReasonUnsupportedMediaType, 0},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.contentType)
		w := httptest.NewRecorder()
		body, err := ReadObject(w, r)
		obj := &corev1.Pod{}
		if err == nil {
			_, err = body.Decode(w, pod, obj, c.directive)
		}
		if got := apierrors.ReasonForError(err); got != c.code && (c.code != "" || err != nil) {
			t.Errorf("%s %.60s: got %v, want %q", c.contentType, c.body, err, c.code)
		}
		assert.True(t, err != nil || obj.Name == "a" && len(w.Header()["Warning"]) == c.warnings,
			"%s: got %q, warnings %q", c.body, obj.Name, w.Header()["Warning"])
	}
}

func TestWarningsAreBoundedAndSaidOnce(t *testing.T) {
	w := httptest.NewRecorder()
	many := []error{errors.New("a"), errors.New("a")}
	for range 100 {
		many = append(many, errors.New(strings.Repeat("x", 90+len(many))))
	}
	AddWarnings(w, many)
	size := len(strings.Join(w.Header()["Warning"], ""))
	assert.True(t, size <= maxWarningBytes && w.Header()["Warning"][0] == `299 - "a"`,
		"got %d bytes: %q", size, w.Header()["Warning"])
	assert.False(t, strings.Contains(w.Header()["Warning"][1], `"a"`), "said twice")
}

// answer returns the output of a Writer after some writes of 16 KiB, and what was written.
func answer(t *testing.T, writes int, compressed bool) (w *httptest.ResponseRecorder, plain []byte) {
	t.Helper()
	recorder := httptest.NewRecorder()
	out := NewWriter(recorder, 201, compressed)
	for range writes {
		p := bytes.Repeat([]byte{byte(len(plain) >> 14)}, 16<<10)
		if n, err := out.Write(p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
		plain = append(plain, p...)
	}
	require.NoError(t, out.Close())
	return recorder, plain
}

func TestOnlyLargeAnswersAreCompressed(t *testing.T) {
	for _, c := range []struct {
		writes     int
		compressed bool
		encoding   string
	}{{0, true, ""}, {8, true, ""}, {9, true, "gzip"}, {30, true, "gzip"}, {30, false, ""}} {
		got, want := answer(t, c.writes, c.compressed)
		if encoding := got.Header().Get("Content-Encoding"); got.Code != 201 || encoding != c.encoding {
			t.Errorf("%d writes: got %d, encoding %q", c.writes, got.Code, encoding)
		}
		var body io.Reader = got.Body
		if c.encoding != "" {
			body = require.Value(gzip.NewReader(body))(t)
		}
		if read, err := io.ReadAll(body); err != nil || !bytes.Equal(read, want) {
			t.Errorf("%d writes: read %d bytes, %v, want %d", c.writes, len(read), err, len(want))
		}
	}
}

// A pooled compressor must not keep its last response alive: a response holds a connection with its buffers.
func TestACompressorForgetsItsAnswer(t *testing.T) {
	response := httptest.NewRecorder()
	answered := weak.Make(response)
	func() {
		out := NewWriter(response, 200, true)
		_, _ = out.Write(make([]byte, 2*gzipThreshold))
		_ = out.Close()
	}()
	runtime.GC() // after one collection a pool still has its objects; a second one would free them
	assert.Equal(t, nil, answered.Value(), "the compressor keeps its answer alive")
}

func TestGzipIsUsedForThoseWhoTakeIt(t *testing.T) {
	for header, want := range map[string]bool{
		"gzip": true, "deflate, gzip;q=0.5": true, "br,gzip ; q=1": true, "": false, "gzip;q=0": false,
		"gzip; q = 0": false, "xgzip": false,
	} {
		assert.Equal(t, want, AcceptsGzip(get("/", "Accept-Encoding", header)), "%q", header)
	}
}
