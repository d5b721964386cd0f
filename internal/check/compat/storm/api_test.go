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
)

// callWithin is the time limit of one request of a writer or a reader. Longer than the program stands still by order, so
// that most requests that wait are answered.
const callWithin = 5 * time.Second

// api is one client of the API: plain HTTP, nothing is tried again.
type api struct {
	base   string
	client *http.Client
}

func newAPI(base string) *api {
	return &api{base: base, client: &http.Client{Timeout: callWithin, Transport: &http.Transport{}}}
}

func (a *api) close() { a.client.CloseIdleConnections() }

// reply is what came back. The code is 0 if nothing did.
type reply struct {
	code int
	body []byte
	err  error
}

// do makes one request. A body that is not nil is sent as JSON.
func (a *api) do(method, path string, body any) reply {
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body) // of our own types
	}
	request, err := http.NewRequest(method, a.base+path, bytes.NewReader(data))
	if err != nil {
		return reply{err: err}
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	data, err = io.ReadAll(response.Body)
	if err != nil {
		return reply{err: err} // cut off: what the status said is no proof
	}
	return reply{code: response.StatusCode, body: data}
}

func (r reply) read(into any) error { return json.Unmarshal(r.body, into) }

// reason returns the reason of a Status, or "".
func (r reply) reason() string {
	var status struct{ Reason string }
	_ = r.read(&status)
	return status.Reason
}

func (r reply) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	return fmt.Sprintf("%d %.200s", r.code, r.body)
}

func configMapsOf(namespace string) string { return "/api/v1/namespaces/" + namespace + "/configmaps" }

// configMap is what we read and write of a ConfigMap.
type configMap struct {
	Metadata metadata          `json:"metadata"`
	Data     map[string]string `json:"data,omitempty"`
}

type metadata struct {
	Name            string            `json:"name,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

func (m metadata) rv() uint64 { return parse(m.ResourceVersion) }

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

type configMapList struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []configMap `json:"items"`
}

// deleteOptions asks for the deletion of exactly this version, or of any if it has none.
func deleteOptions(m metadata) any {
	preconditions := map[string]string{}
	if m.UID != "" {
		preconditions["uid"] = m.UID
	}
	if m.ResourceVersion != "" {
		preconditions["resourceVersion"] = m.ResourceVersion
	}
	return map[string]any{"preconditions": preconditions}
}

// object reads the counter.
func (c configMap) object() object {
	n, _ := strconv.Atoi(c.Data["n"]) // 0 is never right, and found
	return object{c.Metadata.Name, n, c.Metadata.rv()}
}

func objects(items []configMap) []object {
	list := make([]object, 0, len(items))
	for _, item := range items {
		list = append(list, item.object())
	}
	return list
}

// counted returns a ConfigMap with counter n. Its label follows the counter: see inTurns.
func counted(name string, n int, rv uint64) configMap {
	return configMap{
		Metadata: metadata{Name: name, ResourceVersion: version(rv), Labels: map[string]string{"turn": strconv.FormatBool(inTurns(n))}},
		Data:     map[string]string{"n": strconv.Itoa(n)},
	}
}

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
