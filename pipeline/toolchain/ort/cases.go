//go:build cgo

package ort

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// openCases opens the shards in the order of their names. After an error the process ends, so
// the shards are not closed.
func openCases(files []driverproc.RequestInput, e *engine) ([]*shard, error) {
	files = slices.SortedFunc(slices.Values(files),
		func(a, b driverproc.RequestInput) int { return strings.Compare(a.Name, b.Name) })
	var shards []*shard
	first := 0
	for _, in := range files {
		file, err := tensorfile.Open(in.Path, tensorfile.Limits{})
		if err != nil {
			return nil, driverproc.Errorf(driverproc.BadInput, "cases %s: %v", in.Name, err)
		}
		s := &shard{name: in.Name, file: file, first: first, columns: make(map[string]*column)}
		if info, ok := file.Info(e.inputs[0].name); ok && len(info.Shape) > 0 {
			s.count = info.Shape[0]
		}
		if err := s.check(e); err != nil {
			return nil, err
		}
		if s.count == 0 {
			return nil, driverproc.Errorf(driverproc.BadInput, "cases %s: it has no cases", in.Name)
		}
		shards = append(shards, s)
		first += int(s.count)
	}
	if len(shards) == 0 {
		return nil, driverproc.Errorf(driverproc.BadInput, "run: no cases: want safetensors files as inputs of role cases")
	}
	return shards, nil
}

// check compares the tensors of a shard with the inputs of an engine.
func (s *shard) check(e *engine) error {
	var missing []string
	for _, input := range e.inputs {
		info, ok := s.file.Info(input.name)
		if !ok {
			missing = append(missing, input.name)
			continue
		}
		if !input.fit(info.Shape) || info.DType != input.kind.dtype {
			return driverproc.Errorf(driverproc.BadInput,
				"cases %s: tensor %q is %s %v: for each case the engine %s wants %s %v, where -1 is any size, with a case dimension in front or as the first dimension",
				s.name, input.name, info.DType, info.Shape, e.id, input.kind.name(), input.shape)
		}
		if info.Shape[0] != s.count {
			return driverproc.Errorf(driverproc.BadInput,
				"cases %s: tensor %q has %d cases, %q has %d", s.name, input.name, info.Shape[0], e.inputs[0].name, s.count)
		}
	}
	if len(missing) > 0 {
		return driverproc.Errorf(driverproc.BadInput, "cases %s: no tensor for the input %s of the engine %s: there are %s",
			s.name, strings.Join(missing, ", "), e.id, strings.Join(s.file.Names(), ", "))
	}
	return nil
}

// fit reports whether the input accepts one case of a stacked tensor.
func (v value) fit(stacked []int64) bool {
	var one []int64
	if v.kind.text {
		if len(stacked) < 2 {
			return false
		}
		stacked = stacked[:len(stacked)-1]
	}
	switch len(stacked) {
	case 0:
		return false
	case len(v.shape):
		one = append([]int64{1}, stacked[1:]...)
	case len(v.shape) + 1:
		one = stacked[1:]
	default:
		return false
	}
	for i, want := range v.shape {
		if want >= 0 && want != one[i] {
			return false
		}
	}
	return true
}

// inputs returns the inputs of a role, in the order of the request.
func inputs(r driverproc.Request, role string) []driverproc.RequestInput {
	var found []driverproc.RequestInput
	for _, in := range r.Inputs {
		if in.Role == role {
			found = append(found, in)
		}
	}
	return found
}
