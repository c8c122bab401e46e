package parity

import (
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// detected counts the cases with detections on any side, the share in each that does not agree, and the classes.
type detected struct {
	misses  float64
	cases   int
	classes map[int]tensor.ClassCases
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
		agrees := accuracy.Agree(reference.Float64s(), candidate.Float64s())
		if agrees.Weight > 0 { // a case without a detection shows nothing
			d.misses, d.cases = d.misses+1-agrees.Share, d.cases+1
		}
		d.count(agrees.Classes)
	}
	return nil
}

// count counts the classes of a case.
func (d *detected) count(lost map[int32]bool) {
	if d.classes == nil {
		d.classes = make(map[int]tensor.ClassCases)
	}
	for class, lost := range lost {
		of := d.classes[min(int(class), tensor.OtherClasses)]
		of.Class, of.Cases = min(int(class), tensor.OtherClasses), of.Cases+1
		if lost {
			of.Lost++
		}
		d.classes[of.Class] = of
	}
}

// into writes what was counted into the results of the outputs that have the detections.
func (d detected) into(of accuracy.DetectionOutputs, outputs map[string]tensor.Result) {
	for _, name := range of.Names() {
		r := outputs[name]
		r.DetectionMisses, r.DetectionCases, r.Classes = d.misses, d.cases, nil // those of rows of boxes are none
		for _, class := range slices.Sorted(maps.Keys(d.classes)) {
			r.Classes = append(r.Classes, d.classes[class])
		}
		outputs[name] = r
	}
}
