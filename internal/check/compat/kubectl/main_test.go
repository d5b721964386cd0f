package kubectl

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// editVariable makes this test binary an editor: the file that is its argument has every "old" of "old/new" replaced.
// No shell is needed for that.
const editVariable = "EDIT"

func TestMain(m *testing.M) {
	if change, ok := os.LookupEnv(editVariable); ok {
		if err := edit(os.Args[len(os.Args)-1], change); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func edit(file, change string) error {
	old, replacement, ok := strings.Cut(change, "/")
	if !ok {
		return fmt.Errorf("%s=%s: want old/new", editVariable, change)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o600)
}
