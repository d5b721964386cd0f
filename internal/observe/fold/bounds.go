package fold

import "fmt"

// What a picture may hold that comes from a file. The program's own pictures stay far below, at its own limits, too: a
// thousand clients of all resources have some five thousand parts. The page has the same numbers
// (viz/log/recording.js).
const (
	// MaxResources is how many resources there may be.
	MaxResources = 512
	// MaxParts is how many subjects, shelves and waits there may be, of all resources together.
	MaxParts = 50_000

	// in the maps of the resources: the parts, and each resource's stations and points
	maxNames  = MaxParts + 256*MaxResources
	maxValues = 4_000_000 // in the JSON form of a picture: some eighty for each part
	maxQuoted = 4096      // bytes of a text there: more than maxText runes take, whatever is escaped
)

// Fits returns nil if the picture is one that can be shown, and otherwise an error that says what it has too much of.
// It costs as much as folding some hundred records.
func (s *State) Fits() error {
	if n := len(s.Resources); n > MaxResources {
		return fmt.Errorf("the picture at record %d has more than the %d resources that can be shown", s.Seq,
			MaxResources)
	}
	parts := 0
	for _, res := range s.Resources {
		parts += len(res.Subjects) + len(res.Shelves)
		for _, waits := range res.Waits {
			parts += len(waits)
		}
	}
	if parts > MaxParts {
		return fmt.Errorf("the picture at record %d has more than the %d subjects, stores and waits that can be shown",
			s.Seq, MaxParts)
	}
	return nil
}

// measure returns an error if reading a picture would take too much memory: one byte of JSON may stand for a hundred of
// a map. It looks at the brackets, commas and quotes alone: the decoder finds out later whether the text is JSON.
func measure(written []byte) error {
	var at [8]int // values by depth, those of the deepest together; the first is the picture itself
	depth, all, quote := 0, 0, -1
	for i := 0; i < len(written); i++ {
		switch c := written[i]; {
		case quote >= 0 && c == '\\':
			i++
		case c == '"' && quote >= 0:
			if i-quote > maxQuoted {
				return fmt.Errorf("read state: a text of more than %d bytes", maxQuoted)
			}
			quote = -1
		case quote >= 0:
		case c == '"':
			quote = i
		case c == '}' || c == ']':
			depth--
		case c == '{' || c == '[' || c == ',':
			if c != ',' {
				depth++
			}
			all++
			at[max(0, min(depth, len(at)-1))]++
		}
	}
	switch { // resources are the values at depth 2, what they have by name is at depth 4
	case at[2] > MaxResources:
		return fmt.Errorf("read state: more than the %d resources that can be shown", MaxResources)
	case at[4] > maxNames || all > maxValues:
		return fmt.Errorf("read state: more than the %d subjects, stores and waits that can be shown", MaxParts)
	}
	return nil
}
