package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of go test -json. Source: go doc test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// testID names a test; an empty name is the package itself.
type testID struct{ pkg, name string }

func (id testID) String() string {
	if id.name == "" {
		return id.pkg
	}
	return id.pkg + " " + id.name
}

// tally counts events and keeps the output of tests that have not ended.
type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	running                 map[testID]*strings.Builder
	failedIn                map[string]int // tests by package
	failures                []string       // names, in order of failing
	skips                   []string       // names with reasons
	took                    []timing       // tests that took time
	packages                []timing       // packages that took time
}

// timing is what a test took, without that of its parallel subtests.
type timing struct {
	id      testID
	seconds float64
}

// slowest is how many of the slowest packages and tests are listed.
const slowest = 10

func newTally(out io.Writer) *tally {
	return &tally{out: out, running: map[testID]*strings.Builder{}, failedIn: map[string]int{}}
}

// read counts events to the end of r. A line that is no event is printed.
func (t *tally) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case json.Unmarshal(line, &e) != nil:
			fmt.Fprintf(t.out, "%s\n", bytes.TrimRight(line, "\n"))
		default:
			t.add(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) add(e event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "start", "run":
		t.running[id] = &strings.Builder{}
	case "output":
		if t.running[id] == nil {
			t.running[id] = &strings.Builder{}
		}
		t.running[id].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
		} else {
			t.endTest(id, e.Action)
			t.time(id, e.Elapsed)
		}
	}
}

func (t *tally) endTest(id testID, action string) {
	output := t.take(id)
	switch action {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
		t.skips = append(t.skips, id.String()+": "+reason(output))
	default:
		t.failedIn[id.pkg]++
		t.fail(id.String(), output)
	}
}

// endPackage blames what a failed package left running, as a panic or a timeout
// does, and else, where no test of it failed, the package itself.
func (t *tally) endPackage(e event) {
	id := testID{pkg: e.Package}
	output := t.take(id)
	if e.Action == "fail" {
		for _, left := range t.left(e.Package) {
			t.endTest(left, "fail")
		}
		if t.failedIn[e.Package] == 0 {
			t.fail(e.Package, output)
		}
	}
	if e.Elapsed > 0 {
		t.packages = append(t.packages, timing{id, e.Elapsed})
	}
	word := map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "none"}[e.Action]
	fmt.Fprintf(t.out, "%s %s %.1fs\n", word, e.Package, e.Elapsed)
}

// left are the tests of a package that began and did not end, sorted.
func (t *tally) left(pkg string) []testID {
	byName := func(a, b testID) int { return strings.Compare(a.name, b.name) }
	all := slices.SortedFunc(maps.Keys(t.running), byName)
	return slices.DeleteFunc(all, func(id testID) bool { return id.pkg != pkg })
}

func (t *tally) time(id testID, seconds float64) {
	if seconds > 0 {
		t.took = append(t.took, timing{id, seconds})
	}
}

// longest lists the slowest, with their times.
func longest(took []timing) []string {
	slices.SortStableFunc(took, func(a, b timing) int { return cmp.Compare(b.seconds, a.seconds) })
	var lines []string
	for _, s := range took[:min(slowest, len(took))] {
		lines = append(lines, fmt.Sprintf("%6.1fs %s", s.seconds, s.id))
	}
	return lines
}

// fail counts a failure and prints its output.
func (t *tally) fail(name, output string) {
	t.failed++
	t.failures = append(t.failures, name)
	fmt.Fprintf(t.out, "FAIL %s\n%s", name, output)
}

func (t *tally) take(id testID) string {
	b := t.running[id]
	delete(t.running, id)
	if b == nil {
		return ""
	}
	return b.String()
}

// finish prints the summary and reports whether something passed and nothing failed.
func (t *tally) finish() bool {
	t.list("Skipped:", t.skips)
	t.list("Slowest packages:", longest(t.packages))
	t.list("Slowest tests:", longest(t.took))
	t.list("Failed:", t.failures)
	if t.passed+t.failed == 0 {
		fmt.Fprintln(t.out, "\nNo test ran, which is a failure too.")
	}
	fmt.Fprintf(t.out, "\n%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	return t.passed > 0 && t.failed == 0
}

func (t *tally) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(t.out, "\n%s\n", title)
	for _, l := range lines {
		fmt.Fprintln(t.out, "  "+l)
	}
}

// reason is what a test said to Skip: its output without the frame of go test.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}
