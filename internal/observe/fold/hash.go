package fold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
)

// Canonical returns the state as JSON with all keys in order, no white space, and nothing escaped that need not be:
// the same bytes that canonical in fold.js gives.
func (s *State) Canonical() []byte {
	written, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("fold: a state is not JSON: %v", err)) // maps of strings and numbers always are
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		panic(fmt.Sprintf("fold: own JSON: %v", err))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(tree); err != nil { // maps are written in the order of their keys
		panic(fmt.Sprintf("fold: own JSON: %v", err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// Hash returns eight hexadecimal digits, equal for equal states: the page's fold gives the same (hash in fold.js).
func (s *State) Hash() string {
	sum := fnv.New32a()
	sum.Write(s.Canonical())
	return fmt.Sprintf("%08x", sum.Sum32())
}
