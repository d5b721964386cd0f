// Command lab runs the labs: exercises on working copies of this checkout. It works offline.
//
//	go run ./cmd/lab                     lists the labs
//	go run ./cmd/lab start ID [DIR]      writes a working copy into DIR, by default .lab/ID
//	go run ./cmd/lab hint ID             prints the earlier hints and one more
//	go run ./cmd/lab check ID [DIR]      reports whether the lab is solved and, if not, what is wrong
//	go run ./cmd/lab solution ID         prints the repair as a diff, or the answer of a "predict it" lab
//	go run ./cmd/lab path start [DIR]    writes the path's working copy, by default .lab/path; the rest run there
//	go run ./cmd/lab path status         prints a row for each step
//	go run ./cmd/lab path next [N]       prints what to build in step N or the next open one, and what fails
//	go run ./cmd/lab path check [N]      reports whether step N holds, or whether all steps do
//	go run ./cmd/lab path show N         prints your code and then ours
//	go run ./cmd/lab path pass N         replaces your code with ours
//
// Exit status: 0 if all went well, which for check means that the lab is solved; 1 if not; 2 for a wrong command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"text/tabwriter"

	"listwatch/internal/play/lab"
)

var (
	errUsage = errors.New("usage: go run ./cmd/lab [start ID [DIR] | hint ID | check ID [DIR] | " +
		"solution ID | path …]" +
		"\n       go run ./cmd/lab path start [DIR] | status | next [N] | check [N] | show N | pass N")
	errNotSolved = errors.New("") // run has already printed the verdict
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, ".", os.Args[1:], os.Stdout)
	stop()
	if err == nil {
		return
	}
	if err.Error() != "" {
		fmt.Fprintln(os.Stderr, err)
	}
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// run is main without its globals; from is the folder in which the command was called.
func run(ctx context.Context, from string, args []string, out io.Writer) error {
	root, err := checkout(from)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		return list(out)
	case strings.HasPrefix(args[len(args)-1], "-"): // an option such as -h is not a folder
		return errUsage
	case args[0] == "path":
		return path(ctx, root, args[1:], out)
	}
	if len(args) < 2 || len(args) > 3 || len(args) == 3 && args[0] != "start" && args[0] != "check" {
		return errUsage
	}
	chosen, err := lab.ByID(args[1])
	if err != nil {
		return err
	}
	dir := filepath.Join(root, ".lab", chosen.ID)
	if here, origin, ok := lab.In(root); ok {
		if here.ID == chosen.ID {
			dir = root // the command was called in the working copy itself
		}
		root = origin
	}
	if lab.IsPath(root) {
		dir = filepath.Join(root, lab.PathFolder, chosen.ID) // hint keeps its count in this folder
	}
	if len(args) == 3 {
		dir = args[2]
	}
	switch args[0] {
	case "start":
		return start(root, dir, chosen, out)
	case "hint":
		return hint(dir, chosen, out)
	case "check":
		return check(ctx, dir, chosen, out)
	case "solution":
		diff, err := lab.Solution(root, chosen.ID)
		fmt.Fprint(out, diff)
		return err
	}
	return errUsage
}

// checkout returns the root of the checkout to which from, a folder, belongs.
func checkout(from string) (string, error) {
	info, _ := debug.ReadBuildInfo() // has the module's path, which differs in a fork
	dir, err := filepath.Abs(from)
	for ; err == nil; dir = filepath.Dir(dir) {
		text, readErr := os.ReadFile(filepath.Join(dir, "go.mod"))
		if readErr == nil && strings.HasPrefix(string(text), "module "+info.Main.Path+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("lab: run it in a checkout of listwatch: it works on copies of the sources")
		}
	}
	return "", err
}

func list(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, each := range lab.All() {
		fmt.Fprintf(table, "%s\t%s\t%d min\t%s\t%s\t%s\n",
			each.Chapter, strings.Repeat("*", each.Stars), each.Minutes, each.Kind, each.ID, each.Title)
	}
	fmt.Fprintf(table, "\nBegin with: go run ./cmd/lab start %s\n", lab.All()[0].ID)
	return table.Flush()
}

func start(root, dir string, chosen lab.Lab, out io.Writer) error {
	if err := lab.Start(root, dir, chosen); err != nil {
		return err
	}
	fmt.Fprint(out, chosen.Describe())
	show := "  go run ./cmd/viz          # shows it on the stage\n"
	switch {
	case chosen.Kind == lab.Predict:
		show = "" // the recording shows the fault, and the command for it is already printed
	case strings.HasPrefix(chosen.Look, "Nothing on the stage"):
		show = "  go run ./cmd/viz          # runs it\n"
	}
	fmt.Fprintf(out,
		"\nThe working copy is %s. Work there:\n\n  cd %s\n%s  go run ./cmd/lab check %s\n  go run ./cmd/lab hint %s\n",
		dir, dir, show, chosen.ID, chosen.ID)
	return nil
}

// hint prints the hints given so far and the next one. It keeps their number in a file of the working copy.
func hint(dir string, chosen lab.Lab, out io.Writer) error {
	counter := filepath.Join(dir, ".hints")
	text, _ := os.ReadFile(counter)                               // fails if no hint was given yet
	given, _ := strconv.Atoi(string(text))                        // 0 if the text is not a number
	given = min(given+1, len(chosen.Hints))                       // after the last hint, the number no longer grows
	_ = os.WriteFile(counter, []byte(strconv.Itoa(given)), 0o644) // fails without a working copy
	for i, each := range chosen.Hints[:given] {
		fmt.Fprintf(out, "%d of %d: %s\n", i+1, len(chosen.Hints), each)
	}
	return nil
}

func check(ctx context.Context, dir string, chosen lab.Lab, out io.Writer) error {
	if here, _, ok := lab.In(dir); !ok || here.ID != chosen.ID {
		return fmt.Errorf("%s is not a working copy of this lab: go run ./cmd/lab start %s", dir, chosen.ID)
	}
	verdict, err := lab.Check(ctx, dir, chosen, out)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.Join(verdict.Says, "\n"))
	if !verdict.Solved {
		return errNotSolved
	}
	fmt.Fprintf(out, "Solved. What holds now: %s\n", chosen.Goal)
	return nil
}
