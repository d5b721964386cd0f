package listwatch_test

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/kube/scheme"
)

func ExampleDecoder() {
	stream := io.NopCloser(strings.NewReader(`
		{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}}
		{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"}}}
		{"type":"ADDED","obj`))
	decoder := listwatch.NewDecoder(stream, scheme.Codecs.UniversalDeserializer())
	for {
		typ, obj, err := decoder.Decode()
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		pod := obj.(*corev1.Pod)
		fmt.Printf("%s %q at %s\n", typ, pod.Name, pod.ResourceVersion)
	}
	// Output:
	// ADDED "a" at 7
	// BOOKMARK "" at 9
	// error: unexpected EOF
}

func ExampleRequest() {
	base, _ := url.Parse("http://127.0.0.1:8080")
	client := listwatch.NewRESTClient(listwatch.Config{Base: base, Clock: clock.RealClock{}})
	status := client.Put().Namespace("default").Resource("pods").Name("a").SubResource("status")
	fmt.Println(status.URL())
	// Output:
	// http://127.0.0.1:8080/api/v1/namespaces/default/pods/a/status
}
