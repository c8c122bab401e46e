package parity

import (
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// scores are answers and the slice of each case, if there are any.
type scores struct {
	*accuracy.Counter
	slices []int64
}

// score adds the answers in rows of a shard; nil for all.
func (l Labels) score(i int, golden, candidate *tensorfile.File, answers *scores, rows []int64) error {
	if rows != nil && len(rows) == 0 {
		return nil
	}
	cases, err := tensorfile.Open(filepath.Join(l.Dir, l.Shards[i].File), tensorfile.Limits{})
	if err != nil {
		return err
	}
	defer cases.Close()
	if err := l.add(i, golden, candidate, cases, answers, rows); err != nil {
		return err
	}
	if l.Slices == "" {
		return nil
	}
	of, err := cases.Tensor(l.Slices)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "slices: %w", err)
	}
	values, err := accuracy.SliceOf(of, l.Shards[i].Count)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "slices by %s: %s", l.Slices, err.Error())
	}
	if rows == nil {
		answers.slices = append(answers.slices, values...)
	}
	for _, row := range rows {
		answers.slices = append(answers.slices, values[row])
	}
	return nil
}

// add adds the cases of rows of a shard to the answers.
func (l Labels) add(i int, golden, candidate, cases *tensorfile.File, answers *scores, rows []int64) error {
	if l.Scores != nil {
		from, to := l.Shards[i].First, l.Shards[i].First+l.Shards[i].Count
		if from < 0 || to > min(len(l.Scores.Reference), len(l.Scores.Engine)) {
			return registry.Errorf(registry.CodeInvalid, "scores of %d cases: want one for each", len(l.Scores.Engine))
		}
		return answers.AddScores(scoresOf(l.Scores.Reference[from:to], rows), scoresOf(l.Scores.Engine[from:to], rows))
	}
	labels, err := cases.Tensor(l.Tensor)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "labels: %w", err)
	}
	reference, err := l.Detections.Read(golden, l.Output)
	if err != nil {
		return err
	}
	engine, err := l.Detections.Read(candidate, l.Output)
	if err != nil {
		return err
	}
	for _, t := range []*tensor.Tensor{&reference, &engine, &labels} {
		if *t, err = rowsOf(*t, rows); err != nil {
			return registry.Errorf(registry.CodeInvalid, "accuracy of output %s against labels %s: %w", l.Output, l.Tensor, err)
		}
	}
	if err := answers.Add(reference, engine, labels); err != nil {
		return registry.Errorf(registry.CodeInvalid, "accuracy of output %s against labels %s: %w", l.Output, l.Tensor, err)
	}
	return nil
}

func scoresOf(all []float64, rows []int64) []float64 {
	if rows == nil {
		return all
	}
	kept := make([]float64, len(rows))
	for i, row := range rows {
		kept[i] = all[row]
	}
	return kept
}

// rowsOf gives the rows of a tensor behind each other; nil for all.
func rowsOf(t tensor.Tensor, rows []int64) (tensor.Tensor, error) {
	if rows == nil {
		return t, nil
	}
	if len(t.Shape) == 0 {
		return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid, "labels have no dimensions: want that of the cases first")
	}
	kept := tensor.Tensor{DType: t.DType, Shape: append([]int64{int64(len(rows))}, t.Shape[1:]...)}
	for _, row := range rows {
		one, err := t.Rows(row, row+1)
		if err != nil {
			return tensor.Tensor{}, err
		}
		kept.Data = append(kept.Data, one.Data...)
	}
	return kept, nil
}

// distinct lists the rows of a shard that are no copies of an earlier case; nil for all.
func (run Run) distinct(shard artifact.Shard) []int64 {
	rows := make([]int64, 0, shard.Count)
	for row := range shard.Count {
		if !run.Copies[shard.First+row] {
			rows = append(rows, int64(row))
		}
	}
	if len(rows) == shard.Count {
		return nil
	}
	return rows
}
