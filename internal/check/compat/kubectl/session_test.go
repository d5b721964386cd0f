package kubectl

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

var (
	update = flag.Bool("update", false, "write what kubectl says now into the sessions")
	other  = flag.String("kubectl", "", "play the sessions with this kubectl, too")
	server = flag.String("server", "", "play the sessions at the kube-apiserver with this address, not at the program")
)

// patience limits the wait for an expected event.
const patience = 30 * time.Second

// TestSessions plays every session with today's kubectl. Without -update and -server, it also plays all sessions with
// -kubectl's binary, and two through a lens. With FULL, it plays all through a lens, and all with kubectl 1.26, too.
func TestSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.True(t, err == nil && len(files) != 0, "no sessions: %v", err)
	// Build before any session: a compiler would take processor time from running sessions.
	require.NoError(t, program.Build())
	full := os.Getenv("FULL") != ""
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		play := func(how, binary string, lens bool) {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				playFile(t, file, binary, *server, lens)
			})
		}
		play("", "", false)
		if *update || *server != "" {
			continue
		}
		if full {
			play(" with an old kubectl", program.BuildOf(t, "../oldkubectl", "."), false)
		}
		if full || slices.Contains([]string{"write", "watch"}, name) {
			play(" through the lens", "", true)
		}
		if *other != "" {
			play(" with "+*other, *other, false)
		}
	}
}

// playFile plays the session in file and compares or, with -update, writes the outputs. binary is the kubectl; "" means
// the one built from its module. server is the address of a kube-apiserver; "" means the program. With lens, kubectl
// sends its requests to a second program, which forwards them.
func playFile(t *testing.T, file, binary, server string, lens bool) {
	archive := require.Value(txtar.ParseFile(file))(t)
	written := parseScript(string(archive.Comment))
	s := &session{t: t, binary: binary, server: server, lens: lens, dir: t.TempDir(), watches: map[string]*watch{}}
	for _, f := range archive.Files {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, f.Name), f.Data, 0o600))
	}
	old := binary != "" && !knowsOpenAPIv3(t, binary)
	for i, b := range written.blocks {
		command, ok := b.command, b.command != ""
		if old && ok {
			command, ok = spoken(b.command)
		}
		if !ok {
			continue
		}
		said, err := s.play(command)
		require.NoError(t, err, "$ %s\n", b.command)
		if *update {
			written.blocks[i].output = said
			continue
		}
		wanted := b.output
		if binary != "" {
			said, wanted = dialect(said), dialect(wanted)
		}
		if server != "" {
			said, wanted = alike(said), alike(wanted)
		}
		if said != wanted {
			t.Errorf("$ %s\nif this is meant: go test ./kubectl -run TestSessions -update\n-written +said\n%s",
				b.command, cmp.Diff(strings.Split(wanted, "\n"), strings.Split(said, "\n")))
		}
	}
	if *update {
		archive.Comment = []byte(written.String())
		require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
	}
}

// session is one terminal, with the program that its commands use.
type session struct {
	t       *testing.T
	binary  string // the kubectl's path; "": package program builds one
	server  string // the address of a kube-apiserver; "": viz starts the program
	lens    bool   // whether a lens is between kubectl and the program
	dir     string // working folder, with the files of the session
	kubectl *program.Kubectl
	watches map[string]*watch
	values  []string // "$NAME", value, ...
}

// watch is a kubectl that runs until the session stops it.
type watch struct {
	*program.Process
	read int // lines that until has returned
}

// play plays one command and returns its output, normalised.
//
//	viz FLAGS                    start the program
//	[EDIT=old/new] kubectl ARGS  run to the end; with "| head N", keep N lines of stdout
//	set NAME [kubectl ARGS]      from now on, $NAME in commands and files is the output or, without kubectl, the time
//	watch W kubectl ARGS         start, and wait until the server has accepted a watch
//	until W TEXT                 wait for a line with TEXT; return W's output up to it
//	stop W                       end W; return the rest of W's output
func (s *session) play(command string) (string, error) {
	words, err := splitCommand(s.expand(command))
	if err != nil {
		return "", err
	}
	switch {
	case words[0] == "set" && len(words) > 1:
		return "", s.set(words[1], words[2:])
	case words[0] == "viz":
		v := &program.Viz{URL: s.server}
		if v.URL == "" {
			v = program.StartViz(s.t, words[1:]...)
		}
		if s.lens {
			v = program.StartViz(s.t, "-flight=off", "-server", v.URL, "-server-writes")
		}
		s.kubectl = program.KubectlFor(s.t, v)
		if s.binary != "" {
			s.kubectl.Binary = s.binary
		}
		return "", nil
	case words[0] == "watch" && len(words) > 3:
		return "", s.watch(words[1], words[3:])
	case words[0] == "until" && len(words) == 3:
		return s.until(words[1], words[2])
	case words[0] == "stop" && len(words) == 2:
		return s.stop(words[1])
	case words[0] == "kubectl":
		return s.run("", words[1:])
	case strings.HasPrefix(words[0], editVariable+"=") && words[1] == "kubectl":
		return s.run(words[0], words[2:])
	}
	return "", errors.New("no such command")
}

func (s *session) expand(text string) string { return strings.NewReplacer(s.values...).Replace(text) }

