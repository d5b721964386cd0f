package upstream

import (
	"strings"
	"testing"

	realstorage "k8s.io/apiserver/pkg/storage"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
)

// keysOf returns every key of up to n segments.
func keysOf(n int) []string {
	segments := []string{"", ".", "..", "registry", "pods", "podsmore", "a"}
	keys := []string{""}
	for first := 0; n > 0; n-- {
		last := len(keys)
		for _, key := range keys[first:last] {
			for _, segment := range segments {
				keys = append(keys, key+"/"+segment)
			}
		}
		first = last
	}
	return append(keys, ".", "..", "a", "./a", "../a", "registry/pods/a")
}

// TestAKeyIsPreparedAsTheRealOneIs asks both for all of them. Two differences are declared: ours takes a key for one of
// its own only if its prefix ends where a segment does, and never takes the prefix itself for an object's key.
// (Upstream's stores are given a prefix that ends in a slash, which comes to the same; here both get one without.)
func TestAKeyIsPreparedAsTheRealOneIs(t *testing.T) {
	declared, accepted := 0, 0
	for _, key := range keysOf(5) {
		for _, recursive := range []bool{false, true} {
			ours, ourErr := storage.PrepareKey(prefix, key, recursive)
			theirs, theirErr := realstorage.PrepareKey(prefix, key, recursive)
			if ourErr != nil && theirErr == nil && !storage.HasPathPrefix(theirs, prefix) && strings.HasPrefix(theirs,
				prefix) {
				declared++
				continue
			}
			if key == prefix && !recursive && ourErr != nil {
				declared++
				continue
			}
			if ours != theirs || (ourErr == nil) != (theirErr == nil) {
				t.Errorf("%q, recursive %t: ours %q, %v; theirs %q, %v", key, recursive, ours, ourErr, theirs, theirErr)
			}
			if theirErr == nil {
				accepted++
			}
		}
	}
	assert.True(t, declared != 0 && accepted >= 300,
		"%d keys accepted, %d refused by us alone: too few to compare anything", accepted, declared)
}
