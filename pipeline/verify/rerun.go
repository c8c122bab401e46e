package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// A rerun is what the reference model computed of drawn cases while an engine was verified. Engines are judged by it, too: golden outputs
// may differ from it by what another machine computes, and within that a builder could hide another model.
type rerun struct {
	dir    string // with the folders golden and cases, of files like those of the cases
	picked []run.SomeRows
}

// keep writes what the reference model computed, and the inputs, below a folder.
func keep(v Session, g goldenset.Recomputed, dir string) (rerun, error) {
	r := rerun{dir: dir, picked: run.RowsIn(v.Cases.Set.Shards, g.Sample)}
	at := 0
	for _, of := range r.picked {
		if err := of.Write(v.Cases.Dir, filepath.Join(dir, "cases")); err != nil {
			return r, err
		}
		var computed []run.RowsOf
		for range of.Rows {
			file, ok := g.Outcome.File(path.Join("outputs", run.ReferenceID, goldenset.CaseFile(at)))
			if !ok {
				return r, registry.Errorf(registry.CodeInternal, "the reference model left no outputs of case %d", g.Sample[at])
			}
			computed = append(computed, run.RowsOf{Path: file.Path, First: 0, End: 1, Count: 1})
			at++
		}
		if err := run.WriteRows(filepath.Join(dir, "golden", filepath.FromSlash(of.Shard.File)), computed); err != nil {
			return r, err
		}
	}
	return r, nil
}

// judge judges the outputs of an engine for these cases, which it left in a folder with those of all, by what the limits say of some cases.
// compared is a comparison of some cases. What too few cases cannot show is no failure.
func (r rerun) judge(ctx context.Context, v Session, c run.Candidate, outputs string, compared parity.Run, whole map[string]tensor.Result) (string, error) {
	dir := filepath.Join(r.dir, c.ID)
	defer os.RemoveAll(dir)
	for _, of := range r.picked {
		if err := of.Write(outputs, dir); err != nil {
			return "", err
		}
	}
	compared.Engine = dir
	var found evidence.Check
	if err := judgeSome(ctx, v, c, someOf(compared, r.dir, run.ShardsOf(r.picked)), whole, &found); err != nil || found.Verdict != evidence.VerdictFail {
		return "", err
	}
	return fmt.Sprintf("against what the reference model computes here, for %s that were drawn: %s",
		registry.Count(countRows(r.picked), "case"), found.Message), nil
}

func countRows(picked []run.SomeRows) (n int) {
	for _, of := range picked {
		n += len(of.Rows)
	}
	return n
}

// someOf is a comparison of the cases in these shards, whose golden outputs and inputs are in the folders golden and cases below dir. Labels
// are of the whole set.
func someOf(compared parity.Run, dir string, shards []artifact.Shard) parity.Run {
	compared.Golden, compared.Shards, compared.Labels = filepath.Join(dir, "golden"), shards, parity.Labels{}
	compared.Masks.Dir, compared.Masks.Shards = filepath.Join(dir, "cases"), shards
	return compared
}

// judgeSome compares outputs of some cases, and judges them by what the limits say of so few. The check gets the verdict, why it is no pass,
// and the largest difference.
func judgeSome(ctx context.Context, v Session, c run.Candidate, compared parity.Run, whole map[string]tensor.Result, check *evidence.Check) error {
	result, err := parity.Compare(ctx, compared)
	if errors.Is(err, tensor.ErrMismatch) {
		check.Verdict, check.Message, check.Value = evidence.VerdictFail, registry.PlainText(err.Error()), evidence.Figure(math.Inf(1))
		return nil
	}
	if err != nil {
		return err
	}
	for _, output := range v.Iface.Outputs {
		if r := result.Outputs[output.Name]; r.MaxAbs > float64(check.Value) {
			check.Value, check.Output = evidence.Figure(r.MaxAbs), output.Name
		}
	}
	judged := v.Limits.JudgeSome(c.Engine.Precision, validators.Measured{Outputs: result.Outputs, Whole: whole, Cases: result.Cases})
	var said []string
	for _, r := range judged.Reasons {
		said = append(said, registry.PlainText(r.Message))
	}
	check.Verdict, check.Message = judged.Verdict, strings.Join(said, "; ")
	return nil
}
