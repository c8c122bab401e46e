package parity

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// fills looks for fill values in the golden outputs of all cases, for outputs whose options ask for it and do not
// say what they are. Elements that a mask leaves out count for nothing, and so do copies of a case: what a single case has is
// there twice by them.
func (run Run) fills(ctx context.Context) (map[string]*tensor.Magnitudes, error) {
	found := make(map[string]*tensor.Magnitudes)
	for name, options := range run.Outputs {
		if options.Fills != tensor.FillsNone && options.Fill == 0 {
			found[name] = new(tensor.Magnitudes)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	for i, shard := range run.Shards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := run.fillsOf(i, shard, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (run Run) fillsOf(i int, shard artifact.Shard, found map[string]*tensor.Magnitudes) error {
	golden, err := run.open(run.Golden, shard.File)
	if err != nil {
		return err
	}
	defer golden.Close()
	masks, err := run.masks(i)
	if err != nil {
		return err
	}
	if masks != nil {
		defer masks.Close()
	}
	for name, of := range found {
		for _, span := range run.spans(shard) {
			t, err := golden.Rows(name, int64(span.from), int64(span.to))
			if err != nil {
				return registry.Errorf(registry.CodeInvalid, "golden output %s: %w", name, err)
			}
			if mask := run.Masks.Inputs[name]; mask != "" {
				if t, err = masked(masks, mask, span.from, t); err != nil {
					return err
				}
			}
			of.Add(t)
		}
	}
	return nil
}

// span is rows of a shard.
type span struct{ from, to int }

// spans are the rows of a shard that are no copies, as many behind each other as are in memory at a time.
func (run Run) spans(shard artifact.Shard) (spans []span) {
	for row := range shard.Count {
		last := len(spans) - 1
		switch {
		case run.Copies[shard.First+row]:
		case last >= 0 && spans[last].to == row && row-spans[last].from < rowsAtOnce:
			spans[last].to++
		default:
			spans = append(spans, span{row, row + 1})
		}
	}
	return spans
}

// masked returns the elements of rows that count. Of a mask that does not fit, the comparison tells.
func masked(masks *tensorfile.File, name string, from int, rows tensor.Tensor) (tensor.Tensor, error) {
	of, err := masks.Rows(name, int64(from), int64(from)+rows.Shape[0])
	if err != nil {
		return tensor.Tensor{}, registry.Errorf(registry.CodeInvalid, "mask %s: %s", name, err.Error())
	}
	m := newMask(of)
	if !slices.Equal(m.shape, rows.Shape[:min(len(m.shape), len(rows.Shape))]) {
		return rows, nil
	}
	return m.pick(rows), nil
}
