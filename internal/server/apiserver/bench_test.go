package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkCreate is a create over HTTP, without a socket and with an etcd in memory: what the handlers, the registry
// and the store cost.
func BenchmarkCreate(b *testing.B) {
	a := newAPI(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pod := strings.Replace(podA, `"name":"a"`, fmt.Sprintf(`"name":"a%d"`, i), 1)
		if w := a.do("POST", podsPath, pod, "Content-Type", "application/json", "User-Agent",
			"bench/1"); w.Code != http.StatusCreated {
			b.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
}
