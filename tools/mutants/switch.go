package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// program is the tests of a package as one executable that contains many mutants. The variable MUTANT names the one
// that takes effect, so that a package is compiled and linked once and not once for each mutant. Child processes
// of a test have the same mutant if they get the test's variables.
type program struct {
	path string // of the executable of the first suite of the package; those of others have their number behind
	pkg  pkg
	skip string       // pattern of the tests that do not run
	last string       // pattern of those that run after all others, if these pass
	has  map[int]bool // by number of the mutant; the first is 1
}

// switchFile says which mutant takes effect. It is compiled into the package.
const switchFile = `package %s

import (
	"os"
	"strconv"
)

var mutantActive, _ = strconv.Atoi(os.Getenv("MUTANT"))

func mutantOn(number int) bool { return mutantActive == number }

func mutantDrop(number int, err error) error {
	if mutantOn(number) {
		return nil
	}
	return err
}
`

// assemble compiles the tests of a package with all mutants that compile together. The others, such as those of a
// value whose type is a bool of its own, are to be tried alone.
func assemble(ctx context.Context, p pkg, mutants []mutant, scratch string) (program, error) {
	out := program{path: filepath.Join(scratch, "program"), pkg: p, has: make(map[int]bool)}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return out, err
	}
	all := make([]int, len(mutants))
	for i := range all {
		all[i] = i + 1
	}
	fit, err := fitting(ctx, p, mutants, all, scratch)
	if err != nil {
		return out, err
	}
	for _, number := range fit {
		out.has[number] = true
	}
	overlay, err := writeOverlay(p, mutants, fit, scratch)
	if err != nil {
		return out, err
	}
	for i, s := range p.suites() {
		text, err := goCommand(ctx, p, "test", "-c", "-vet=off", "-overlay", overlay, "-o", out.executable(i), s.importPath)
		if err != nil {
			return out, fmt.Errorf("compile the tests of %s: %w\n%s", p.name(), err, text)
		}
	}
	return out, nil
}

func (p program) executable(suite int) string {
	if suite == 0 {
		return p.path
	}
	return fmt.Sprint(p.path, suite)
}

// fitting lists the numbers of those that compile together: it halves what does not.
func fitting(ctx context.Context, p pkg, mutants []mutant, numbers []int, scratch string) ([]int, error) {
	overlay, err := writeOverlay(p, mutants, numbers, scratch)
	if err != nil {
		return nil, err
	}
	if _, err := goCommand(ctx, p, "build", "-overlay", overlay, p.ImportPath); err == nil || len(numbers) == 0 {
		return numbers, err
	}
	if ctx.Err() != nil || len(numbers) == 1 {
		return nil, ctx.Err()
	}
	half := len(numbers) / 2
	left, err := fitting(ctx, p, mutants, numbers[:half], scratch)
	if err != nil {
		return nil, err
	}
	right, err := fitting(ctx, p, mutants, numbers[half:], scratch)
	return append(slices.Clone(left), right...), err
}

func goCommand(ctx context.Context, p pkg, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.Module.Dir
	return cmd.CombinedOutput()
}

// writeOverlay writes the files of a package with switches for the mutants of the given numbers, and a file for go's
// option -overlay that names them.
func writeOverlay(p pkg, mutants []mutant, numbers []int, scratch string) (string, error) {
	byFile := make(map[string][]numbered)
	for _, n := range numbers {
		m := mutants[n-1]
		byFile[filepath.Base(m.file)] = append(byFile[filepath.Base(m.file)], numbered{m, n})
	}
	replace := make(map[string]string)
	var failed error
	write := func(name, text string) {
		replace[filepath.Join(p.Dir, name)] = filepath.Join(scratch, name)
		failed = errors.Join(failed, os.WriteFile(filepath.Join(scratch, name), []byte(text), 0o600))
	}
	for name, found := range byFile {
		write(name, switched(found))
	}
	write("mutants_switch.go", fmt.Sprintf(switchFile, p.Name))
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	overlay := filepath.Join(scratch, "overlay.json")
	return overlay, errors.Join(failed, err, os.WriteFile(overlay, text, 0o600))
}

// numbered is a mutant with the number that switches it on.
type numbered struct {
	mutant
	number int
}

// switched gives a file with a switch for each of its mutants.
func switched(found []numbered) string {
	slices.SortStableFunc(found, func(a, b numbered) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	return render(found[0].data, 0, len(found[0].data), found)
}

// render writes a part of a file. The mutants in it are in the order of their places, outer ones first.
func render(data []byte, from, to int, found []numbered) string {
	var b strings.Builder
	for len(found) > 0 {
		outer, inner := found[0], 1
		for inner < len(found) && found[inner].start < outer.end {
			inner++
		}
		b.Write(data[from:outer.start])
		b.WriteString(outer.choice(render(data, outer.start, outer.end, found[1:inner])))
		from, found = outer.end, found[inner:]
	}
	b.Write(data[from:to])
	return b.String()
}

// choice is an expression that is the mutant if that is switched on, and otherwise the original, whose own parts
// have their switches.
func (n numbered) choice(original string) string {
	if n.drops {
		return fmt.Sprintf("mutantDrop(%d, %s)", n.number, original)
	}
	return fmt.Sprintf("(mutantOn(%[1]d) && (%[2]s) || !mutantOn(%[1]d) && (%[3]s))", n.number, n.to, original)
}

// run runs the tests with a mutant, or with 0 as they are, until some fail. The limit is for the tests of one package; what
// hangs longer, such as a child process that holds the output open, is ended.
func (p program) run(ctx context.Context, number int, limit time.Duration) (out []byte, err error) {
	for _, chosen := range p.rounds("-test.") {
		for i, s := range p.pkg.suites() {
			if out, err = p.runSuite(ctx, p.executable(i), s.dir, number, limit, chosen); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// rounds are the flags that choose tests, quick ones first; prefix stands before the name of each flag.
func (p program) rounds(prefix string) [][]string {
	skip := func(patterns ...string) string {
		return prefix + "skip=" + strings.Join(slices.DeleteFunc(patterns, func(s string) bool { return s == "" }), "|")
	}
	first := []string{prefix + "failfast", skip(p.skip, p.last)}
	if p.last == "" {
		return [][]string{first}
	}
	return [][]string{first, {prefix + "failfast", skip(p.skip), prefix + "run=" + p.last}}
}

func (p program) runSuite(ctx context.Context, executable, dir string, number int, limit time.Duration, chosen []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, executable, append(chosen, "-test.timeout="+limit.String())...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=1", fmt.Sprint("MUTANT=", number)) // or a killed mutant leaves a file in testdata
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}
