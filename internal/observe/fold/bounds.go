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

	maxValues = 2_000_000 // in the JSON form of a picture: each part has some eighty, and the program's own are few
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
		if res == nil {
			continue // in a file
		}
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
