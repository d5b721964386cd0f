package redact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const password = "hunter2 }\" :{"

func secret(t *testing.T) string {
	t.Helper()
	object := corev1.Secret{
		TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Data: map[string][]byte{"p": []byte(password)}, StringData: map[string]string{"q": password},
	}
	applied, err := json.Marshal(&object)
	if err != nil {
		t.Fatal(err)
	}
	object.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(applied),
		"kept": "yes"}
	object.Type = "Opaque"
	written, err := json.Marshal(&object)
	if err != nil {
		t.Fatal(err)
	}
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
		if got := Text(text); leaks(got) || !strings.Contains(got, Hidden) {
			t.Errorf("%s: got %s", name, got)
		}
		if got := string(JSON([]byte(`{"a":[` + mustQuote(text) + `],"n":9007199254740993}`))); leaks(got) ||
			!strings.HasSuffix(got, `"n":9007199254740993}`) {
			t.Errorf("%s in JSON: got %s", name, got)
		}
	}
	for cut := range len(event) {
		if got := Text(event[:cut]); leaks(got) {
			t.Fatalf("cut after %d bytes: got %s", cut, got)
		}
	}
	if got := Text(object); !strings.Contains(got, `"name":"a"`) {
		t.Errorf("its name is gone, too: %s", got)
	}
}

func TestWhatOpensNoDoorStays(t *testing.T) {
	for _, text := range []string{
		"", "a", "kubectl/v1.37 /api/v1/pods?watch=1&resourceVersion=7", `{"kind":"ConfigMap","data":{"a":"b"}}`,
		"default/a: scheduled: it is on node-1", "the author: nobody",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestOnlyTheParametersOfTheAPIKeepTheirValues: no list of names that sound secret is ever complete.
func TestOnlyTheParametersOfTheAPIKeepTheirValues(t *testing.T) {
	const kept = "watch=1&resourceVersion=7&labelSelector=app%3Dx&timeoutSeconds=5&limit=500&continue=abc"
	for _, secret := range []string{
		"sig=s3cret", "jwt=s3cret", "auth=s3cret", "key=s3cret", "passwd=s3cret", "x=Bearer%20s3cret",
		"x=https://u:s3cret@h", "to%6ben=s3cret",
		"TOKEN=s3cret", "%zz=s3cret", "s3cret", "command=s3cret", "a;b=s3cret",
	} {
		if got := Query(kept + "&" + secret); leaks(got) || !strings.HasPrefix(got, kept+"&") ||
			!strings.HasSuffix(got, Hidden) {
			t.Errorf("%s: got %s", secret, got)
		}
		for _, text := range []string{
			"GET /api/v1/pods?" + kept + "&" + secret + " HTTP/1.1\r\nHost: a\r\n\r\n", "kubectl/1 /api/v1/pods?" +
				secret + "&" + kept,
			"Request GET /api/v1/pods?" + kept + "&" + secret + " by me.", "http://u:s3cret@h/x?" + secret,
		} {
			if got := Text(text); leaks(got) {
				t.Errorf("%s: got %s", text, got)
			}
		}
	}
	for _, whole := range []string{"", kept, "pretty&dryRun=All"} {
		if got := Query(whole); got != whole {
			t.Errorf("%q became %q", whole, got)
		}
	}
}

func mustQuote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}
