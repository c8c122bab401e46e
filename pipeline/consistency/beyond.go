package consistency

import (
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// makeBeyond makes a trial of cases with inputs twice as large, if the time is enough. Half precision ends at 65504: requests beyond
// the range of the cases must not become NaN or infinite. Only inputs of floats have a scale.
func (s *Set) makeBeyond(left time.Duration) error {
	isFloat := func(t validators.TensorInfo) bool { return t.DType.Class() == tensor.ClassFloat }
	if !slices.ContainsFunc(s.Interface.Inputs, isFloat) {
		s.leaveOut(evidence.TrialBeyond, "the model has no inputs of floats to scale")
		return nil
	}
	const what = "inputs*2"
	n := affordable(left, s.Run, otherCases)
	if n == 0 {
		s.leave(evidence.TrialBeyond, what, s.Run, left)
		return nil
	}
	cases := byShard(s.fitting(s.pick(n)))[0]
	made := s.shard(fmt.Sprintf("check-4-%03d-beyond", len(s.trials)), cases)
	read := func(c slot) (map[string]tensor.Tensor, error) {
		inputs, err := s.full(c)
		if err != nil {
			return nil, err
		}
		for _, input := range s.Interface.Inputs {
			if t := inputs[input.Name]; t.DType.Class() == tensor.ClassFloat {
				inputs[input.Name] = tensor.Doubled(t)
			}
		}
		return inputs, nil
	}
	if err := s.store(made, read, tensor.Stack, 1); err != nil {
		return err
	}
	s.trials = append(s.trials, trial{kind: evidence.TrialBeyond, what: what, shards: []shard{made}})
	return nil
}
