// Package scoring runs the program of a user that gives a score to each case: the metric `program` of
// limits.accuracy. The program is a Python file that is run as
//
//	python3 PROGRAM CASES OUTPUTS SCORES
//
// CASES and OUTPUTS are folders of safetensors files, 00000.safetensors and so on, as many in both. They
// have the same cases as rows: the inputs and labels there, the outputs here. SCORES is the file that it
// writes: a number in each line, one line for each case, in the order of files and rows.
package scoring

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/registry"
)

// DefaultTime is how long a program may take, where nothing else is said.
const DefaultTime = 10 * time.Minute

const (
	maxBytes  = 64 << 20 // of the file of scores, and of any other that the program writes
	maxMemory = 8 << 30
	lineBytes = 64 // of a score
)

// Any stands for every program where one can be allowed.
const Any = "any"

// Python runs programs by a Python of this machine.
type Python struct {
	Named string        // by path or by name; empty for the first that works
	Time  time.Duration // 0 is DefaultTime
	// Allowed is the digest of a program that may run in a weaker sandbox than that of namespaces, or
	// "any". Empty allows none.
	Allowed string
}

// Score returns what the program gives to each case. Errors: CodeUnavailable where this machine cannot run
// it: it has no Python, or no sandbox without network and files. CodeInvalid for a program that fails, takes
// too long or gives anything but one number for each case.
func (p Python) Score(ctx context.Context, job toolchain.ScoreJob) ([]float64, error) {
	path, reads, err := install.FindPython(ctx, p.Named)
	if err != nil {
		return nil, err
	}
	var inputs []toolchain.Input
	for role, files := range map[string][]toolchain.Input{"cases": job.Cases, "outputs": job.Outputs} {
		for i, in := range files {
			in.Role, in.Name = role, fmt.Sprintf("%05d.safetensors", i)
			inputs = append(inputs, in)
		}
	}
	name := job.Program.Name
	script := job.Program
	script.Role = "program"
	inputs = append(inputs, script)
	args := func(in, result string) []string {
		return []string{"-I", "-B", filepath.Join(in, "program", name), filepath.Join(in, "cases"), filepath.Join(in, "outputs"), result}
	}
	limit := cmp.Or(p.Time, DefaultTime)
	budget := driverproc.Budget{Wall: limit, CPU: 4 * limit, MemoryBytes: maxMemory, Processes: 256, Least: toolchain.SandboxNamespaces}
	if p.Allowed == Any || p.Allowed == string(job.Program.Digest) {
		budget.Least = ""
	}
	data, err := driverproc.Script(ctx, driverproc.Program{Name: name, Path: path, Reads: reads}, args, budget, inputs, maxBytes)
	if registry.HasCode(err, registry.CodeUnavailable) && budget.Least != "" {
		err = registry.WithHint(err, "verify on a machine with user namespaces, or read the program and run verify --allow-program %s", job.Program.Digest)
	}
	if err != nil {
		return nil, err
	}
	return parse(name, data, job.Count)
}

// parse reads one number of each line.
func parse(name string, data []byte, count int) ([]float64, error) {
	fail := func(format string, args ...any) error {
		return registry.Errorf(registry.CodeInvalid, "%s: %s", name, fmt.Sprintf(format, args...))
	}
	text := bytes.TrimSuffix(data, []byte("\n"))
	lines := bytes.Count(text, []byte("\n")) + 1
	if len(text) == 0 {
		lines = 0
	}
	if lines != count {
		return nil, fail("it wrote %s for %s: want one score in each line", registry.Count(lines, "line"), registry.Count(count, "case"))
	}
	scores := make([]float64, 0, count)
	for line := range strings.SplitSeq(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		v, err := strconv.ParseFloat(trimmed, 64)
		if err != nil || len(trimmed) > lineBytes || v-v != 0 {
			return nil, fail("line %d is %.40q: want a finite number", len(scores)+1, trimmed)
		}
		scores = append(scores, v)
	}
	return scores, nil
}
