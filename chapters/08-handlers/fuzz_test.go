package handlers

import (
	"errors"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/check/assert"
)

// Whatever a client sends, it is told what is wrong with it: nothing here may become a 500.

func FuzzListOptions(f *testing.F) {
	f.Add("1", "Exact", "a=b", "metadata.name=a", "c", "1", "1", "true")
	f.Add("-1", "", "a in (b,c),!d", "spec.nodeName!=x", "", "-5", "99999999999999999999", "")
	f.Add("18446744073709551616", "NotOlderThan", "=", "a\\,b=c",
		"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "", "", "x")
	f.Fuzz(func(t *testing.T, version, match, labels, fields, token, limit, timeout, initial string) {
		a := newAPI(t)
		query := url.Values{}
		for name, value := range map[string]string{
			"resourceVersion": version, "resourceVersionMatch": match, "labelSelector": labels, "fieldSelector": fields,
			"continue": token, "limit": limit, "timeoutSeconds": timeout, "sendInitialEvents": initial,
		} {
			if value != "" {
				query.Set(name, value)
			}
		}
		if w := a.do("GET", podsPath+"?"+query.Encode(), ""); w.Code >= 500 && w.Code != 504 {
			t.Errorf("?%s: got %d %s", query.Encode(), w.Code, w.Body)
		}
		// A watch that may begin would not end: what is refused is.
		query.Set("watch", "1")
		_, err := podScope(t).listOpts(request(t, podsPath+"?"+query.Encode()))
		if status := apierrors.APIStatus(nil); err != nil && (!errors.As(err, &status) || status.Status().Code >= 500) {
			t.Errorf("?%s: got %v", query.Encode(), err)
		}
	})
}

func FuzzBodies(f *testing.F) {
	f.Add("application/json", []byte(podA))
	f.Add("application/yaml", []byte("kind: Pod\nmetadata: {name: a}\n"))
	f.Add("application/vnd.kubernetes.protobuf", []byte("k8s\x00\n\x06\n\x02v1\x12\x00"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		a := newAPI(t)
		w := a.do("POST", podsPath, string(body), "Content-Type", contentType)
		assert.True(t, w.Code < 500, "got %d %s", w.Code, w.Body)
	})
}
