package parity

import (
	"context"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// fills looks for fill values in the golden outputs of all cases, for outputs whose options ask for it and do not
// say what they are. Elements that a mask leaves out count for nothing.
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

func (run Run) fillsOf(i int, shard registry.Shard, found map[string]*tensor.Magnitudes) error {
	golden, err := tensor.Open(filepath.Join(run.Golden, shard.File), run.Limits)
	if err != nil {
		return err
	}
	defer golden.Close()
	masks, err := run.Masks.open(i, run.Limits)
	if err != nil {
		return err
	}
	if masks != nil {
		defer masks.Close()
	}
	for name, of := range found {
		for from := 0; from < shard.Count; from += rowsAtOnce {
			t, err := golden.Rows(name, int64(from), int64(min(from+rowsAtOnce, shard.Count)))
			if err != nil {
				return registry.Errorf(registry.CodeInvalid, "golden output %s: %w", name, err)
			}
			if mask := run.Masks.Inputs[name]; mask != "" {
				if t, err = masked(masks, mask, from, t); err != nil {
					return err
				}
			}
			of.Add(t)
		}
	}
	return nil
}

// masked returns the elements of rows that count. Of a mask that does not fit, the comparison tells.
func masked(masks *tensor.File, name string, from int, rows tensor.Tensor) (tensor.Tensor, error) {
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
