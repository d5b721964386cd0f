package fold

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Canonical returns JSON with all keys in order, no white space, and nothing escaped that need not be.
func Canonical(written []byte) ([]byte, error) {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("canonical: %w", err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(tree) // maps are written in the order of their keys
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// Canonical returns the state as [Canonical] JSON.
func (s *State) Canonical() []byte {
	written, err := json.Marshal(s)
	if err == nil {
		written, err = Canonical(written)
	}
	if err != nil {
		panic(fmt.Sprintf("fold: a state is not JSON: %v", err)) // maps of strings and numbers always are
	}
	return written
}
