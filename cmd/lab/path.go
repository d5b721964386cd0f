package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"listwatch/internal/play/lab"
)

// path runs "lab path" with args. root is the checkout, or the working copy, in which the command was called.
func path(ctx context.Context, root string, args []string, out io.Writer) error {
	if len(args) == 0 || len(args) > 2 {
		return errUsage
	}
	if args[0] == "start" {
		dir := filepath.Join(root, ".lab", "path")
		if len(args) == 2 {
			dir = args[1]
		}
		fmt.Fprintf(out, "The working copy is %s. Work there:\n\n  cd %[1]s\n"+
			"  go run ./cmd/viz          # runs, wrong in thirteen ways\n  go run ./cmd/lab path next\n", dir)
		return lab.StartPath(root, dir)
	}
	if !lab.IsPath(root) {
		return errors.New("this is no working copy of the path: go run ./cmd/lab path start")
	}
	steps := lab.Steps()
	if len(args) == 2 {
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 || n > len(steps) {
			return fmt.Errorf("%q: want a step from 1 to %d", args[1], len(steps))
		}
		steps = steps[n-1 : n]
	}
	switch one := len(args) == 2; {
	case args[0] == "status" && !one:
		return status(root, steps, out)
	case args[0] == "next":
		if i := slices.IndexFunc(steps, func(l lab.Lab) bool { return one || l.State(root) == lab.Open }); i >= 0 {
			return next(ctx, root, steps[i], out)
		}
		fmt.Fprintln(out, "No step is open. go run ./cmd/lab path check checks all; go run ./cmd/viz runs it.")
		return nil
	case args[0] == "check":
		return checkSteps(ctx, root, steps, out)
	case args[0] == "show" && one:
		theirs, ours, err := steps[0].Both(root)
		if err == nil {
			fmt.Fprintf(out, "// Yours, in %s:\n\n%s\n\n// Ours:\n\n%s\n", steps[0].Chapter, theirs.Src, ours.Src)
		}
		return err
	case args[0] == "pass" && one:
		return steps[0].Pass(root)
	}
	return errUsage
}

func status(root string, steps []lab.Lab, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, l := range steps {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", l.Step, l.Chapter, l.State(root), l.Title)
	}
	return table.Flush()
}

// next prints what to build, plays the step's script, and prints what failed and which commands to run then.
func next(ctx context.Context, root string, l lab.Lab, out io.Writer) error {
	fmt.Fprintf(out, "Step %d. %s\n", l.Step, l.Describe())
	problem, broken, err := l.Drive(ctx, root, out)
	if err != nil {
		return err
	}
	if problem == "" {
		problem = "nothing is wrong any more"
	}
	fmt.Fprintf(out, "\n%s\n", problem)
	if len(broken) > 0 {
		fmt.Fprintf(out, "Promises that are broken now: %s\n", strings.Trim(fmt.Sprint(broken), "[]"))
	}
	fmt.Fprintf(out, "\nTest      %s\nHints     go run ./cmd/lab hint %s\nThen      go run ./cmd/lab path check %d\n",
		l.TestCommand(), l.ID, l.Step)
	return nil
}

func checkSteps(ctx context.Context, root string, steps []lab.Lab, out io.Writer) (failed error) {
	for _, l := range steps {
		verdict, err := lab.CheckStep(ctx, root, l, out)
		if err != nil {
			return err
		}
		if !verdict.Solved {
			failed = errNotSolved
		}
		fmt.Fprintf(out, "%d %s: %s\n", l.Step, l.Chapter, strings.Join(verdict.Says, "\n"))
	}
	return failed
}
