package inspector

import (
	_ "embed"
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"

	"listwatch/internal/observe/probe"
)

//go:embed places.yaml
var placesFile []byte

// places is what is said about the stations and queues. It is read when it is first asked for.
var places = sync.OnceValue(func() (table placeTable) {
	if err := yaml.UnmarshalStrict(placesFile, &table); err != nil {
		panic(fmt.Sprintf("inspector: places.yaml: %v", err))
	}
	return table
})

// placeTable is the form of places.yaml.
type placeTable struct {
	Stations map[probe.Station]placeText
	Queues   map[string]placeText
}

// placeText is what the inspector says about a station or a queue in words.
type placeText struct {
	Title   string // of a queue; a station's stands in its box
	What    string // two sentences
	Why     string // why it exists
	Chapter string // folder
	Threads []thread
}

// thread is a discussion upstream that became a scenario here.
type thread struct {
	Ref   string // "kubernetes/kubernetes#125123"
	Words string
}
