package caserun

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Open opens the shards in the order of their names and checks each against the inputs of an engine,
// which has at least one. It does not close shards after an error, because the process of the driver
// ends then. Errors are of type *driverproc.Error.
func Open(inputs []driverproc.RequestInput, engineID string, slots []Slot) ([]*Shard, error) {
	inputs = slices.SortedFunc(slices.Values(inputs),
		func(a, b driverproc.RequestInput) int { return strings.Compare(a.Name, b.Name) })
	var shards []*Shard
	first := 0
	for _, in := range inputs {
		file, err := tensorfile.Open(in.Path, tensorfile.Limits{})
		if err != nil {
			return nil, driverproc.Errorf(driverproc.BadInput, "cases %s: %v", in.Name, err)
		}
		s := &Shard{Name: in.Name, First: first, file: file, columns: make(map[string]*column)}
		if info, ok := file.Info(slots[0].Name); ok && len(info.Shape) > 0 {
			s.Count = info.Shape[0]
		}
		if err := s.Check(engineID, slots); err != nil {
			return nil, err
		}
		if s.Count == 0 {
			return nil, driverproc.Errorf(driverproc.BadInput, "cases %s: it has no cases", in.Name)
		}
		shards = append(shards, s)
		first += int(s.Count)
	}
	if len(shards) == 0 {
		return nil, driverproc.Errorf(driverproc.BadInput, "run: no cases: want safetensors files as inputs of role cases")
	}
	return shards, nil
}

// Cases returns the number of cases in all shards.
func Cases(shards []*Shard) int {
	last := shards[len(shards)-1]
	return last.First + int(last.Count)
}

// Check compares the tensors of the shard with the inputs of an engine. Errors are of type
// *driverproc.Error.
func (s *Shard) Check(engineID string, slots []Slot) error {
	var missing []string
	for _, slot := range slots {
		info, ok := s.file.Info(slot.Name)
		if !ok {
			missing = append(missing, slot.Name)
			continue
		}
		if !slot.fit(info.Shape) || info.DType != slot.stored() {
			return driverproc.Errorf(driverproc.BadInput,
				"cases %s: tensor %q is %s %v: for each case the engine %s wants %s %v, where -1 is any size, with a case dimension in front or as the first dimension",
				s.Name, slot.Name, info.DType, info.Shape, engineID, slot.DType, slot.Shape)
		}
		if info.Shape[0] != s.Count {
			return driverproc.Errorf(driverproc.BadInput,
				"cases %s: tensor %q has %d cases, %q has %d", s.Name, slot.Name, info.Shape[0], slots[0].Name, s.Count)
		}
	}
	if len(missing) > 0 {
		return driverproc.Errorf(driverproc.BadInput, "cases %s: no tensor for the input %s of the engine %s: there are %s",
			s.Name, strings.Join(missing, ", "), engineID, strings.Join(s.file.Names(), ", "))
	}
	return nil
}
