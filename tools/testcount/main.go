// Command testcount runs the tests of packages, then with -fuzz each of their fuzz targets for a
// short while, and prints a summary at the end:
//
//	testcount [-fuzz TIME] [go test flags, as -name=value] PACKAGES [-- [flags] PACKAGES]...
//
// Each "--" begins a further run of go test, with its own flags.
// It prints a line per package as it ends, the output of what fails in full, the
// tests that were skipped with their reasons, the packages and tests that took longest, and
// on the last line the count, "N passed, N failed, N skipped", in which subtests count like
// tests and a fuzz target only if it fails. A step that cannot run, such as
// fuzzing when the packages cannot be listed, counts as one failure with its name. The exit status is 0 only if something
// passed and nothing failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// run tests and fuzzes, and reports whether all is well.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	var fuzzTime time.Duration
	if len(args) >= 2 && args[0] == "-fuzz" {
		d, err := time.ParseDuration(args[1])
		if err != nil || d <= 0 {
			return false, fmt.Errorf("-fuzz %q: want a time such as 2s", args[1])
		}
		fuzzTime, args = d, args[2:]
	}
	if len(args) == 0 {
		return false, errors.New("no packages: want the flags of go test and packages")
	}
	t := newTally(out)
	var packages []string
	for _, one := range runsOf(args) {
		if err := test(ctx, t, one); err != nil {
			t.fail("go test", err.Error()+"\n")
		}
		packages = append(packages, packagesOf(one)...)
	}
	if fuzzTime > 0 {
		if err := fuzzAll(ctx, t, packages, fuzzTime); err != nil {
			t.fail("fuzzing", err.Error()+"\n")
		}
	}
	return t.finish(), nil
}

// runsOf splits the arguments at each "--" into those of single runs of go test.
func runsOf(args []string) [][]string {
	var runs [][]string
	for {
		end := slices.Index(args, "--")
		if end < 0 {
			return append(runs, args)
		}
		runs, args = append(runs, args[:end]), args[end+1:]
	}
}

// test runs go test and feeds its events to the tally.
func test(ctx context.Context, t *tally, args []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failedBefore := t.failed
	if err := t.read(stdout); err != nil {
		return fmt.Errorf("read the events of go test: %w", err)
	}
	if err := cmd.Wait(); err != nil && t.failed == failedBefore {
		t.fail("go test", err.Error()+"\n")
	}
	return nil
}

// packagesOf are the arguments after the last flag.
func packagesOf(args []string) []string {
	first := 0
	for i, a := range args {
		if strings.HasPrefix(a, "-") {
			first = i + 1
		}
	}
	return args[first:]
}
