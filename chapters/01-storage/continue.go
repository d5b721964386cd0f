package storage

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
)

// A paged list is one snapshot read in several requests. What ties them together travels with the client, as a
// token: the resource version of the first page, and the first key of the next.

type continueToken struct {
	APIVersion      string `json:"v"`
	ResourceVersion int64  `json:"rv"`
	StartKey        string `json:"start"`
}

const continueVersion = "meta.k8s.io/v1"

// EncodeContinue returns the token with which a list under prefix goes on at key (inclusive).
// rv -1 lets the next page be read at any later version: then the pages may not fit together.
//
// Upstream: k8s.io/apiserver/pkg/storage/continue.go: EncodeContinue
func EncodeContinue(key, prefix string, rv int64) (string, error) {
	next, ok := strings.CutPrefix(key, prefix)
	if !ok || next == "" {
		return "", fmt.Errorf(
			"unable to encode next field: the key %q does not begin with %q", key, prefix)
	}
	token := continueToken{APIVersion: continueVersion, ResourceVersion: rv, StartKey: next}
	out, err := json.Marshal(token)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(out), nil
}

// DecodeContinue returns the key at which the list under prefix goes on, and the resource
// version it is read at: a positive one, or a negative one for the newest state. A token is
// client input: if it does not parse, has version 0 or no key, or would leave prefix by "..",
// the error is 400 for the client.
//
// Upstream: k8s.io/apiserver/pkg/storage/continue.go: DecodeContinue
func DecodeContinue(token, prefix string) (fromKey string, rv int64, err error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", 0, fmt.Errorf("continue key is not valid: %w", err)
	}
	var c continueToken
	if err := json.Unmarshal(data, &c); err != nil {
		return "", 0, fmt.Errorf("continue key is not valid: %w", err)
	}
	if c.APIVersion != continueVersion {
		return "", 0, errors.New(
			"continue key is not valid: server does not recognize this encoded version")
	}
	if c.ResourceVersion == 0 {
		return "", 0, errors.New("continue key is not valid: " +
			"incorrect encoded start resourceVersion (version " + continueVersion + ")")
	}
	if c.StartKey == "" {
		return "", 0, errors.New("continue key is not valid: " +
			"encoded start key is empty (version " + continueVersion + ")")
	}
	// A leading slash keeps Clean from letting ".." climb out of the prefix.
	key := c.StartKey
	if !strings.HasPrefix(key, "/") {
		key = "/" + key
	}
	cleaned := path.Clean(key)
	if cleaned != key || cleaned == "/" {
		return "", 0, fmt.Errorf("continue key is not valid: %q", c.StartKey)
	}
	return prefix + cleaned[1:], c.ResourceVersion, nil
}

// PrepareContinueToken returns what goes into the metadata of a page: the token for the next one, which begins after
// lastKey, and how many items are still to come. count is how many keys there were from the beginning of this page.
// Both are empty without more, and the number is unknown with a selector: keys are counted, not matches.
//
// Upstream: k8s.io/apiserver/pkg/storage/continue.go: PrepareContinueToken
func PrepareContinueToken(lastKey, keyPrefix string, rv, count int64, more bool,
	opts ListOptions) (token string, remaining *int64, err error) {
	if !more {
		return "", nil, nil
	}
	// The smallest key after lastKey is lastKey with a zero byte behind it.
	token, err = EncodeContinue(lastKey+"\x00", keyPrefix, rv)
	if err != nil {
		return "", nil, err
	}
	if opts.Predicate.Empty() {
		n := count - opts.Predicate.Limit
		remaining = &n
	}
	return token, remaining, nil
}
