package storage

import (
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

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
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("PrepareKey(%q): got %q, %v, want %q", test.key, got, err, test.want)
			}
		})
	}
}

func TestPathPrefixEndsAtASegment(t *testing.T) {
	for _, test := range []struct {
		s, prefix string
		want      bool
	}{
		{"/pods/a/b", "/pods/a", true},
		{"/pods/a", "/pods/a", true},
		{"/pods/a/", "/pods/a/", true},
		{"/pods/ab", "/pods/a", false},
		{"/pods", "/pods/a", false},
		{"/pods/a", "", true},
	} {
		assert.Equal(t, HasPathPrefix(test.s, test.prefix), test.want, "HasPathPrefix(%q, %q)", test.s, test.prefix)
	}
}

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
		if got != prefix && !strings.HasPrefix(got, prefix+"/") {
			t.Errorf("%q became %q, outside %q", key, got, prefix)
		}
		if recursive && !strings.HasSuffix(got, "/") {
			t.Errorf("%q became %q, which is no range", key, got)
		}
		for segment := range strings.SplitSeq(got, "/") {
			assert.True(t, segment != ".." && segment != ".", "%q became %q, which climbs", key, got)
		}
		if again, err := PrepareKey(prefix, got, recursive); err != nil || again != got {
			t.Errorf("%q prepared again: got %q, %v", got, again, err)
		}
	})
}
