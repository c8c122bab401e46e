package parity

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// detected counts the cases with detections, and the share of these in each that does not agree.
type detected struct {
	misses float64
	cases  int
}

// add adds the cases of a shard.
func (d *detected) add(of accuracy.DetectionOutputs, golden, engine *tensorfile.File, first, count int, copies map[int]bool) error {
	for row := range count {
		if copies[first+row] {
			continue
		}
		reference, err := of.Rows(golden, int64(row), int64(row)+1)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "golden detections of case %d: %w", first+row, err)
		}
		candidate, err := of.Rows(engine, int64(row), int64(row)+1)
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "detections of case %d: %w", first+row, err)
		}
		agrees, err := accuracy.Agreement(reference.Float64s(), candidate.Float64s())
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "detections of case %d: %w", first+row, err)
		}
		d.misses, d.cases = d.misses+1-agrees, d.cases+1
	}
	return nil
}

// into writes what was counted into the results of the outputs that have the detections.
func (d detected) into(of accuracy.DetectionOutputs, outputs map[string]tensor.Result) {
	for _, name := range of.Names() {
		r := outputs[name]
		r.DetectionMisses, r.DetectionCases = d.misses, d.cases
		outputs[name] = r
	}
}