// set gives $NAME a value: the output of a kubectl command or, without one, the present time. It also replaces $NAME
// by the value in the session's files; play replaces it in later commands.
func (s *session) set(name string, kubectl []string) error {
	value := time.Now().UTC().Format(time.RFC3339)
	if len(kubectl) > 1 {
		value = s.kubectl.Run(s.t, kubectl[1:]...)
	}
	s.values = append(s.values, "$"+name, value)
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		path := filepath.Join(s.dir, file.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(s.expand(string(text))), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run runs kubectl to its end. It returns the normalised output, with "! " before lines of stderr, and a failed status.
func (s *session) run(variable string, args []string) (string, error) {
	lines := -1
	if n := len(args); n > 3 && args[n-3] == "|" && args[n-2] == "head" {
		var err error
		if lines, err = strconv.Atoi(args[n-1]); err != nil {
			return "", err
		}
		args = args[:n-3]
	}
	cmd, err := s.command(variable, args)
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	said := strings.Split(normalise(stdout.String()), "\n")
	if lines >= 0 {
		said = said[:min(lines, len(said))]
	}
	if problems := normalise(stderr.String()); problems != "" {
		for line := range strings.SplitSeq(problems, "\n") {
			if line != "" {
				said = append(said, "! "+line)
			}
		}
	}
	if exit != nil {
		said = append(said, exit.Error())
	}
	return strings.Trim(strings.Join(said, "\n"), "\n"), nil
}

func (s *session) command(variable string, args []string) (*exec.Cmd, error) {
	cmd := s.kubectl.Command(args...)
	cmd.Dir = s.dir
	if variable == "" {
		return cmd, nil
	}
	editor, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, variable, "KUBE_EDITOR="+editor)
	return cmd, nil
}

// watch starts a kubectl that watches. Then it waits for the response's status, which kubectl logs with -v=6: from then
// on, kubectl cannot miss an event.
func (s *session) watch(name string, args []string) error {
	cmd, err := s.command("", append([]string{"-v=6"}, args...))
	if err != nil {
		return err
	}
	w := &watch{Process: program.Start(s.t, cmd)}
	s.watches[name] = w
	program.Eventually(s.t, patience, func() (bool, string) {
		for _, line := range w.Stderr.Lines() {
			if strings.Contains(line, "watch=true") && strings.Contains(line, "200 OK") {
				return true, ""
			}
		}
		return false, "no answer to a watch in:\n" + w.Stderr.String()
	})
	return nil
}

// until waits for a line with text. It returns the lines up to this line that no earlier call has returned.
func (s *session) until(name, text string) (string, error) {
	w := s.watches[name]
	if w == nil {
		return "", fmt.Errorf("nothing runs as %q", name)
	}
	said := ""
	program.Eventually(s.t, patience, func() (bool, string) {
		lines := w.Stdout.Lines()
		for i := w.read; i < len(lines); i++ {
			if strings.Contains(normalise(lines[i]), text) {
				said = normalise(strings.Join(lines[w.read:i+1], "\n"))
				w.read = i + 1
				return true, ""
			}
		}
		return false, fmt.Sprintf("no %q in:\n%s", text, w.Stdout.String())
	})
	return said, nil
}

// stop ends the kubectl of a watch, and returns the output that no call of until has returned.
func (s *session) stop(name string) (string, error) {
	w := s.watches[name]
	if w == nil {
		return "", fmt.Errorf("nothing runs as %q", name)
	}
	delete(s.watches, name)
	if err := w.Cmd.Process.Kill(); err != nil {
		return "", err
	}
	<-w.Done
	return normalise(strings.Join(w.Stdout.Lines()[w.read:], "\n")), nil
}

// script is the part of a txtar file before the first file in it: prose, and commands with their outputs.
//
//	# Prose.
//
//	$ kubectl get pods
//	NAME   READY   STATUS    RESTARTS   AGE
//	a      0/1     Pending   0          Ns
//
// An output ends before the next line that begins with "$ " or "# "; empty lines at its end do not count. An output
// contains stdout, then stderr with "! " before each line, and then the exit status if it is not 0.
type script struct {
	blocks []block
}

// block is prose, or a command with its output.
type block struct {
	prose   string // includes "# " and empty lines
	command string // excludes "$ "; "" for prose
	output  string // excludes empty lines at its end
}

func parseScript(text string) *script {
	s := &script{}
	for line := range strings.Lines(text) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		last := len(s.blocks) - 1
		switch {
		case isCommand:
			s.blocks = append(s.blocks, block{command: strings.TrimSpace(command)})
		case strings.HasPrefix(line, "# ") && (last < 0 || s.blocks[last].command != ""), last < 0:
			s.blocks = append(s.blocks, block{prose: line})
		case s.blocks[last].command == "":
			s.blocks[last].prose += line
		default:
			s.blocks[last].output += line
		}
	}
	for i := range s.blocks {
		s.blocks[i].prose = strings.TrimSpace(s.blocks[i].prose)
		s.blocks[i].output = strings.TrimRight(s.blocks[i].output, "\n")
	}
	return s
}

func (s *script) String() string {
	var text strings.Builder
	for i, b := range s.blocks {
		switch {
		case b.command == "":
			text.WriteString(b.prose + "\n")
		case b.output == "":
			text.WriteString("$ " + b.command + "\n")
		default:
			text.WriteString("$ " + b.command + "\n" + b.output + "\n")
		}
		quiet := b.command != "" && b.output == "" && i+1 < len(s.blocks) && s.blocks[i+1].command != ""
		if !quiet {
			text.WriteString("\n")
		}
	}
	return text.String()
}

// splitCommand splits a command into words at spaces outside single quotes.
func splitCommand(command string) ([]string, error) {
	var words []string
	word, begun, quoted := "", false, false
	for _, r := range command {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				words = append(words, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(r), true
		}
	}
	if quoted {
		return nil, errors.New("a quote is not closed: " + command)
	}
	if begun {
		words = append(words, word)
	}
	return words, nil
}
