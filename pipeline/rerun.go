package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// A rerun is what the reference model computed of drawn cases while an engine was verified. Engines are judged by it, too: golden outputs
// may differ from it by what another machine computes, and within that a builder could hide another model.
type rerun struct {
	dir    string // with the folders golden and cases, of files like those of the cases
	picked []someRows
}

// keep writes what the reference model computed, and the inputs, below a folder.
func (v verification) keep(g goldenComparison, dir string) (rerun, error) {
	r := rerun{dir: dir, picked: rowsIn(v.cases.set.Shards, g.sample)}
	at := 0
	for _, of := range r.picked {
		if err := of.write(v.cases.dir, filepath.Join(dir, "cases")); err != nil {
			return r, err
		}
		var computed []rowsOf
		for range of.rows {
			file, ok := g.outcome.File(path.Join("outputs", referenceID, crossCheckFile(at)))
			if !ok {
				return r, registry.Errorf(registry.CodeInternal, "the reference model left no outputs of case %d", g.sample[at])
			}
			computed = append(computed, rowsOf{file.Path, 0, 1, 1})
			at++
		}
		if err := writeRows(filepath.Join(dir, "golden", filepath.FromSlash(of.shard.File)), computed); err != nil {
			return r, err
		}
	}
	return r, nil
}

// judge judges the outputs of an engine for these cases, which it left in a folder with those of all, by what the limits say of some cases.
// compared is a comparison of some cases. What too few cases cannot show is no failure.
func (r rerun) judge(ctx context.Context, v verification, c candidate, outputs string, compared parity.Run, whole map[string]tensor.Result) (string, error) {
	dir := filepath.Join(r.dir, c.id)
	defer os.RemoveAll(dir)
	for _, of := range r.picked {
		if err := of.write(outputs, dir); err != nil {
			return "", err
		}
	}
	compared.Engine = dir
	verdict, message, err := v.judgeSome(ctx, c, someOf(compared, r.dir, shardsOf(r.picked)), whole)
	if err != nil || verdict != registry.VerdictFail {
		return "", err
	}
	return fmt.Sprintf("against what the reference model computes here, for %s that were drawn: %s",
		registry.Count(countRows(r.picked), "case"), message), nil
}

func countRows(picked []someRows) (n int) {
	for _, of := range picked {
		n += len(of.rows)
	}
	return n
}

// someOf is a comparison of the cases in these shards, whose golden outputs and inputs are in the folders golden and cases below dir. Labels
// are of the whole set.
func someOf(compared parity.Run, dir string, shards []registry.Shard) parity.Run {
	compared.Golden, compared.Shards, compared.Labels = filepath.Join(dir, "golden"), shards, parity.Labels{}
	compared.Masks.Dir, compared.Masks.Shards = filepath.Join(dir, "cases"), shards
	return compared
}

// judgeSome compares outputs of some cases, and judges them by what the limits say of so few.
func (v verification) judgeSome(ctx context.Context, c candidate, compared parity.Run, whole map[string]tensor.Result) (registry.Verdict, string, error) {
	result, err := parity.Compare(ctx, compared)
	if errors.Is(err, tensor.ErrMismatch) {
		return registry.VerdictFail, registry.PlainText(err.Error()), nil
	}
	if err != nil {
		return registry.VerdictUndecided, "", err
	}
	judged := v.limits.JudgeSome(c.engine.Precision, validators.Measured{Outputs: result.Outputs, Whole: whole, Cases: result.Cases})
	var said []string
	for _, r := range judged.Reasons {
		said = append(said, registry.PlainText(r.Message))
	}
	return judged.Verdict, strings.Join(said, "; "), nil
}
