package redact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const password = "hunter2 }\" :{"

func secret(t *testing.T) string {
	t.Helper()
	object := corev1.Secret{
		TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Data: map[string][]byte{"p": []byte(password)}, StringData: map[string]string{"q": password},
	}
	applied := require.Value(json.Marshal(&object))(t)
	object.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(applied),
		"kept": "yes"}
	object.Type = "Opaque"
	written := require.Value(json.Marshal(&object))(t)
	return string(written)
}

func leaks(text string) bool {
	return strings.Contains(text, "hunter2") || strings.Contains(text, base64.StdEncoding.EncodeToString(
		[]byte(password))) || strings.Contains(text, "s3cret")
}

func TestNothingThatOpensADoorIsLeft(t *testing.T) {
	object := secret(t)
	event := `{"type":"ADDED","object":` + object + `}` + "\n"
	for name, text := range map[string]string{
		"basic":       "GET / HTTP/1.1\r\nHost: a\r\nauthorization: Basic s3cret\r\nAccept: */*\r\n\r\n",
		"bearer":      "Authorization:Bearer s3cret.s3cret",
		"cookies":     "Cookie: a=s3cret; b=\"s3cret\"\r\nSet-Cookie: c=s3cret; HttpOnly\r\n",
		"websocket":   "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.s3cret, v4.channel.k8s.io\r\n",
		"query":       "kubectl/1 /api/v1/pods?watch=1&access_token=s3cret&x=y",
		"object":      object,
		"event":       event,
		"list":        `{"kind":"SecretList","items":[{"metadata":{"name":"a"},"data":{"p":"s3cret"}}]}`,
		"in a string": mustQuote(event),
		"protobuf":    "k8s\x00\n\f\n\x02v1\x12\x06Secret\x12s3cret",
	} {
		got := Text(text)
		assert.True(t, !leaks(got) && strings.Contains(got, Hidden), "%s: got %s", name, got)
		got = string(JSON([]byte(`{"a":[` + mustQuote(text) + `],"n":9007199254740993}`)))
		assert.True(t, !leaks(got) && strings.HasSuffix(got, `"n":9007199254740993}`), "%s in JSON: got %s", name, got)
	}
	for cut := range len(event) {
		got := Text(event[:cut])
		require.True(t, !leaks(got), "cut after %d bytes: got %s", cut, got)
	}
	got := Text(object)
	assert.True(t, strings.Contains(got, `"name":"a"`), "its name is gone, too: %s", got)
}

func TestWhatOpensNoDoorStays(t *testing.T) {
	for _, text := range []string{
		"", "a", "kubectl/v1.37 /api/v1/pods?watch=1&resourceVersion=7", `{"kind":"ConfigMap","data":{"a":"b"}}`,
		"default/a: scheduled: it is on node-1", "the author: nobody",
	} {
		assert.Equal(t, text, Text(text), "%q became", text)
	}
}

// TestOnlyTheParametersOfTheAPIKeepTheirValues expects Hidden for harmless names: no list of bad names is complete.
func TestOnlyTheParametersOfTheAPIKeepTheirValues(t *testing.T) {
	const kept = "watch=1&resourceVersion=7&labelSelector=app%3Dx&timeoutSeconds=5&limit=500&continue=abc"
	for _, secret := range []string{
		"sig=s3cret", "jwt=s3cret", "auth=s3cret", "key=s3cret", "passwd=s3cret", "x=Bearer%20s3cret",
		"x=https://u:s3cret@h", "to%6ben=s3cret",
		"TOKEN=s3cret", "%zz=s3cret", "s3cret", "command=s3cret", "a;b=s3cret",
	} {
		got := Query(kept + "&" + secret)
		assert.True(t, !leaks(got) && strings.HasPrefix(got, kept+"&") && strings.HasSuffix(got, Hidden),
			"%s: got %s", secret, got)
		for _, text := range []string{
			"GET /api/v1/pods?" + kept + "&" + secret + " HTTP/1.1\r\nHost: a\r\n\r\n", "kubectl/1 /api/v1/pods?" +
				secret + "&" + kept,
			"Request GET /api/v1/pods?" + kept + "&" + secret + " by me.", "http://u:s3cret@h/x?" + secret,
		} {
			got := Text(text)
			assert.False(t, leaks(got), "%s: got %s", text, got)
		}
	}
	for _, whole := range []string{"", kept, "pretty&dryRun=All"} {
		assert.Equal(t, whole, Query(whole), "%q became", whole)
	}
}

func mustQuote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}
