//go:build cgo

package validation_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// record is what came of one engine.
type record struct {
	Task    string           `json:"task"`
	Family  string           `json:"family"`
	Seed    int              `json:"seed"`
	Fault   string           `json:"fault,omitempty"` // empty: honest
	Runtime string           `json:"runtime"`
	Variant string           `json:"variant"`
	Verdict evidence.Verdict `json:"verdict,omitempty"`
	Reasons []string         `json:"reasons,omitempty"` // CODE/FIGURE
	First   string           `json:"first,omitempty"`   // message of the first reason
	// Effects are figures, larger where an engine is further off: of the errors, of the cases with
	// another answer, and of the consistency checks.
	Effects map[string]evidence.Figure `json:"effects,omitempty"`
	Error   string                     `json:"error,omitempty"` // there was no verdict
	Program string                     `json:"program"`         // that verified it: see programID
}

func (r record) passed() bool { return r.Verdict == evidence.VerdictPass }

// note takes over what a verification found.
func (r *record) note(e verify.VerifiedEngine) {
	r.Verdict, r.Effects = e.Parity.Verdict, make(map[string]evidence.Figure)
	for _, reason := range e.Parity.Reasons {
		r.Reasons = append(r.Reasons, strings.TrimSuffix(reason.Code+"/"+reason.Figure, "/"))
		if r.First == "" {
			r.First = reason.Message
		}
	}
	for name, output := range e.Parity.Outputs {
		if output.DType == "bool" {
			continue // its limit is on the cases with another answer
		}
		r.Effects[name+" maxError"], r.Effects[name+" caseError"] = output.MaxError, output.CaseError
		r.Effects[name+" systematic"] = output.Systematic
		r.Effects[name+" non-finite"] = evidence.Figure(output.NewNaN + output.NewInf)
		r.Effects[name+" snrDb"] = -output.SpreadSNRdB
	}
	for _, check := range e.Parity.Checks.OfCases() {
		if check.Misses != nil {
			r.Effects[check.Output+" misses"] = *check.Misses
		}
	}
	for _, check := range e.Parity.Checks.Beyond() {
		name := "consistency " + string(check.Trial)
		r.Effects[name] = max(r.Effects[name], check.Value)
	}
}

// judged is a record of an engine, made for a task by a program.
type judged interface {
	taskName() string
	programName() string
}

func (r record) taskName() string    { return r.Task }
func (r record) programName() string { return r.Program }

// results are the records in a file of JSON lines. Tasks with records are not run again.
type results[R judged] struct {
	path    string
	program string
	records []R
	done    map[string]bool // tasks
}

// openResults reads the records of earlier runs of the same program. Records of another program stay in the
// file and do not count. The last line may be incomplete, and then it is dropped.
func openResults[R judged](path, program string) (*results[R], error) {
	r := &results[R]{path: path, program: program, done: make(map[string]bool)}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var one []R
		if json.Unmarshal(lines.Bytes(), &one) != nil {
			continue
		}
		for _, made := range one {
			if made.programName() != program {
				continue
			}
			r.done[made.taskName()] = true
			r.records = append(r.records, made)
		}
	}
	return r, lines.Err()
}

// add appends the records of a task, as one line.
func (r *results[R]) add(made []R) error {
	line, err := json.Marshal(made)
	if err != nil {
		return err
	}
	r.records = append(r.records, made...)
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\n", line)
	return errors.Join(err, f.Close())
}
