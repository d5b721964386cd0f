package deltafifo_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	deltafifo "listwatch/chapters/10-deltafifo"
)

func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: rv}}
}

// The same three changes through both queues.
func Example() {
	queues := []deltafifo.Queue{
		deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{}),
		deltafifo.NewRealFIFO(deltafifo.RealFIFOOptions{AtomicEvents: true}),
	}
	for _, q := range queues {
		q.Add(pod("a", "1"))
		q.Add(pod("b", "2"))
		q.Update(pod("a", "3"))
		q.Close()
		fmt.Println(q.Snapshot().Kind)
		for {
			err := q.Pop(func(deltas deltafifo.Deltas, _ bool) error {
				for _, delta := range deltas {
					fmt.Print("  ", delta.Type, " ", delta.Key)
				}
				fmt.Println()
				return nil
			})
			if err != nil {
				break
			}
		}
	}
	// Output:
	// delta
	//   Added default/a  Updated default/a
	//   Added default/b
	// real
	//   Added default/a
	//   Added default/b
	//   Updated default/a
}
