package kubectl

import (
	"errors"
	"strings"
)

// script is the part of a session's file before its first file: prose, commands, and what they print.
//
//	# Prose.
//
//	$ kubectl get pods
//	NAME   READY   STATUS    RESTARTS   AGE
//	a      0/1     Pending   0          Ns
//
// An output ends before the next line that begins with "$ " or "# "; empty lines at its end do not count. In an output
// what went to stderr follows what went to stdout, with "! " before each line, and an exit status that is not 0 follows
// both.
type script struct {
	blocks []block
}

// block is prose, or a command with its output.
type block struct {
	prose   string // with "# "; empty lines included
	command string // without "$ "; "": this is prose
	output  string // without empty lines at its end
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

// splitCommand splits a command into words, at spaces that are not between single quotes.
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
