package storage

import (
	"encoding/base64"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// FuzzPrepareKey: no key reaches out of its resource, and preparing twice changes nothing.
func FuzzPrepareKey(f *testing.F) {
	for _, seed := range []string{"", "/", "/registry/pods", "/registry/pods/", "/registry/pods/default/a",
		"/registry/pods/../x", "/registry/podsecurity", "/registry/pods//", "."} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	const prefix = "/registry/pods"
	f.Fuzz(func(t *testing.T, key string, recursive bool) {
		got, err := PrepareKey(prefix, key, recursive)
		if err != nil {
			return
		}
		assert.False(t, got != prefix && !strings.HasPrefix(got, prefix+"/"), "%q became %q, outside %q", key, got,
			prefix)
		assert.False(t, recursive && !strings.HasSuffix(got, "/"), "%q became %q, which is no range", key, got)
		for segment := range strings.SplitSeq(got, "/") {
			assert.True(t, segment != ".." && segment != ".", "%q became %q, which climbs", key, got)
		}
		again, err := PrepareKey(prefix, got, recursive)
		assert.True(t, err == nil && again == got, "%q prepared again: got %q, %v", got, again, err)
	})
}

const podsPrefix = "/registry/pods/"

func TestTokenGoesOnUnderAnotherPrefixOfItsOwn(t *testing.T) {
	// The token does not contain the prefix: where a store keeps its keys is none of the client's business.
	token := require.Value(EncodeContinue(podsPrefix+"default/a", podsPrefix, 5))(t)
	key, _, err := DecodeContinue(token, "/elsewhere/")
	assert.True(t, err == nil && key == "/elsewhere/default/a", "got %q, %v", key, err)
}

func TestEncodeContinueRefusesWhatIsNotUnderThePrefix(t *testing.T) {
	for _, key := range []string{"/registry/podsecurity/a", "", podsPrefix} {
		token, err := EncodeContinue(key, podsPrefix, 1)
		assert.True(t, err != nil, "%q: got token %q", key, token)
	}
}

func TestDecodeContinueRefusesWhatItDidNotMake(t *testing.T) {
	for name, test := range map[string]struct{ json, want string }{
		"another version":  {`{"v":"v2","rv":1,"start":"a"}`, "version"},
		"no version":       {`{"rv":1,"start":"a"}`, "version"},
		"no revision":      {`{"v":"meta.k8s.io/v1","start":"a"}`, "resourceVersion"},
		"no key":           {`{"v":"meta.k8s.io/v1","rv":1}`, "start key is empty"},
		"climbing":         {`{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}`, "../secrets/a"},
		"climbing later":   {`{"v":"meta.k8s.io/v1","rv":1,"start":"a/../../secrets"}`, "a/../../secrets"},
		"doubled slash":    {`{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}`, "a//b"},
		"trailing slash":   {`{"v":"meta.k8s.io/v1","rv":1,"start":"a/"}`, "a/"},
		"fraction":         {`{"v":"meta.k8s.io/v1","rv":1.5,"start":"a"}`, "unmarshal"},
		"larger than fits": {`{"v":"meta.k8s.io/v1","rv":9223372036854775808,"start":"a"}`, "unmarshal"},
		"no JSON":          {`hello`, "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			key, rv, err := DecodeContinue(base64.RawURLEncoding.EncodeToString([]byte(test.json)), podsPrefix)
			require.True(t, err != nil, "got %q at %d", key, rv)
			assert.True(t, strings.Contains(err.Error(), test.want), "got %v, want %s", err, test.want)
		})
	}
	_, _, err := DecodeContinue("not base64!", podsPrefix)
	assert.True(t, err != nil, "no base64: got no error")
}

// FuzzDecodeContinue: whatever a client sends, the key lies under the prefix, and a token made from the answer gives
// the answer again.
func FuzzDecodeContinue(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"v":"meta.k8s.io/v1","rv":1,"start":"default/a\u0000"}`,
		`{"v":"meta.k8s.io/v1","rv":-1,"start":"/"}`,
		`{"v":"meta.k8s.io/v1","rv":1,"start":"../../x"}`, `{"v":"meta.k8s.io/v1","rv":1,"start":"."}`,
	} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(seed)))
	}
	f.Add("%%%")
	f.Fuzz(func(t *testing.T, token string) {
		key, rv, err := DecodeContinue(token, podsPrefix)
		if err != nil {
			return
		}
		require.True(t, strings.HasPrefix(key, podsPrefix) && key != podsPrefix && rv != 0, "got %q at %d", key, rv)
		for segment := range strings.SplitSeq(key, "/") {
			require.True(t, segment != "..", "%q climbs", key)
		}
		again := require.Value(EncodeContinue(key, podsPrefix, rv))(t)
		key2, rv2, err := DecodeContinue(again, podsPrefix)
		assert.True(t, err == nil && key2 == key && rv2 == rv, "got %q at %d, then %q at %d, %v", key, rv, key2, rv2,
			err)
	})
}

func TestPrepareKey(t *testing.T) {
	const prefix = "/registry/pods"
	for _, test := range []struct {
		name, key string
		recursive bool
		want      string // "" if it is refused
	}{
		{name: "object", key: "/registry/pods/default/a", want: "/registry/pods/default/a"},
		{name: "resource", key: "/registry/pods", recursive: true, want: "/registry/pods/"},
		{name: "resource with a slash", key: "/registry/pods/", recursive: true, want: "/registry/pods/"},
		{name: "namespace", key: "/registry/pods/default", recursive: true, want: "/registry/pods/default/"},
		{name: "resource as one key", key: "/registry/pods"},
		// upstream lets it pass, and finds nothing there
		{name: "resource with a slash as one key", key: "/registry/pods/", want: "/registry/pods/"},
		{name: "name with dots", key: "/registry/pods/default/a..b", want: "/registry/pods/default/a..b"},
		{name: "neighbour", key: "/registry/podsecurity/a"},
		{name: "neighbour that begins alike", key: "/registry/podsmore"},
		{name: "neighbour, recursive", key: "/registry/podsecurity", recursive: true},
		{name: "parent", key: "/registry", recursive: true},
		{name: "climbing", key: "/registry/pods/../secrets/a"},
		{name: "climbing at the end", key: "/registry/pods/.."},
		{name: "standing still", key: "/registry/pods/./a"},
		{name: "empty", key: ""},
		{name: "root", key: "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := PrepareKey(prefix, test.key, test.recursive)
			assert.True(t, got == test.want && (err == nil) == (test.want != ""),
				"PrepareKey(%q): got %q, %v, want %q", test.key, got, err, test.want)
		})
	}
}
