package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestWhatIsMissingIsNamedOrInstalled checks that needs.sh names missing programs or, as root with apt, installs them.
func TestWhatIsMissingIsNamedOrInstalled(t *testing.T) {
	sh := require.Value(exec.LookPath("sh"))(t)
	const compiler = "a C compiler, for the race detector, is missing: "
	for name, tc := range map[string]struct {
		has  map[string]string // the machine's programs, and their scripts
		want string            // "…" matches any text
		ok   bool
	}{
		"nothing known": {nil, "make is missing: install make, …git is missing: install git, …" + compiler +
			"install gcc …chromium is missing: install chromium …", false},
		"a Mac": {map[string]string{"brew": "", "make": "", "git": "", "cc": ""},
			"chromium is missing: brew install --cask chromium\n", false},
		"Ubuntu's user": {map[string]string{"apt-get": "", "id": "echo 1000", "make": "", "git": "", "chromium": ""},
			compiler + "sudo apt-get install gcc libc6-dev\n", false},
		"root of a container": {map[string]string{"apt-get": `echo "$@" >&2`, "id": "echo 0", "make": ""},
			"update -qq\ninstall -y -qq --no-install-recommends git gcc libc6-dev chromium fonts-dejavu-core\n", true},
		"all there": {map[string]string{"make": "", "git": "", "cc": "", "google-chrome": ""}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := t.TempDir()
			for program, does := range tc.has {
				text := "#!" + sh + "\n" + does + "\n"
				require.NoError(t, os.WriteFile(filepath.Join(machine, program), []byte(text), 0o755))
			}
			cmd := exec.Command(sh, filepath.Join("..", "tools", "needs.sh"))
			cmd.Env = []string{"PATH=" + machine}
			out, err := cmd.CombinedOutput()
			want := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(tc.want), "…", ".*") + "$")
			assert.True(t, (err == nil) == tc.ok && want.Match(out), "%v after\n%s", err, out)
		})
	}
}
