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
	At      time.Time `json:"at"`
	Solved  bool      `json:"solved"`
	Says    string    `json:"says"` // the first line of what was wrong
	Changed bool      `json:"-"`    // a source of a chapter is newer than the check
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
	if err := json.Unmarshal(kept, &c); err != nil {
		return Checked{}, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "chapters", "*", "*.go"))
	for _, name := range names {
		info, err := os.Stat(name)
		c.Changed = c.Changed || err == nil && info.ModTime().After(c.At)
	}
	return c, err
}

// Broken reports whether the last check found the lab unsolved.
func (c Checked) Broken() bool { return !c.At.IsZero() && !c.Solved }

// Sentence says how the lab stands, on the page of a program that was started at the time given: what is checked are
// the sources, and the program may have been built from older ones.
func (c Checked) Sentence(started time.Time) string {
	at := c.At.Local().Format(time.TimeOnly)
	switch {
	case c.At.IsZero():
		return "Not checked yet."
	case c.Broken() && c.Changed:
		return fmt.Sprintf("▲ Checked at %s. %s The sources have changed since: check again.", at, c.Says)
	case c.Broken():
		return fmt.Sprintf("▲ Checked at %s. %s", at, c.Says)
	case c.Changed:
		return fmt.Sprintf("The promise held at %s. The sources have changed since: check again.", at)
	case c.At.After(started):
		return fmt.Sprintf("✓ Checked at %s: the promise holds again. "+
			"This program was started before that: start it again to see it here.", at)
	}
	return fmt.Sprintf("✓ Checked at %s, before this program was started: the promise holds again.", at)
}
