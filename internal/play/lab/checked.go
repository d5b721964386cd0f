package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// verdictFile is the file in a working copy in which the last check is kept, for the page of a program that runs there.
const verdictFile = ".checked"

// Checked is what the last check of a working copy found, and when.
type Checked struct {
	At     time.Time `json:"at"`
	Solved bool      `json:"solved"`
	Says   string    `json:"says"` // the first line of what was wrong
}

// Keep writes the verdict of a check into the working copy.
func (v Verdict) Keep(dir string, at time.Time) error {
	kept, err := json.Marshal(Checked{At: at, Solved: v.Solved, Says: v.Says[0]})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, verdictFile), kept, 0o644)
}

// LastCheck returns what the last check of the working copy dir found; a zero Checked if there was none.
func LastCheck(dir string) (c Checked, err error) {
	kept, err := os.ReadFile(filepath.Join(dir, verdictFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Checked{}, nil
	}
	if err != nil {
		return Checked{}, err
	}
	return c, json.Unmarshal(kept, &c)
}

// Broken reports whether the last check found the lab unsolved.
func (c Checked) Broken() bool { return !c.At.IsZero() && !c.Solved }

// Sentence says how the lab stood when it was checked last. The program that shows it may have been built from older sources.
func (c Checked) Sentence() string {
	at := c.At.Local().Format(time.TimeOnly)
	switch {
	case c.At.IsZero():
		return "Not checked yet."
	case c.Broken():
		return fmt.Sprintf("▲ Checked at %s. %s", at, c.Says)
	}
	return fmt.Sprintf("✓ Checked at %s: the promise holds again. A program that was started before shows it when it is started again.", at)
}
