package storage

import (
	"fmt"
	"strings"
)

// PrepareKey checks a key against the prefix of its resource and makes it safe for a range
// read. prefix ends without a slash: "/registry/pods". A recursive key gets a trailing slash,
// so that a list of "/registry/pods" cannot reach into "/registry/podsecurity". Empty keys,
// keys outside the prefix, and "." or ".." segments are refused; so is the prefix itself,
// unless the key is recursive: an object there would be in no list. (Upstream's prefixes end in
// a slash, and so refuse it, too.)
//
// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: PrepareKey
// Differs: the prefix ends at a segment: upstream lets "/registry/podsmore/a" pass for a pod,
// and leaves it to its callers never to ask.
func PrepareKey(prefix, key string, recursive bool) (string, error) {
	if key == "" {
		return "", fmt.Errorf("storage key is empty")
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." {
			return "", fmt.Errorf("storage key %q has a %q segment", key, segment)
		}
	}
	if !HasPathPrefix(key, prefix) {
		return "", fmt.Errorf("storage key %q lies outside %q", key, prefix)
	}
	if !recursive && key == prefix {
		return "", fmt.Errorf("storage key %q is the root of a resource, not an object", key)
	}
	if recursive && !strings.HasSuffix(key, "/") {
		key += "/"
	}
	return key, nil
}

// HasPathPrefix reports whether s begins with prefix at a boundary between path segments: "/pods/a" is a path prefix of
// "/pods/a/b" and of itself, but not of "/pods/ab".
func HasPathPrefix(s, prefix string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return false
	}
	return rest == "" || strings.HasSuffix(prefix, "/") || strings.HasPrefix(rest, "/")
}
