package storm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// callWithin is the time limit of one request of a writer or a reader. Longer than the program stands still by order,
// so that most requests that wait are answered.
const callWithin = 5 * time.Second

// configMaps returns a client for a namespace. No answer takes longer than within; 0 is no limit.
func configMaps(base, namespace string, within time.Duration) typed.ConfigMapInterface {
	config := &rest.Config{Host: base, QPS: -1, Timeout: within}
	return kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(namespace)
}

// counted returns a ConfigMap with counter n. Its label follows the counter: see inTurns.
func counted(name string, n int, rv uint64) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: version(rv), Labels: map[string]string{"turn": strconv.FormatBool(inTurns(n))},
		},
		Data: map[string]string{"n": strconv.Itoa(n)},
	}
}

// objectOf reads the counter of a ConfigMap.
func objectOf(obj any) object {
	var n string
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		n = o.Data["n"]
	case *unstructured.Unstructured:
		n, _, _ = unstructured.NestedString(o.Object, "data", "n")
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return object{}
	}
	counter, _ := strconv.Atoi(n) // 0 is never right, and found
	return object{accessor.GetName(), counter, parse(accessor.GetResourceVersion())}
}

func objects(list *corev1.ConfigMapList) []object {
	all := make([]object, len(list.Items))
	for i := range list.Items {
		all[i] = objectOf(&list.Items[i])
	}
	return all
}

// parse reads a version. Here, and not in clients, versions are numbers: we look at the server from outside.
func parse(version string) uint64 {
	rv, _ := strconv.ParseUint(version, 10, 64) // 0 is never right, and found
	return rv
}

// version writes a version as clients do: 0 is none.
func version(rv uint64) string {
	if rv == 0 {
		return ""
	}
	return strconv.FormatUint(rv, 10)
}

// page is a client of what the program serves beside the API.
type page struct {
	base   string
	client *http.Client
}

// newPage returns a client that opens a connection for each request: a command that meets one which the program is just
// closing would not be sent again.
func newPage(base string, within time.Duration) *page {
	return &page{base, &http.Client{Timeout: within, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// reply is what came back. The code is 0 if nothing did.
type reply struct {
	code int
	body []byte
	err  error
}

// do makes one request. A body that is not nil is sent as JSON.
func (p *page) do(method, path string, body any) (r reply) {
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body) // of our own types
	}
	request, err := http.NewRequest(method, p.base+path, bytes.NewReader(data))
	if err != nil {
		return reply{err: err}
	}
	response, err := p.client.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	data, err = io.ReadAll(response.Body)
	return reply{response.StatusCode, data, err}
}

func (r reply) read(into any) error { return json.Unmarshal(r.body, into) }

func (r reply) String() string { return fmt.Sprintf("%d %.200s %v", r.code, r.body, r.err) }

// pause waits. It reports whether to go on: ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
